//! Products of powers in the cyclotomic subgroup by arkworks' arithmetic: all squarings shared.

use ark_ec::pairing::{Pairing, PairingOutput};
use ark_ff::{BigInteger, CyclotomicMultSubgroup, One, PrimeField};

/// Width of the non-adjacent form: digits are odd and below 2⁴ in magnitude, every sixth bit on average.
const WIDTH: usize = 5;
/// Odd powers in a table: 1, 3, …, 15.
const POWERS: usize = 1 << (WIDTH - 2);

/// `Π bases[i]^exponents[i]` of elements of the cyclotomic subgroup, in which the conjugate is the inverse.
pub(crate) fn multi_power<E: Pairing>(
    bases: &[PairingOutput<E>],
    exponents: &[E::ScalarField],
) -> E::TargetField {
    let digits: Vec<Vec<i64>> = exponents
        .iter()
        .map(|exponent| exponent.into_bigint().find_wnaf(WIDTH).unwrap_or_default())
        .collect();
    let tables: Vec<[E::TargetField; POWERS]> =
        bases.iter().map(|base| odd_powers(&base.0)).collect();
    let places = digits.iter().map(Vec::len).max().unwrap_or(0);
    let mut product = E::TargetField::one();
    for place in (0..places).rev() {
        if place + 1 < places {
            product.cyclotomic_square_in_place();
        }
        for (digits, table) in digits.iter().zip(&tables) {
            match digits.get(place) {
                None | Some(0) => {}
                Some(digit) => {
                    let mut factor = table[(digit.unsigned_abs() / 2) as usize];
                    if *digit < 0 {
                        factor.cyclotomic_inverse_in_place();
                    }
                    product *= factor;
                }
            }
        }
    }
    product
}

/// The powers 1, 3, …, 15.
fn odd_powers<F: CyclotomicMultSubgroup>(base: &F) -> [F; POWERS] {
    let square = base.cyclotomic_square();
    let mut powers = [*base; POWERS];
    for i in 1..POWERS {
        powers[i] = powers[i - 1] * square;
    }
    powers
}
