//! Powers in the target group, eight elements side by side, and products of them with all squarings shared.

use ark_ff::PrimeField;

use super::super::field::Fp;
use super::super::vector_field::Layout;
use super::accumulator::Accumulator;
use super::cyclotomic::Cyclotomic;
use super::lanes::Element;
use super::line_product::LineProduct;
use super::tower::Tower;

/// Powers in a table: 1 to 8.
const POWERS: usize = 8;
/// Bits of a digit.
const DIGIT_BITS: usize = 4;

/// Signed digits of four bits, the lowest first: each in −7..=8.
fn digits(number: &[u64]) -> Vec<i8> {
    let mut digits = Vec::with_capacity(64 / DIGIT_BITS * number.len() + 1);
    let mut carry = 0;
    for word in number {
        for i in 0..64 / DIGIT_BITS {
            let digit = (word >> (DIGIT_BITS * i)) as i8 & 15;
            let digit = digit + carry;
            carry = i8::from(digit > POWERS as i8);
            digits.push(digit - (carry << DIGIT_BITS));
        }
    }
    digits.push(carry);
    digits
}

/// `Π bases[i]^exponents[i]` of elements of the cyclotomic subgroup, in which the conjugate is the
/// inverse.
///
/// # Safety
///
/// The instructions of this back end; as many bases as exponents.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
pub(crate) unsafe fn multi_power<E: Tower<L, N>, F: PrimeField, const L: usize, const N: usize>(
    bases: &[Element<E, L, N>],
    exponents: &[F],
) -> Element<E, L, N>
where
    Fp<E::Base, L, N>: Layout<E::Base, N>,
{
    // SAFETY: as the caller promises.
    unsafe { product_of_powers::<E, F, L, N>(bases, exponents).value() }
}

/// `bases[i]^exponents[i]` of each of some elements of the cyclotomic subgroup.
///
/// # Safety
///
/// The instructions of this back end; as many bases as exponents.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
pub(crate) unsafe fn power_each<E: Tower<L, N>, F: PrimeField, const L: usize, const N: usize>(
    bases: &[Element<E, L, N>],
    exponents: &[F],
) -> Vec<Element<E, L, N>>
where
    Fp<E::Base, L, N>: Layout<E::Base, N>,
{
    let mut powers = Vec::with_capacity(bases.len());
    for (bases, exponents) in bases.chunks(8).zip(exponents.chunks(8)) {
        // SAFETY: as the caller promises.
        let elements = unsafe { product_of_powers::<E, F, L, N>(bases, exponents).elements() };
        powers.extend(elements.into_iter().take(bases.len()));
    }
    powers
}

/// The product, in each lane, of the powers of every eighth element.
///
/// # Safety
///
/// The instructions of this back end; as many bases as exponents.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
unsafe fn product_of_powers<E: Tower<L, N>, F: PrimeField, const L: usize, const N: usize>(
    bases: &[Element<E, L, N>],
    exponents: &[F],
) -> Accumulator<E, L, N>
where
    Fp<E::Base, L, N>: Layout<E::Base, N>,
{
    let recoded: Vec<Vec<i8>> = exponents
        .iter()
        .map(|exponent| digits(exponent.into_bigint().as_ref()))
        .collect();
    let places = recoded.iter().map(|digits| significant(digits)).max();
    let places = places.unwrap_or(0);
    let mut tables = Vec::with_capacity(bases.len().div_ceil(8));
    // SAFETY: as the caller promises.
    unsafe {
        for bases in bases.chunks(8) {
            tables.push(powers::<E, L, N>(bases));
        }
        let mut product = Accumulator::<E, L, N>::one();
        for place in (0..places).rev() {
            if place + 1 < places {
                for _ in 0..DIGIT_BITS {
                    product = product.cyclotomic_square();
                }
            }
            for (table, recoded) in tables.iter().zip(recoded.chunks(8)) {
                let mut of_power = [0; POWERS];
                let mut negative = 0;
                for (lane, digits) in recoded.iter().enumerate() {
                    let digit = digits[place];
                    if digit != 0 {
                        of_power[usize::from(digit.unsigned_abs()) - 1] |= 1 << lane;
                    }
                    negative |= u8::from(digit < 0) << lane;
                }
                if of_power != [0; POWERS] {
                    product.multiply(&select(table, &of_power, negative));
                }
            }
        }
        product
    }
}

/// Digits up to the last that is not zero.
fn significant(digits: &[i8]) -> usize {
    let last = digits.iter().rposition(|digit| *digit != 0);
    last.map_or(0, |last| last + 1)
}

/// The powers 1 to 8 of one to eight elements, of which the first takes the lanes that no other does.
///
/// # Safety
///
/// The instructions of this back end; so below.
#[inline(always)]
unsafe fn powers<E: Tower<L, N>, const L: usize, const N: usize>(
    bases: &[Element<E, L, N>],
) -> [Accumulator<E, L, N>; POWERS]
where
    Fp<E::Base, L, N>: Layout<E::Base, N>,
{
    // SAFETY: as the caller promises.
    unsafe {
        let first = Accumulator::<E, L, N>::load(bases);
        let mut powers = [first; POWERS];
        for i in 1..POWERS {
            let mut power = powers[i - 1];
            power.multiply(&first);
            powers[i] = power;
        }
        powers
    }
}

/// Each lane's power, conjugated in `negative` lanes; one where a lane has none.
#[inline(always)]
unsafe fn select<E: Tower<L, N>, const L: usize, const N: usize>(
    table: &[Accumulator<E, L, N>; POWERS],
    of_power: &[u8; POWERS],
    negative: u8,
) -> Accumulator<E, L, N>
where
    Fp<E::Base, L, N>: Layout<E::Base, N>,
{
    // SAFETY: as the caller promises.
    unsafe {
        let mut selected = Accumulator::<E, L, N>::one();
        for (power, lanes) in table.iter().zip(of_power) {
            if *lanes != 0 {
                let pairs = selected.coefficients.iter_mut().zip(&power.coefficients);
                for (selected, coefficient) in pairs {
                    *selected = selected.replaced(*lanes, *coefficient);
                }
            }
        }
        if negative != 0 {
            let inverse = selected.conjugate();
            let pairs = selected.coefficients.iter_mut().zip(inverse.coefficients);
            for (selected, inverse) in pairs {
                *selected = selected.replaced(negative, inverse);
            }
        }
        selected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_make_up_the_number() {
        for words in [
            [0, 0],
            [1, 0],
            [u64::MAX; 2],
            [0x8888_8888_8888_8888; 2],
            [9, 1 << 63],
        ] {
            let digits = digits(&words);
            assert!(digits.iter().all(|digit| (-7..=8).contains(digit)));
            // Modulo 2¹²⁸; beyond it there is the last digit only.
            let sum = digits[..32].iter().rev().fold(0_u128, |sum, digit| {
                sum.wrapping_mul(16).wrapping_add_signed((*digit).into())
            });
            let number = u128::from(words[1]) << 64 | u128::from(words[0]);
            assert_eq!(sum, number);
            assert_eq!(digits.len(), 33);
            assert!(digits[32] == 0 || number >> 127 == 1);
        }
    }
}
