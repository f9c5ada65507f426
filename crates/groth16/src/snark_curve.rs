//! The curves this crate proves over.

use std::fmt;

use ark_ec::AffineRepr;
use ark_ec::short_weierstrass::{Affine, Projective, SWCurveConfig};
use ark_ff::Field;
use proofmill_accelerator::{DeviceField, DeviceGroup};
use proofmill_kernels::MsmGroup;
use proofmill_kernels::pairing::PairingCurve;
use proofmill_r1cs::iden3::{MontgomeryField, ScalarField};

/// The name of a curve, where the curve is known only from a file's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Curve {
    /// BN254, which circom and snarkjs call `bn128`.
    Bn254,
    /// BLS12-381.
    Bls12_381,
    /// BLS12-377, which circom calls `bls12377`. snarkjs does not know it: files over it have snarkjs's formats, and
    /// Proofmill alone reads them.
    Bls12_377,
}

/// A pairing whose groups the kernels and devices support.
pub trait SnarkCurve:
    PairingCurve<
        G1: DeviceGroup,
        G2: DeviceGroup,
        G1Affine: PointGroup,
        G2Affine: PointGroup,
        ScalarField: MontgomeryField + DeviceField,
        BaseField: MontgomeryField,
    >
{
    /// The curve.
    const CURVE: Curve;
}

/// The points of one of a pairing's groups, by their coordinates.
pub trait PointGroup:
    AffineRepr<BaseField: Field<BasePrimeField: MontgomeryField>, Group: MsmGroup>
{
    /// The point with these coordinates, unchecked.
    fn from_coordinates(x: Self::BaseField, y: Self::BaseField) -> Self;

    /// One of the two points of the curve with this x; `None` if there are none. It may be outside the subgroup.
    fn of_x(x: Self::BaseField) -> Option<Self>;

    /// Whether the coordinates satisfy the curve's equation; so does infinity.
    fn on_curve(&self) -> bool;

    /// Whether all points of the curve are in the subgroup of prime order.
    const IS_WHOLE_CURVE: bool;

    /// Whether a point of the curve is of the prime order, or infinity.
    fn in_subgroup(&self) -> bool;
}

// === impl Curve ===

impl Curve {
    /// All variants.
    pub const ALL: [Self; 3] = [Self::Bn254, Self::Bls12_381, Self::Bls12_377];

    /// The name in our key files: at most 16 ASCII bytes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bn254 => "bn254",
            Self::Bls12_381 => "bls12-381",
            Self::Bls12_377 => "bls12-377",
        }
    }

    /// The name in snarkjs's files.
    pub const fn snarkjs_name(self) -> &'static str {
        match self {
            Self::Bn254 => "bn128",
            Self::Bls12_381 => "bls12381",
            Self::Bls12_377 => "bls12377",
        }
    }

    /// The curve of that name in snarkjs's files.
    pub fn from_snarkjs_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|curve| curve.snarkjs_name() == name)
    }
}

/// The curve whose scalars these are.
impl From<ScalarField> for Curve {
    fn from(field: ScalarField) -> Self {
        match field {
            ScalarField::Bn254 => Self::Bn254,
            ScalarField::Bls12_381 => Self::Bls12_381,
            ScalarField::Bls12_377 => Self::Bls12_377,
        }
    }
}

impl fmt::Display for Curve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

// === impl SnarkCurve ===

impl SnarkCurve for ark_bls12_381::Bls12_381 {
    const CURVE: Curve = Curve::Bls12_381;
}

impl SnarkCurve for ark_bls12_377::Bls12_377 {
    const CURVE: Curve = Curve::Bls12_377;
}

impl SnarkCurve for ark_bn254::Bn254 {
    const CURVE: Curve = Curve::Bn254;
}

// === impl PointGroup ===

impl<P: SWCurveConfig<BaseField: Field<BasePrimeField: MontgomeryField>>> PointGroup for Affine<P>
where
    Projective<P>: MsmGroup,
{
    const IS_WHOLE_CURVE: bool = matches!(P::COFACTOR, [1]);

    fn from_coordinates(x: P::BaseField, y: P::BaseField) -> Self {
        Self::new_unchecked(x, y)
    }

    fn of_x(x: P::BaseField) -> Option<Self> {
        Self::get_point_from_x_unchecked(x, false)
    }

    fn on_curve(&self) -> bool {
        self.is_on_curve()
    }

    fn in_subgroup(&self) -> bool {
        Self::IS_WHOLE_CURVE || self.is_in_correct_subgroup_assuming_on_curve()
    }
}

/// Runs an expression for the curve that a value of [`Curve`] names: within it the identifier is
/// the curve's [`SnarkCurve`].
///
/// ```
/// use proofmill_groth16::{Curve, Proof, with_curve};
///
/// let sizes = Curve::ALL.map(|curve| with_curve!(curve, E => Proof::<E>::encoded_size()));
/// assert_eq!(sizes, [128, 192, 192]);
/// ```
#[macro_export]
macro_rules! with_curve {
    ($curve:expr, $engine:ident => $body:expr) => {
        match $curve {
            $crate::Curve::Bn254 => {
                type $engine = $crate::Bn254;
                $body
            }
            $crate::Curve::Bls12_381 => {
                type $engine = $crate::Bls12_381;
                $body
            }
            $crate::Curve::Bls12_377 => {
                type $engine = $crate::Bls12_377;
                $body
            }
        }
    };
}
