//! The kernels as safe functions.

use ark_ff::PrimeField;

use super::super::field::Fp;
use super::super::vector_field::Layout;
use super::each::{self, Terms};
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
/// Every function: if this machine lacks the instructions.
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

/// See [`exponentiation::final_exponentiation_each`].
pub(crate) fn final_exponentiation_each<E: Tower<L, N>, const L: usize, const N: usize>(
    values: &[Element<E, L, N>],
) -> Vec<Option<Element<E, L, N>>>
where
    Fp<E::Base, L, N>: Layout<E::Base, N>,
{
    checked(InstructionSet::Avx512Ifma);
    // SAFETY: the instructions are there.
    unsafe { exponentiation::final_exponentiation_each::<E, L, N>(values) }
}

/// See [`each::value_each`].
pub(crate) fn value_each<E: Tower<L, N>, const L: usize, const N: usize>(
    products: &[Terms<'_, E, L, N>],
) -> Vec<Option<Element<E, L, N>>>
where
    Fp<E::Base, L, N>: Layout<E::Base, N>,
{
    checked(InstructionSet::Avx512Ifma);
    // SAFETY: the instructions are there.
    unsafe { each::value_each::<E, L, N>(products) }
}

/// See [`power::power_each`].
pub(crate) fn power_each<E: Tower<L, N>, F: PrimeField, const L: usize, const N: usize>(
    bases: &[Element<E, L, N>],
    exponents: &[F],
) -> Vec<Element<E, L, N>>
where
    Fp<E::Base, L, N>: Layout<E::Base, N>,
{
    checked(InstructionSet::Avx512Ifma);
    assert_eq!(bases.len(), exponents.len(), "one exponent for each base");
    // SAFETY: the instructions are there.
    unsafe { power::power_each::<E, F, L, N>(bases, exponents) }
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
