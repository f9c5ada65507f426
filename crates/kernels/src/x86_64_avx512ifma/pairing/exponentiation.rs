//! The final exponentiation, of one value or of eight side by side.

use std::arch::x86_64::__mmask8;

use ark_ff::Field;

use super::super::field::Fp;
use super::super::vector_field::Layout;
use super::accumulator::Accumulator;
use super::cyclotomic::{Cyclotomic, FrobeniusConstantsX8};
use super::lanes::{Element, FrobeniusConstants, Lanes};
use super::tower::{Family, Tower};

/// The power by `(q¹² − 1)/r`, times 3 (BLS12 curves) or `2x·(6x² + 3x + 1)` (BN curves): the same
/// as arkworks'. `None` if the value is zero.
///
/// # Safety
///
/// The instructions of this back end.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
pub(crate) unsafe fn final_exponentiation<E: Tower<L, N>, const L: usize, const N: usize>(
    value: &Element<E, L, N>,
) -> Option<Element<E, L, N>>
where
    Fp<E::Base, L, N>: Layout<E::Base, N>,
{
    let inverse = value.inverse()?;
    // SAFETY: as the caller promises.
    unsafe {
        let constants = FrobeniusConstants::new();
        // The easy part: the power by (q⁶ − 1)(q² + 1) is in the cyclotomic subgroup.
        let value = Lanes::<E, L, N>::new(value).conjugate();
        let value = value.times(&Lanes::new(&inverse));
        Some(rest(&value, &constants).element())
    }
}

/// Like [`final_exponentiation`], for each lane. Also returns the lanes whose value is zero and whose result is
/// therefore invalid.
///
/// # Safety
///
/// The instructions of this back end.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
pub(super) unsafe fn of_eight<E: Tower<L, N>, const L: usize, const N: usize>(
    value: &Accumulator<E, L, N>,
) -> (Accumulator<E, L, N>, __mmask8)
where
    Fp<E::Base, L, N>: Layout<E::Base, N>,
{
    // SAFETY: as the caller promises.
    unsafe {
        let (value, zeros) = value.conjugate_by_self();
        (rest(&value, &FrobeniusConstantsX8::new()), zeros)
    }
}

/// Like [`final_exponentiation`], of each of the values.
///
/// # Safety
///
/// The instructions of this back end.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
pub(crate) unsafe fn final_exponentiation_each<E: Tower<L, N>, const L: usize, const N: usize>(
    values: &[Element<E, L, N>],
) -> Vec<Option<Element<E, L, N>>>
where
    Fp<E::Base, L, N>: Layout<E::Base, N>,
{
    let mut powers = Vec::with_capacity(values.len());
    for values in values.chunks(8) {
        // SAFETY: as the caller promises.
        let (power, zeros) = unsafe { of_eight(&Accumulator::<E, L, N>::load(values)) };
        // SAFETY: see above.
        let elements = unsafe { power.elements() };
        powers.extend(unless(elements, zeros).take(values.len()));
    }
    powers
}

/// Each lane's element; `None` for the lanes of the mask.
pub(super) fn unless<T>(elements: [T; 8], lanes: __mmask8) -> impl Iterator<Item = Option<T>> {
    let elements = elements.into_iter().enumerate();
    elements.map(move |(lane, element)| (lanes >> lane & 1 == 0).then_some(element))
}

/// The rest of the final exponentiation after the power by `q⁶ − 1`: the power by `q² + 1`, then the hard part.
///
/// # Safety
///
/// The instructions of this back end.
#[inline(always)]
unsafe fn rest<E, A, const L: usize, const N: usize>(value: &A, constants: &A::Frobenius) -> A
where
    E: Tower<L, N>,
    A: Cyclotomic<E, L, N>,
{
    // SAFETY: as the caller promises.
    unsafe {
        let value = value.frobenius::<2>(constants).times(value);
        match E::FAMILY {
            Family::Bls12 => hard_part_bls12(&value, constants),
            Family::Bn => hard_part_bn(&value, constants),
        }
    }
}

/// The power by `3·(q⁴ − q² + 1)/r = (x − 1)²·(x + q)·(x² + q² − 1) + 3`: Hayashida, Hayasaka,
/// Teruya, "Efficient Final Exponentiation via Cyclotomic Structure for Pairings over Families of
/// Elliptic Curves" (ePrint 2020/875).
///
/// # Safety
///
/// The instructions of this back end.
#[inline(always)]
unsafe fn hard_part_bls12<E, A, const L: usize, const N: usize>(
    f: &A,
    constants: &A::Frobenius,
) -> A
where
    E: Tower<L, N>,
    A: Cyclotomic<E, L, N>,
{
    // SAFETY: as the caller promises.
    unsafe {
        let a = f.power_of_parameter().times(&f.conjugate());
        let a = a.power_of_parameter().times(&a.conjugate());
        let a = a.power_of_parameter().times(&a.frobenius::<1>(constants));
        let b = a.power_of_parameter().power_of_parameter();
        let b = b.times(&a.frobenius::<2>(constants)).times(&a.conjugate());
        b.times(&f.cyclotomic_square()).times(f)
    }
}

/// The power by `2x·(6x² + 3x + 1)·(q⁴ − q² + 1)/r`: Fuentes-Castañeda, Knapp,
/// Rodríguez-Henríquez, "Faster Hashing to G2" (SAC 2011), section 5. With λ₀ + λ₁q + λ₂q² + λ₃q³:
/// λ₀ = 1 + 6x + 12x² + 12x³, λ₁ = 4x + 6x² + 12x³, λ₂ = 6x + 6x² + 12x³, λ₃ = −1 + 4x + 6x² + 12x³.
///
/// # Safety
///
/// The instructions of this back end.
#[inline(always)]
unsafe fn hard_part_bn<E, A, const L: usize, const N: usize>(f: &A, constants: &A::Frobenius) -> A
where
    E: Tower<L, N>,
    A: Cyclotomic<E, L, N>,
{
    // SAFETY: as the caller promises.
    unsafe {
        let x2 = f.power_of_parameter().cyclotomic_square();
        let x4 = x2.cyclotomic_square();
        let x6 = x4.times(&x2);
        let xx6 = x6.power_of_parameter();
        let xxx12 = xx6.cyclotomic_square().power_of_parameter();
        // 6x + 6x² + 12x³, and less 2x.
        let second = xxx12.times(&xx6).times(&x6);
        let first = second.times(&x2.conjugate());
        let zeroth = second.times(&xx6).times(f);
        let third = first.times(&f.conjugate());
        zeroth
            .times(&first.frobenius::<1>(constants))
            .times(&second.frobenius::<2>(constants))
            .times(&third.frobenius::<3>(constants))
    }
}
