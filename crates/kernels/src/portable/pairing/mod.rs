//! Products of pairings on every machine.
//!
//! BLS12-381's are [blst's](bls12_381). BLS12-377's and BN254's are ours: the optimal ate pairings of BLS12
//! curves and BN curves (Vercauteren, "Optimal Pairings", IEEE Transactions on Information Theory
//! 56, 2010), over arkworks' types. A loop takes the lines of many pairs together: multiples of their
//! points are [affine], with one inversion at each step for all pairs, or
//! [projective] where there are few; [two lines](line_product) are multiplied with each other before
//! the product takes them; and each coefficient of an [element of Fq2](fq2) is reduced once.

mod affine;
pub(crate) mod bls12_381;
mod curve;
mod exponentiation;
mod fq2;
mod line_product;
mod miller;
pub(crate) mod multi_power;
mod power;
mod prepared;
mod projective;
mod tower;
pub(crate) mod words;

use std::fmt::Debug;

use ark_ec::AffineRepr;
use ark_ec::pairing::Pairing;

/// A curve of the portable back end.
pub trait PortablePairing: Pairing {
    /// The lines through a point of the second group and its multiples.
    type Lines: Clone + Debug + Send + Sync;

    /// A point's lines, which is not infinite; `None` if one of them has no term in y.
    fn lines(point: &Self::G2Affine) -> Option<Self::Lines>;

    /// The product of all Miller loops, on this thread, up to a factor that the final exponentiation
    /// takes to one. No point is infinite, nor has one that is paired with lines y = 0.
    fn miller_loop(
        pairs: &[(Self::G1Affine, Self::G2Affine)],
        fixed: &[(Self::G1Affine, &Self::Lines)],
    ) -> Self::TargetField;

    /// The final exponentiation as arkworks has it; `None` of zero.
    fn power(value: &Self::TargetField) -> Option<Self::TargetField>;
}

impl PortablePairing for ark_bls12_381::Bls12_381 {
    type Lines = bls12_381::Lines;

    fn lines(point: &Self::G2Affine) -> Option<Self::Lines> {
        bls12_381::lines(point)
    }

    fn miller_loop(
        pairs: &[(Self::G1Affine, Self::G2Affine)],
        fixed: &[(Self::G1Affine, &Self::Lines)],
    ) -> Self::TargetField {
        bls12_381::miller_loop(pairs, fixed)
    }

    fn power(value: &Self::TargetField) -> Option<Self::TargetField> {
        bls12_381::final_exponentiation(value)
    }
}

/// Implements the curves that are ours.
macro_rules! curves {
    ($($curve:ty;)*) => {$(
        impl PortablePairing for $curve {
            // `prepared::LineTerms`, by its public name.
            type Lines = Vec<[<Self::G2Affine as AffineRepr>::BaseField; 2]>;

            fn lines(point: &Self::G2Affine) -> Option<Self::Lines> {
                let lines = Self::G2Prepared::from(point);
                prepared::monic_lines::<Self, _>(&lines.ell_coeffs)
            }

            fn miller_loop(
                pairs: &[(Self::G1Affine, Self::G2Affine)],
                fixed: &[(Self::G1Affine, &Self::Lines)],
            ) -> Self::TargetField {
                let fixed: Vec<prepared::FixedPair<'_, Self, _>> = fixed
                    .iter()
                    .map(|(left, lines)| prepared::FixedPair { left: *left, lines })
                    .collect();
                miller::miller_loop::<Self, _>(pairs, &fixed)
            }

            fn power(value: &Self::TargetField) -> Option<Self::TargetField> {
                exponentiation::final_exponentiation::<Self, _>(value)
            }
        }
    )*};
}

curves! {
    ark_bls12_377::Bls12_377;
    ark_bn254::Bn254;
}
