//! The kernels as safe functions.

use ark_ff::PrimeField;

use super::super::field::Fp;
use super::super::vector_field::Layout;
use super::exponentiation;
use super::fixed::{self, Coefficients, FixedPair};
use super::lanes::Element;
use super::miller::{self, Pair};
use super::power;
use super::tower::Tower;
use crate::InstructionSet;
use crate::instruction_set::checked;

/// See [`fixed::lines`].
///
/// # Panics
///
/// Every function: if this machine has not the instructions.
pub(crate) fn lines<E: Tower<L, N>, const L: usize, const N: usize>(
    coefficients: &[Coefficients<E>],
) -> Option<Vec<u64>>
where
    Fp<E::Base, L, N>: Layout<E::Base, N>,
{
    checked(InstructionSet::Avx512Ifma);
    // SAFETY: the instructions are there.
    unsafe { fixed::lines::<E, L, N>(coefficients) }
}

/// See [`miller::miller_loop`].
pub(crate) fn miller_loop<E: Tower<L, N>, const L: usize, const N: usize>(
    pairs: &[Pair<E, L, N>],
    fixed: &[FixedPair<'_, E, L, N>],
) -> Element<E, L, N>
where
    Fp<E::Base, L, N>: Layout<E::Base, N>,
{
    checked(InstructionSet::Avx512Ifma);
    // SAFETY: the instructions are there.
    unsafe { miller::miller_loop::<E, L, N>(pairs, fixed) }
}

/// See [`exponentiation::final_exponentiation`].
pub(crate) fn final_exponentiation<E: Tower<L, N>, const L: usize, const N: usize>(
    value: &Element<E, L, N>,
) -> Option<Element<E, L, N>>
where
    Fp<E::Base, L, N>: Layout<E::Base, N>,
{
    checked(InstructionSet::Avx512Ifma);
    // SAFETY: the instructions are there.
    unsafe { exponentiation::final_exponentiation::<E, L, N>(value) }
}

/// See [`power::multi_power`].
pub(crate) fn multi_power<E: Tower<L, N>, F: PrimeField, const L: usize, const N: usize>(
    bases: &[Element<E, L, N>],
    exponents: &[F],
) -> Element<E, L, N>
where
    Fp<E::Base, L, N>: Layout<E::Base, N>,
{
    checked(InstructionSet::Avx512Ifma);
    assert_eq!(bases.len(), exponents.len(), "one exponent for each base");
    // SAFETY: the instructions are there.
    unsafe { power::multi_power::<E, F, L, N>(bases, exponents) }
}
