//! The final exponentiation.

use super::curve::{Curve, Family};
use super::power::cyclotomic_power;
use super::tower::{ArkFq12, Fq12, cyclotomic_square, inverse, product};

/// The power by `(q¹² − 1)/r`, times 3 (BLS12 curves) or `2x·(6x² + 3x + 1)` (BN curves): the same
/// as arkworks'. `None` if the value is zero.
pub(crate) fn final_exponentiation<C: Curve<N>, const N: usize>(
    value: &ArkFq12<C, N>,
) -> Option<ArkFq12<C, N>> {
    let value = Fq12::of_arkworks(value);
    let inverse = inverse::<C, N>(&value)?;
    // The easy part: the power by (q⁶ − 1)(q² + 1) is in the cyclotomic subgroup.
    let value = product::<C, N>(&value.conjugate(), &inverse);
    let value = product::<C, N>(&value.frobenius(2), &value);
    let power = match C::FAMILY {
        Family::Bls12 => hard_part_bls12::<C, N>(&value),
        Family::Bn(_) => hard_part_bn::<C, N>(&value),
    };
    Some(power.to_arkworks())
}

/// The power by `3·(q⁴ − q² + 1)/r = (x − 1)²·(x + q)·(x² + q² − 1) + 3`: Hayashida, Hayasaka,
/// Teruya, "Efficient Final Exponentiation via Cyclotomic Structure for Pairings over Families of
/// Elliptic Curves" (ePrint 2020/875).
fn hard_part_bls12<C: Curve<N>, const N: usize>(f: &Fq12<C, N>) -> Fq12<C, N> {
    let digits = C::parameter_digits();
    let power = |value: &Fq12<C, N>| cyclotomic_power::<C, N>(value, &digits);
    let times = product::<C, N>;

    let a = times(&power(f), &f.conjugate());
    let a = times(&power(&a), &a.conjugate());
    let a = times(&power(&a), &a.frobenius(1));
    let b = power(&power(&a));
    let b = times(&b, &a.frobenius(2));
    let b = times(&b, &a.conjugate());
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
    let first = times(&second, &x2.conjugate());
    let zeroth = times(&times(&second, &xx6), f);
    let third = times(&first, &f.conjugate());
    let low = times(&zeroth, &first.frobenius(1));
    let high = times(&second.frobenius(2), &third.frobenius(3));
    times(&low, &high)
}
