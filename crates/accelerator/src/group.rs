//! The groups and fields that devices work in, and values of any of them.

use std::fmt;
use std::sync::Arc;

use ark_ec::short_weierstrass::Projective;
use ark_ec::{CurveGroup, PrimeGroup};
use ark_ff::PrimeField;
use proofmill_kernels::{Domain, MsmGroup};
use zeroize::Zeroizing;

use crate::cost::{sample_product, sample_transform};
use crate::cuda::{Coordinates, Words};
use crate::device::TransformKind;
use crate::error::Error;

/// A group that a device can multiply in.
pub trait DeviceGroup: MsmGroup<ScalarField: DeviceField> + Coordinates {
    /// The enumerator of this group.
    const GROUP: Group;

    /// Points of this group as a device takes them; they must lie in the prime-order subgroup. An
    /// `Arc` is shared, not copied.
    fn points(points: impl Into<Arc<Vec<Self::Affine>>>) -> Points;

    /// A sum as a device gives it.
    fn sum(self) -> Sum;

    /// The sum, if it is of this group.
    fn of_sum(sum: &Sum) -> Option<Self>;
}

/// A field that a device can transform vectors over.
pub trait DeviceField: PrimeField + Words {
    /// The enumerator of this field.
    const FIELD: ScalarField;

    /// Scalars as a device takes them. They are wiped when the last copy goes.
    fn scalars(scalars: Vec<Self>) -> Scalars;

    /// The scalars, if they are of this field.
    fn of_scalars(scalars: &Scalars) -> Option<&[Self]>;

    /// The scalars themselves, if they are of this field; a copy if others hold them too.
    fn take_scalars(scalars: Scalars) -> Option<Vec<Self>>;

    /// A transform as a device takes it: the values of `scalars` over the domain.
    fn transform(domain: Domain<Self>, kind: TransformKind, values: Vec<Self>) -> Transform;
}

/// The enumerations, and what converts to and from them.
macro_rules! fields {
    ($($name:ident, $field:ty, $label:literal;)*) => {
        /// The scalar field of a curve.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "a variant is its curve's name")]
        pub enum ScalarField { $($name,)* }

        impl ScalarField {
            /// All variants.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The curve's name in lower case, as used in file names and messages.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $label,)* }
            }

            /// Bits of a scalar.
            pub(crate) const fn bits(self) -> u32 {
                match self { $(Self::$name => <$field>::MODULUS_BIT_SIZE,)* }
            }

            /// A transform to measure a device with.
            pub(crate) fn sample(self, size_log: u32) -> Result<Transform, Error> {
                match self { $(Self::$name => sample_transform::<$field>(size_log),)* }
            }
        }

        /// Scalars of one of the fields, shared and wiped in the end.
        #[derive(Clone)]
        #[expect(missing_docs, reason = "a variant is its curve's name")]
        pub enum Scalars { $($name(Arc<Zeroizing<Vec<$field>>>),)* }

        impl Scalars {
            /// The field.
            pub const fn field(&self) -> ScalarField {
                match self { $(Self::$name(_) => ScalarField::$name,)* }
            }

            /// The number of scalars.
            pub fn len(&self) -> usize {
                match self { $(Self::$name(scalars) => scalars.len(),)* }
            }
        }

        /// A number-theoretic transform: a domain, the values to transform over it, and the kind of transform.
        #[derive(Clone)]
        #[expect(missing_docs, reason = "a variant is its curve's name")]
        pub enum Transform {
            $($name {
                domain: Domain<$field>,
                kind: TransformKind,
                values: Zeroizing<Vec<$field>>,
            },)*
        }

        impl Transform {
            /// The field.
            pub const fn field(&self) -> ScalarField {
                match self { $(Self::$name { .. } => ScalarField::$name,)* }
            }

            /// The kind of transform.
            pub const fn kind(&self) -> TransformKind {
                match self { $(Self::$name { kind, .. } => *kind,)* }
            }

            /// The number of values, and the number of points of the domain.
            pub fn lengths(&self) -> (usize, usize) {
                match self {
                    $(Self::$name { domain, values, .. } => (values.len(), domain.size()),)*
                }
            }

            /// The values after `run` has transformed them.
            pub(crate) fn run<E>(self, run: &mut impl TransformVisitor<E>) -> Result<Scalars, E> {
                match self {
                    $(Self::$name { domain, kind, mut values } => {
                        run.run(&domain, kind, &mut values)?;
                        Ok(Scalars::$name(Arc::new(values)))
                    })*
                }
            }
        }

        $(impl DeviceField for $field {
            const FIELD: ScalarField = ScalarField::$name;

            fn scalars(scalars: Vec<Self>) -> Scalars {
                Scalars::$name(Arc::new(Zeroizing::new(scalars)))
            }

            fn of_scalars(scalars: &Scalars) -> Option<&[Self]> {
                match scalars {
                    Scalars::$name(scalars) => Some(scalars.as_slice()),
                    _ => None,
                }
            }

            fn take_scalars(scalars: Scalars) -> Option<Vec<Self>> {
                match scalars {
                    Scalars::$name(scalars) => Some(
                        Arc::try_unwrap(scalars)
                            .map_or_else(|held| held.to_vec(), |mut own| std::mem::take(&mut *own)),
                    ),
                    _ => None,
                }
            }

            fn transform(domain: Domain<Self>, kind: TransformKind, values: Vec<Self>) -> Transform {
                Transform::$name { domain, kind, values: Zeroizing::new(values) }
            }
        })*
    };
}

