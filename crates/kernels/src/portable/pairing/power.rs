//! Powers in the cyclotomic subgroup, in which an inverse is a conjugate.

use super::curve::Curve;
use super::tower::{Fq12, cyclotomic_square, product};

/// Odd powers of an element, as many as digits of five bits need.
const ODD_POWERS: usize = 8;

/// Digits of a number, which is not zero, the highest first: odd ones below `2^(width−1)` in
/// absolute value, and at least `width − 1` zeros between any two of them (the non-adjacent form
/// for width 2).
pub(super) fn signed_digits(number: u64, width: u32) -> Vec<i8> {
    assert!((2..=5).contains(&width), "a power for each digit");
    let mut rest = i128::from(number);
    let mut digits = Vec::with_capacity(65);
    while rest > 0 {
        let mut digit = 0;
        if rest & 1 == 1 {
            digit = rest & ((1 << width) - 1);
            if digit >> (width - 1) == 1 {
                digit -= 1 << width;
            }
        }
        digits.push(digit as i8);
        rest = (rest - digit) >> 1;
    }
    digits.reverse();
    digits
}

/// The power whose exponent has these digits, in the form of [`signed_digits`]. `value` must be in the
/// cyclotomic subgroup.
pub(super) fn cyclotomic_power<C: Curve<N>, const N: usize>(
    value: &Fq12<C, N>,
    digits: &[i8],
) -> Fq12<C, N> {
    let largest = digits.iter().map(|digit| digit.unsigned_abs()).max();
    let mut powers = Vec::with_capacity(ODD_POWERS);
    powers.push(*value);
    if largest > Some(1) {
        let square = cyclotomic_square::<C, N>(value);
        for i in 0..usize::from(largest.unwrap_or(1) / 2) {
            powers.push(product::<C, N>(&powers[i], &square));
        }
    }
    let mut power: Option<Fq12<C, N>> = None;
    for digit in digits {
        power = power.map(|power| cyclotomic_square::<C, N>(&power));
        if *digit == 0 {
            continue;
        }
        let mut factor = powers[usize::from(digit.unsigned_abs() / 2)];
        if *digit < 0 {
            factor = factor.conjugate();
        }
        power = Some(power.map_or(factor, |power| product::<C, N>(&power, &factor)));
    }
    power.expect("a number that is not zero has a digit that is not")
}

#[cfg(test)]
mod tests {
    use super::signed_digits;

    #[test]
    fn digits_are_the_number() {
        for number in [1, 2, 3, 7, 8, 0xaaaa_aaaa, u64::MAX, u64::MAX - 1, 1 << 63] {
            for width in 2..=5 {
                let digits = signed_digits(number, width);
                let value = digits
                    .iter()
                    .fold(0, |value, digit| 2 * value + i128::from(*digit));
                assert_eq!(value, i128::from(number));
                let few = digits.iter().filter(|digit| **digit != 0).count();
                assert!(few as u32 <= 64 / width + 1, "{few} of width {width}");
                for digit in digits {
                    assert!(digit == 0 || digit % 2 != 0);
                    assert!(u32::from(digit.unsigned_abs()) < 1 << (width - 1));
                }
            }
        }
    }
}
