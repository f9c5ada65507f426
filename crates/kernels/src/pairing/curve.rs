//! The curves, and what their back ends do.

use ark_ec::pairing::{MillerLoopOutput, Pairing, PairingOutput};
use rayon::prelude::*;

use crate::InstructionSet;
use crate::instruction_set::checked;
#[cfg(target_arch = "x86_64")]
use crate::x86_64_avx512ifma::pairing as vector;

/// A curve with a pairing: BLS12-381, BLS12-377 and BN254.
pub trait PairingCurve: Pairing + sealed::Kernels {}

/// In a module of its own so that no other crate can implement [`PairingCurve`].
#[expect(
    unreachable_pub,
    reason = "what a public trait stands on must be public"
)]
pub(super) mod sealed {
    use super::{InstructionSet, MillerLoopOutput, Pairing, PairingOutput};

    /// Points of the two groups, neither of them infinite.
    pub type Pair<E> = (<E as Pairing>::G1Affine, <E as Pairing>::G2Affine);

    /// A point of the first group, not infinite, and what [`Kernels::lines_on`] gave of one of the second.
    pub type FixedPair<'a, E> = (<E as Pairing>::G1Affine, &'a Lines<E>);

    /// The lines through a point of the second group and its multiples, as a back end has them.
    #[derive(Clone, Debug)]
    pub enum Lines<E: Pairing> {
        /// As arkworks has them.
        Portable(E::G2Prepared),
        /// As the vector kernels have them: 64-bit words.
        Vector(Vec<u64>),
    }

    /// A curve's back ends.
    pub trait Kernels: Pairing {
        /// The lines of a point that is not infinite; `None` if this back end has no use for them.
        fn lines_on(set: InstructionSet, point: Self::G2Affine) -> Option<Lines<Self>>;

        /// Whether the lines and the point suit this back end: others are to be paired as points.
        fn takes(set: InstructionSet, pair: &FixedPair<'_, Self>) -> bool;

        /// The product of all Miller loops, on this thread.
        fn miller_loop_on(
            set: InstructionSet,
            pairs: &[Pair<Self>],
            fixed: &[FixedPair<'_, Self>],
        ) -> MillerLoopOutput<Self>;

        /// The final exponentiation; `None` of zero.
        fn final_exponentiation_on(
            set: InstructionSet,
            value: Self::TargetField,
        ) -> Option<Self::TargetField>;

        /// `Π bases[i]^exponents[i]` of elements of the target group, on this thread.
        fn multi_power_here(
            set: InstructionSet,
            bases: &[PairingOutput<Self>],
            exponents: &[Self::ScalarField],
        ) -> Self::TargetField;
    }
}

use sealed::{FixedPair, Kernels, Lines, Pair};

/// The product of Miller loops by arkworks, lines in parallel.
fn portable_miller_loop<E: Pairing>(
    pairs: &[Pair<E>],
    fixed: &[FixedPair<'_, E>],
) -> MillerLoopOutput<E> {
    let mut right: Vec<E::G2Prepared> = pairs.par_iter().map(|pair| pair.1.into()).collect();
    let mut left: Vec<E::G1Affine> = pairs.iter().map(|pair| pair.0).collect();
    for (point, lines) in fixed {
        if let Lines::Portable(lines) = lines {
            left.push(*point);
            right.push(lines.clone());
        }
    }
    E::multi_miller_loop(left, right)
}

/// Implements the curves: by arkworks' type and the configuration of the field Fq2.
macro_rules! curves {
    ($($curve:ty, $tower:ty;)*) => {$(
        impl PairingCurve for $curve {}

        impl Kernels for $curve {
            fn lines_on(set: InstructionSet, point: Self::G2Affine) -> Option<Lines<Self>> {
                let lines = <Self as Pairing>::G2Prepared::from(point);
                match checked(set) {
                    #[cfg(target_arch = "x86_64")]
                    InstructionSet::Avx512Ifma => {
                        vector::lines::<$tower, _, _>(&lines.ell_coeffs).map(Lines::Vector)
                    }
                    _ => Some(Lines::Portable(lines)),
                }
            }

            fn takes(set: InstructionSet, (point, lines): &FixedPair<'_, Self>) -> bool {
                match (set, lines) {
                    (InstructionSet::Portable, Lines::Portable(_)) => true,
                    // Lines of the vector kernels are divided by y.
                    (InstructionSet::Avx512Ifma, Lines::Vector(_)) => point.y != 0.into(),
                    _ => false,
                }
            }

            fn miller_loop_on(
                set: InstructionSet,
                pairs: &[Pair<Self>],
                fixed: &[FixedPair<'_, Self>],
            ) -> MillerLoopOutput<Self> {
                match checked(set) {
                    #[cfg(target_arch = "x86_64")]
                    InstructionSet::Avx512Ifma => {
                        let fixed: Vec<vector::FixedPair<'_, $tower, _, _>> = fixed
                            .iter()
                            .filter_map(|(left, lines)| match lines {
                                Lines::Vector(lines) => {
                                    Some(vector::FixedPair { left: *left, lines })
                                }
                                Lines::Portable(_) => None,
                            })
                            .collect();
                        MillerLoopOutput(vector::miller_loop::<$tower, _, _>(pairs, &fixed))
                    }
                    _ => portable_miller_loop(pairs, fixed),
                }
            }

            fn final_exponentiation_on(
                set: InstructionSet,
                value: Self::TargetField,
            ) -> Option<Self::TargetField> {
                match checked(set) {
                    #[cfg(target_arch = "x86_64")]
                    InstructionSet::Avx512Ifma => {
                        vector::final_exponentiation::<$tower, _, _>(&value)
                    }
                    _ => <Self as Pairing>::final_exponentiation(MillerLoopOutput(value))
                        .map(|power| power.0),
                }
            }

            fn multi_power_here(
                set: InstructionSet,
                bases: &[PairingOutput<Self>],
                exponents: &[Self::ScalarField],
            ) -> Self::TargetField {
                match checked(set) {
                    #[cfg(target_arch = "x86_64")]
                    InstructionSet::Avx512Ifma => {
                        let bases: Vec<_> = bases.iter().map(|base| base.0).collect();
                        vector::multi_power::<$tower, _, _, _>(&bases, exponents)
                    }
                    _ => {
                        let powers = bases.iter().zip(exponents);
                        powers.map(|(base, exponent)| *base * exponent).sum::<PairingOutput<_>>().0
                    }
                }
            }
        }
    )*};
}

curves! {
    ark_bls12_381::Bls12_381, ark_bls12_381::Fq2Config;
    ark_bls12_377::Bls12_377, ark_bls12_377::Fq2Config;
    ark_bn254::Bn254, ark_bn254::Fq2Config;
}