/// The same for groups.
macro_rules! groups {
    ($($name:ident, $group:ty, $label:literal;)*) => {
        /// A group of points.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "a variant is its curve's name")]
        pub enum Group { $($name,)* }

        impl Group {
            /// All variants.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The group's name in lower case, as used in file names and messages.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $label,)* }
            }

            /// The field of its scalars.
            pub const fn scalar_field(self) -> ScalarField {
                match self { $(Self::$name => <<$group as PrimeGroup>::ScalarField as DeviceField>::FIELD,)* }
            }

            /// A product to measure a device with.
            pub(crate) fn sample(self, points: usize) -> (Points, Scalars) {
                match self { $(Self::$name => sample_product::<$group>(points),)* }
            }
        }

        /// Points of one of the groups, shared.
        #[derive(Clone)]
        #[expect(missing_docs, reason = "a variant is its curve's name")]
        pub enum Points { $($name(Arc<Vec<<$group as CurveGroup>::Affine>>),)* }

        impl Points {
            /// The group.
            pub const fn group(&self) -> Group {
                match self { $(Self::$name(_) => Group::$name,)* }
            }

            /// The number of points.
            pub fn len(&self) -> usize {
                match self { $(Self::$name(points) => points.len(),)* }
            }

            /// Calls `visit` with the points in their own type.
            pub(crate) fn visit<V: PointsVisitor>(&self, visit: V) -> V::Output {
                match self { $(Self::$name(points) => visit.visit::<$group>(points),)* }
            }
        }

        /// The sum of a product.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "a variant is its curve's name")]
        pub enum Sum { $($name($group),)* }

        $(impl DeviceGroup for $group {
            const GROUP: Group = Group::$name;

            fn points(points: impl Into<Arc<Vec<Self::Affine>>>) -> Points {
                Points::$name(points.into())
            }

            fn sum(self) -> Sum {
                Sum::$name(self)
            }

            fn of_sum(sum: &Sum) -> Option<Self> {
                match sum {
                    Sum::$name(sum) => Some(*sum),
                    _ => None,
                }
            }
        })*
    };
}

fields! {
    Bls12_381, ark_bls12_381::Fr, "bls12_381";
    Bls12_377, ark_bls12_377::Fr, "bls12_377";
    Bn254, ark_bn254::Fr, "bn254";
}

groups! {
    Bls12_381G1, Projective<ark_bls12_381::g1::Config>, "bls12_381_g1";
    Bls12_381G2, Projective<ark_bls12_381::g2::Config>, "bls12_381_g2";
    Bls12_377G1, Projective<ark_bls12_377::g1::Config>, "bls12_377_g1";
    Bls12_377G2, Projective<ark_bls12_377::g2::Config>, "bls12_377_g2";
    Bn254G1, Projective<ark_bn254::g1::Config>, "bn254_g1";
    Bn254G2, Projective<ark_bn254::g2::Config>, "bn254_g2";
}

/// A computation on points that is generic over their group.
pub(crate) trait PointsVisitor {
    type Output;
    fn visit<G: DeviceGroup>(self, points: &[G::Affine]) -> Self::Output;
}

/// A transform in place that is generic over the field of its values.
pub(crate) trait TransformVisitor<E> {
    fn run<F: DeviceField>(
        &mut self,
        domain: &Domain<F>,
        kind: TransformKind,
        values: &mut [F],
    ) -> Result<(), E>;
}

// === impl Scalars ===

impl Scalars {
    /// Whether the length is zero.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The scalars of a field.
    pub(crate) fn expect<F: DeviceField>(&self) -> Result<&[F], Error> {
        F::of_scalars(self).ok_or_else(|| {
            Error::BadJob(format!(
                "scalars of {} for points of {}",
                self.field(),
                F::FIELD
            ))
        })
    }
}

/// A witness is never shown.
impl fmt::Debug for Scalars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} scalars of {}", self.len(), self.field())
    }
}

// === impl Points ===

impl Points {
    /// Whether the length is zero.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Debug for Points {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} points of {}", self.len(), self.group())
    }
}

impl fmt::Debug for Transform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a transform of {} scalars of {}",
            self.lengths().0,
            self.field()
        )
    }
}

impl fmt::Display for ScalarField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
