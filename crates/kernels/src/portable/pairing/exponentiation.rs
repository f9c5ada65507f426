//! The final exponentiation.

use ark_ff::{CyclotomicMultSubgroup, Field};

use super::curve::{Curve, Family};
use super::power::cyclotomic_power;
use super::tower::{Fq12, cyclotomic_square, inverse, product};

/// The power by `(q¹² − 1)/r`, times 3 (BLS12 curves) or `2x·(6x² + 3x + 1)` (BN curves): the same
/// as arkworks'. `None` if the value is zero.
pub(crate) fn final_exponentiation<C: Curve<N>, const N: usize>(
    value: &Fq12<C, N>,
) -> Option<Fq12<C, N>> {
    let inverse = inverse::<C, N>(value)?;
    // The easy part: the power by (q⁶ − 1)(q² + 1) is in the cyclotomic subgroup.
    let value = product::<C, N>(&conjugate::<C, N>(value), &inverse);
    let value = product::<C, N>(&frobenius::<C, N>(&value, 2), &value);
    Some(match C::FAMILY {
        Family::Bls12 => hard_part_bls12::<C, N>(&value),
        Family::Bn(_) => hard_part_bn::<C, N>(&value),
    })
}

/// The power by `3·(q⁴ − q² + 1)/r = (x − 1)²·(x + q)·(x² + q² − 1) + 3`: Hayashida, Hayasaka,
/// Teruya, "Efficient Final Exponentiation via Cyclotomic Structure for Pairings over Families of
/// Elliptic Curves" (ePrint 2020/875).
fn hard_part_bls12<C: Curve<N>, const N: usize>(f: &Fq12<C, N>) -> Fq12<C, N> {
    let digits = C::parameter_digits();
    let power = |value: &Fq12<C, N>| cyclotomic_power::<C, N>(value, &digits);
    let times = product::<C, N>;

    let a = times(&power(f), &conjugate::<C, N>(f));
    let a = times(&power(&a), &conjugate::<C, N>(&a));
    let a = times(&power(&a), &frobenius::<C, N>(&a, 1));
    let b = power(&power(&a));
    let b = times(&b, &frobenius::<C, N>(&a, 2));
    let b = times(&b, &conjugate::<C, N>(&a));
    times(&times(&b, &cyclotomic_square::<C, N>(f)), f)
}

/// The power by `2x·(6x² + 3x + 1)·(q⁴ − q² + 1)/r`: Fuentes-Castañeda, Knapp,
/// Rodríguez-Henríquez, "Faster Hashing to G2" (SAC 2011), section 5. With λ₀ + λ₁q + λ₂q² + λ₃q³:
/// λ₀ = 1 + 6x + 12x² + 12x³, λ₁ = 4x + 6x² + 12x³, λ₂ = 6x + 6x² + 12x³, λ₃ = −1 + 4x + 6x² + 12x³.
fn hard_part_bn<C: Curve<N>, const N: usize>(f: &Fq12<C, N>) -> Fq12<C, N> {
    let digits = C::parameter_digits();
    let power = |value: &Fq12<C, N>| cyclotomic_power::<C, N>(value, &digits);
    let times = product::<C, N>;
    let square = cyclotomic_square::<C, N>;

    let x2 = square(&power(f));
    let x6 = times(&square(&x2), &x2);
    let xx6 = power(&x6);
    let xxx12 = power(&square(&xx6));
    // 6x + 6x² + 12x³, and less 2x.
    let second = times(&times(&xxx12, &xx6), &x6);
    let first = times(&second, &conjugate::<C, N>(&x2));
    let zeroth = times(&times(&second, &xx6), f);
    let third = times(&first, &conjugate::<C, N>(f));
    let low = times(&zeroth, &frobenius::<C, N>(&first, 1));
    let high = times(
        &frobenius::<C, N>(&second, 2),
        &frobenius::<C, N>(&third, 3),
    );
    times(&low, &high)
}

/// The inverse in the cyclotomic subgroup.
fn conjugate<C: Curve<N>, const N: usize>(value: &Fq12<C, N>) -> Fq12<C, N> {
    let mut conjugate = *value;
    conjugate.cyclotomic_inverse_in_place();
    conjugate
}

/// The power by `q^times`.
fn frobenius<C: Curve<N>, const N: usize>(value: &Fq12<C, N>, times: usize) -> Fq12<C, N> {
    let mut power = *value;
    power.frobenius_map_in_place(times);
    power
}
