//! Inner products that reduce their sums only.
//!
//! A Montgomery product is half a product and half a reduction. A sum of up to sixteen products
//! needs one reduction, so a long inner product takes half the time.

use ark_ff::{BigInt, BigInteger, Fp, MontBackend, MontConfig};

/// Words of an element.
const WORDS: usize = 4;
/// The most products of two 254-bit numbers whose sum is sure to have at most 512 bits.
const TERMS: usize = 16;

/// Elements of a 254-bit field.
type Element<C> = Fp<MontBackend<C, WORDS>, WORDS>;

/// Σ left[i]·right[i].
pub(crate) fn inner_product<C: MontConfig<WORDS>>(
    left: &[Element<C>],
    right: &[Element<C>],
) -> Element<C> {
    const {
        assert!(
            C::MODULUS.0[WORDS - 1] >> 62 == 0,
            "a modulus of at most 254 bits"
        )
    };
    debug_assert_eq!(left.len(), right.len());
    left.chunks(TERMS)
        .zip(right.chunks(TERMS))
        .map(|(left, right)| {
            let mut sum = [0; 2 * WORDS];
            for (left, right) in left.iter().zip(right) {
                add_product(&mut sum, &left.0.0, &right.0.0);
            }
            reduce::<C>(sum)
        })
        .sum()
}

/// `sum += left·right`. The sum must have room.
#[inline(always)]
fn add_product(sum: &mut [u64; 2 * WORDS], left: &[u64; WORDS], right: &[u64; WORDS]) {
    // Each product is computed separately, so that carries run through the sum once.
    let mut product = [0; 2 * WORDS];
    for i in 0..WORDS {
        let mut carry = 0;
        for j in 0..WORDS {
            (product[i + j], carry) = multiply_add(product[i + j], left[i], right[j], carry);
        }
        product[i + WORDS] = carry;
    }
    let mut carry = false;
    for (word, added) in sum.iter_mut().zip(product) {
        let (first, over) = word.overflowing_add(added);
        let (second, over_again) = first.overflowing_add(u64::from(carry));
        *word = second;
        carry = over | over_again;
    }
    debug_assert!(!carry, "a sum beyond 512 bits");
}

/// The element whose Montgomery form, times 2²⁵⁶, is the sum modulo the modulus.
///
/// A sum of sixteen products of numbers below p is below 16·p², so its reduction is below
/// 16·p²/2²⁵⁶ + p ≤ 5·p, which has 256 bits.
fn reduce<C: MontConfig<WORDS>>(mut sum: [u64; 2 * WORDS]) -> Element<C> {
    let modulus = C::MODULUS;
    let mut overflow = 0;
    for i in 0..WORDS {
        let factor = sum[i].wrapping_mul(C::INV);
        let mut carry = 0;
        for j in 0..WORDS {
            (sum[i + j], carry) = multiply_add(sum[i + j], factor, modulus.0[j], carry);
        }
        (sum[i + WORDS], overflow) = add_carry(sum[i + WORDS], carry, overflow);
    }
    debug_assert_eq!(overflow, 0, "what is left has 256 bits");
    let mut rest = BigInt([sum[4], sum[5], sum[6], sum[7]]);
    while rest >= modulus {
        rest.sub_with_borrow(&modulus);
    }
    Element::<C>::new_unchecked(rest)
}

/// `number + left·right + carry`, which has 128 bits, as lower and upper half.
#[inline(always)]
fn multiply_add(number: u64, left: u64, right: u64, carry: u64) -> (u64, u64) {
    let sum = u128::from(number) + u128::from(left) * u128::from(right) + u128::from(carry);
    (sum as u64, (sum >> 64) as u64)
}

#[inline(always)]
fn add_carry(left: u64, right: u64, carry: u64) -> (u64, u64) {
    let sum = u128::from(left) + u128::from(right) + u128::from(carry);
    (sum as u64, (sum >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_bn254::Fq as Scalar;
    use ark_ff::{One, PrimeField, UniformRand, Zero};

    fn naive(left: &[Scalar], right: &[Scalar]) -> Scalar {
        left.iter().zip(right).map(|(l, r)| *l * r).sum()
    }

    #[test]
    fn random_products_are_arkworks() {
        let rng = &mut ark_std::test_rng();
        for length in 0..70 {
            let mut draw = || -> Vec<_> { (0..length).map(|_| Scalar::rand(rng)).collect() };
            let (left, right) = (draw(), draw());
            assert_eq!(
                inner_product(&left, &right),
                naive(&left, &right),
                "{length}"
            );
        }
    }

    /// The largest numbers there are in Montgomery form, which no other sums exceed.
    #[test]
    fn largest_products_fit() {
        let mut largest = Scalar::MODULUS;
        largest.sub_with_borrow(&BigInt::from(1u64));
        let largest = Scalar::new_unchecked(largest);
        for length in [1, 15, 16, 17, 32, 100] {
            let values = vec![largest; length];
            assert_eq!(inner_product(&values, &values), naive(&values, &values));
        }
    }

    #[test]
    fn zeros_and_ones() {
        let values = [Scalar::zero(), Scalar::one(), -Scalar::one()];
        assert_eq!(inner_product(&values, &values), Scalar::from(2));
        assert_eq!(
            inner_product::<_>(&values[..0], &values[..0]),
            Scalar::zero()
        );
    }
}
