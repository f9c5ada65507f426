//! An inverse in a prime field by a binary GCD.
//!
//! T. Pornin, "Optimized Binary GCD for Modular Inversion" (<https://eprint.iacr.org/2020/972>),
//! algorithm 2, but in variable time: the low bits decide 31 steps and the high bits estimate which
//! number is the larger, so that whole numbers are touched once for 31 steps.

use ark_ff::{BigInt, Fp, MontBackend, MontConfig};

use crate::msm::words::{add, subtract};

/// Halvings between two updates of the whole numbers.
const STEPS: u32 = 31;

/// A linear combination of two numbers.
type Factors = [i64; 2];

/// `1/value`, unless that is zero.
pub(crate) fn inverse<C: MontConfig<N>, const N: usize>(
    value: &Fp<MontBackend<C, N>, N>,
) -> Option<Fp<MontBackend<C, N>, N>> {
    let modulus = &C::MODULUS.0;
    // Modulo p, u·value = R²·a and v·value = R²·b all the way, `value` being in Montgomery form:
    // for b = 1 then v is the inverse in Montgomery form.
    let (mut a, mut b) = (value.0.0, *modulus);
    let (mut u, mut v) = (C::R2.0, [0; N]);
    if a == [0; N] {
        return None;
    }
    while a != [0; N] {
        let [of_a, of_b] = steps(&a, &b).map(|mut factors| {
            let (number, high) = combine(&a, &b, factors, &[0; N], 0);
            let negative = high < 0;
            if negative {
                factors = factors.map(|factor| -factor);
            }
            let number = if negative { negate(number) } else { number };
            (number, reduced::<C, N>(&u, &v, factors))
        });
        ((a, u), (b, v)) = (of_a, of_b);
    }
    debug_assert!(
        b[0] == 1,
        "a prime has no divisor in common with what is below it"
    );
    Some(Fp::new_unchecked(BigInt(v)))
}

/// The factors that make `STEPS` steps of the binary GCD of `a` and an odd `b`: those of the new a,
/// and those of the new b, both times 2^STEPS.
fn steps<const N: usize>(a: &[u64; N], b: &[u64; N]) -> [Factors; 2] {
    let (mut a, mut b) = approximate(a, b);
    let mut of_a: Factors = [1, 0];
    let mut of_b: Factors = [0, 1];
    let mut left = STEPS;
    loop {
        let zeros = a.trailing_zeros().min(left);
        a >>= zeros;
        of_b = of_b.map(|factor| factor << zeros);
        left -= zeros;
        if left == 0 {
            return [of_a, of_b];
        }
        // Both are odd. Which is larger is no branch: it would be mispredicted half the time.
        let swap = a < b;
        let (larger, smaller) = if swap { (b, a) } else { (a, b) };
        let (of_larger, of_smaller) = if swap { (of_b, of_a) } else { (of_a, of_b) };
        (a, b) = (larger - smaller, smaller);
        of_a = [of_larger[0] - of_smaller[0], of_larger[1] - of_smaller[1]];
        of_b = of_smaller;
    }
}

/// The lowest 31 and the highest 33 bits of two numbers, the same places of both; the whole numbers
/// if those are all.
fn approximate<const N: usize>(a: &[u64; N], b: &[u64; N]) -> (u64, u64) {
    let top = (1..N).rev().find(|i| a[*i] | b[*i] != 0);
    let Some(top) = top else {
        return (a[0], b[0]);
    };
    let shift = (a[top] | b[top]).leading_zeros();
    let take = |number: &[u64; N]| {
        let pair = u128::from(number[top]) << 64 | u128::from(number[top - 1]);
        let high = (pair << shift >> 64) as u64;
        high >> STEPS << STEPS | number[0] & ((1 << STEPS) - 1)
    };
    (take(a), take(b))
}

/// `(x·f + y·g)/2^31` modulo p, below p, of x and y below p.
fn reduced<C: MontConfig<N>, const N: usize>(
    x: &[u64; N],
    y: &[u64; N],
    factors: Factors,
) -> [u64; N] {
    let modulus = &C::MODULUS.0;
    let low = x[0]
        .wrapping_mul(factors[0] as u64)
        .wrapping_add(y[0].wrapping_mul(factors[1] as u64));
    // What makes the lowest bits zero: the sum is above −2^31·p and below 2^32·p.
    let multiple = low.wrapping_mul(C::INV) & ((1 << STEPS) - 1);
    let (sum, high) = combine(x, y, factors, modulus, multiple as i64);
    let mut other = sum;
    if high < 0 {
        add(&mut other, modulus);
        return other;
    }
    let below = subtract(&mut other, modulus);
    if below { sum } else { other }
}

/// `(x·f + y·g + z·h)/2^31`, which must be an integer: its words, and the part above them.
fn combine<const N: usize>(
    x: &[u64; N],
    y: &[u64; N],
    [f, g]: Factors,
    z: &[u64; N],
    h: i64,
) -> ([u64; N], i64) {
    let product = |word: u64, factor: i64| i128::from(word) * i128::from(factor);
    let mut result = [0; N];
    let mut carry = 0;
    for i in 0..N {
        carry += product(x[i], f) + product(y[i], g) + product(z[i], h);
        let word = carry as u64;
        if i > 0 {
            result[i - 1] |= word << (64 - STEPS);
        }
        result[i] = word >> STEPS;
        carry >>= 64;
    }
    let high = carry as i64;
    result[N - 1] |= (high as u64) << (64 - STEPS);
    (result, high >> STEPS)
}

fn negate<const N: usize>(words: [u64; N]) -> [u64; N] {
    let mut negated = [0; N];
    subtract(&mut negated, &words);
    negated
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ff::{AdditiveGroup, Field, PrimeField, UniformRand};

    fn check<C: MontConfig<N>, const N: usize>() {
        type Element<C, const N: usize> = Fp<MontBackend<C, N>, N>;
        let rng = &mut ark_std::test_rng();
        let mut values = vec![Element::<C, N>::ZERO, Element::ONE, -Element::<C, N>::ONE];
        // Numbers of every length, above and below powers of two, in and out of Montgomery form.
        for bits in 0..Element::<C, N>::MODULUS_BIT_SIZE - 1 {
            let power = Element::<C, N>::from(2u64).pow([u64::from(bits)]);
            let raw = Element::<C, N>::new_unchecked(power.into_bigint());
            for value in [power, raw] {
                values.extend([value, value + Element::ONE, value - Element::<C, N>::ONE]);
            }
        }
        values.extend((0..1000).map(|_| Element::<C, N>::rand(rng)));
        for value in values {
            assert_eq!(inverse(&value), value.inverse(), "{value}");
        }
    }

    #[test]
    fn inverses_are_arkworks() {
        check::<ark_bls12_381::FqConfig, 6>();
        check::<ark_bls12_377::FqConfig, 6>();
        check::<ark_bn254::FqConfig, 4>();
        check::<ark_bn254::FrConfig, 4>();
    }
}
