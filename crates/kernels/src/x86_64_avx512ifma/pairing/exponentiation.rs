//! The final exponentiation of one value.

use ark_ff::Field;

use super::super::field::Fp;
use super::super::vector_field::Layout;
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
        let value = value.frobenius::<2>(&constants).times(&value);
        let power = match E::FAMILY {
            Family::Bls12 => hard_part_bls12(&value, &constants),
            Family::Bn => hard_part_bn(&value, &constants),
        };
        Some(power.element())
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
unsafe fn hard_part_bls12<E: Tower<L, N>, const L: usize, const N: usize>(
    f: &Lanes<E, L, N>,
    constants: &FrobeniusConstants<E, L, N>,
) -> Lanes<E, L, N> {
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
unsafe fn hard_part_bn<E: Tower<L, N>, const L: usize, const N: usize>(
    f: &Lanes<E, L, N>,
    constants: &FrobeniusConstants<E, L, N>,
) -> Lanes<E, L, N> {
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
