//! The curves, and what their back ends do.

use ark_ec::pairing::{MillerLoopOutput, Pairing, PairingOutput};

use crate::InstructionSet;
use crate::instruction_set::checked;
use crate::portable::pairing::PortablePairing;
use crate::portable::pairing::multi_power::multi_power as portable_multi_power;
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
    use super::{InstructionSet, MillerLoopOutput, Pairing, PairingOutput, PortablePairing};

    /// Points of the two groups, neither of them infinite.
    pub type Pair<E> = (<E as Pairing>::G1Affine, <E as Pairing>::G2Affine);

    /// A point of the first group, not infinite, and what [`Kernels::lines_on`] gave of one of the second.
    pub type FixedPair<'a, E> = (<E as Pairing>::G1Affine, &'a PreparedLines<E>);

    /// The pairs of a product, of points and of points with lines.
    pub type Terms<'a, E> = (&'a [Pair<E>], Vec<FixedPair<'a, E>>);

    /// The lines through a point of the second group and its multiples, as a back end has them.
    #[derive(Clone, Debug)]
    pub enum PreparedLines<E: PortablePairing> {
        /// Lines in the portable back end's form.
        Portable(E::Lines),
        /// Lines in the vector kernels' form: 64-bit words.
        Vector(Vec<u64>),
    }

    /// A curve's back ends.
    pub trait Kernels: PortablePairing {
        /// The lines of a point that is not infinite; `None` if this back end has no use for them.
        fn lines_on(set: InstructionSet, point: Self::G2Affine) -> Option<PreparedLines<Self>>;

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

        /// The final exponentiation of the product of all Miller loops, for each of some products, on this
        /// thread; `None` where it is of zero.
        fn value_each_on(
            set: InstructionSet,
            products: &[Terms<'_, Self>],
        ) -> Vec<Option<Self::TargetField>>;

        /// The final exponentiation of each value, on this thread; `None` of zero.
        fn final_exponentiation_each_on(
            set: InstructionSet,
            values: &[Self::TargetField],
        ) -> Vec<Option<Self::TargetField>>;

        /// `bases[i]^exponents[i]` of each of some elements of the target group, on this thread.
        fn power_each_here(
            set: InstructionSet,
            bases: &[PairingOutput<Self>],
            exponents: &[Self::ScalarField],
        ) -> Vec<Self::TargetField>;

        /// `Π bases[i]^exponents[i]` of elements of the target group, on this thread.
        fn multi_power_here(
            set: InstructionSet,
            bases: &[PairingOutput<Self>],
            exponents: &[Self::ScalarField],
        ) -> Self::TargetField;
    }
}

use sealed::{FixedPair, Kernels, Pair, PreparedLines, Terms};

/// The product of Miller loops by the portable back end.
fn portable_miller_loop<E: PortablePairing>(
    pairs: &[Pair<E>],
    fixed: &[FixedPair<'_, E>],
) -> MillerLoopOutput<E> {
    let fixed: Vec<(E::G1Affine, &E::Lines)> = fixed
        .iter()
        .filter_map(|(left, lines)| match lines {
            PreparedLines::Portable(lines) => Some((*left, lines)),
            PreparedLines::Vector(_) => None,
        })
        .collect();
    MillerLoopOutput(<E as PortablePairing>::miller_loop(pairs, &fixed))
}

/// Selects the pairs whose lines are in the vector kernels' form.
#[cfg(target_arch = "x86_64")]
macro_rules! vector_pairs {
    ($tower:ty, $fixed:expr) => {
        $fixed
            .iter()
            .filter_map(|(left, lines)| match lines {
                PreparedLines::Vector(lines) => Some(vector::FixedPair { left: *left, lines }),
                PreparedLines::Portable(_) => None,
            })
            .collect::<Vec<vector::FixedPair<'_, $tower, _, _>>>()
    };
}

/// Implements the curves: by arkworks' type and the configuration of the field Fq2.
macro_rules! curves {
    ($($curve:ty, $tower:ty;)*) => {$(
        impl PairingCurve for $curve {}

        impl Kernels for $curve {
            fn lines_on(set: InstructionSet, point: Self::G2Affine) -> Option<PreparedLines<Self>> {
                match checked(set) {
                    #[cfg(target_arch = "x86_64")]
                    InstructionSet::Avx512Ifma => {
                        let lines = <Self as Pairing>::G2Prepared::from(point);
                        vector::lines::<$tower, _, _>(&lines.ell_coeffs).map(PreparedLines::Vector)
                    }
                    _ => <Self as PortablePairing>::lines(&point).map(PreparedLines::Portable),
                }
            }

            fn takes(set: InstructionSet, (point, lines): &FixedPair<'_, Self>) -> bool {
                // Lines are divided by y.
                let can_divide = point.y != 0.into();
                match (set, lines) {
                    (InstructionSet::Portable, PreparedLines::Portable(_))
                    | (InstructionSet::Avx512Ifma, PreparedLines::Vector(_)) => can_divide,
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
                        let fixed = vector_pairs!($tower, fixed);
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
                    _ => <Self as PortablePairing>::power(&value),
                }
            }

            fn value_each_on(
                set: InstructionSet,
                products: &[Terms<'_, Self>],
            ) -> Vec<Option<Self::TargetField>> {
                match checked(set) {
                    #[cfg(target_arch = "x86_64")]
                    InstructionSet::Avx512Ifma => {
                        let mut terms = Vec::with_capacity(products.len());
                        for (pairs, fixed) in products {
                            let fixed = vector_pairs!($tower, fixed);
                            terms.push(vector::Terms { pairs, fixed });
                        }
                        vector::value_each::<$tower, _, _>(&terms)
                    }
                    _ => {
                        let value = |(pairs, fixed): &Terms<'_, Self>| {
                            <Self as PortablePairing>::power(&portable_miller_loop(pairs, fixed).0)
                        };
                        products.iter().map(value).collect()
                    }
                }
            }

            fn final_exponentiation_each_on(
                set: InstructionSet,
                values: &[Self::TargetField],
            ) -> Vec<Option<Self::TargetField>> {
                match checked(set) {
                    #[cfg(target_arch = "x86_64")]
                    InstructionSet::Avx512Ifma => {
                        vector::final_exponentiation_each::<$tower, _, _>(values)
                    }
                    _ => values.iter().map(<Self as PortablePairing>::power).collect(),
                }
            }

            fn power_each_here(
                set: InstructionSet,
                bases: &[PairingOutput<Self>],
                exponents: &[Self::ScalarField],
            ) -> Vec<Self::TargetField> {
                match checked(set) {
                    #[cfg(target_arch = "x86_64")]
                    InstructionSet::Avx512Ifma => {
                        let bases: Vec<_> = bases.iter().map(|base| base.0).collect();
                        vector::power_each::<$tower, _, _, _>(&bases, exponents)
                    }
                    _ => bases
                        .chunks(1)
                        .zip(exponents.chunks(1))
                        .map(|(base, exponent)| portable_multi_power(base, exponent))
                        .collect(),
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
                    _ => portable_multi_power(bases, exponents),
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
