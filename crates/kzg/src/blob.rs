//! Challenges of blobs, and the evaluation of blobs at them.

use ark_ff::{FftField, Field, PrimeField};
use sha2::{Digest, Sha256};

use crate::{BLOB_BYTES, BLOB_ELEMENTS, POINT_BYTES, Scalar};

/// Prefix of the hash that gives the challenge (`FIAT_SHAMIR_PROTOCOL_DOMAIN`).
const DOMAIN: &[u8; 16] = b"FSBLOBVERIFY_V1_";

/// Evaluates blobs at arbitrary points.
pub(crate) struct Evaluator {
    /// 1/ωʲ, where j is the number i with its eleven bits reversed.
    inverse_roots: Vec<Scalar>,
    /// 1/4096.
    inverse_size: Scalar,
}

/// The point that a blob is opened at (`compute_challenge`).
pub(crate) fn challenge(blob: &[u8; BLOB_BYTES], commitment: &[u8; POINT_BYTES]) -> Scalar {
    let hash = Sha256::new()
        .chain_update(DOMAIN)
        .chain_update((BLOB_ELEMENTS as u128).to_be_bytes())
        .chain_update(blob)
        .chain_update(commitment)
        .finalize();
    Scalar::from_be_bytes_mod_order(&hash)
}

/// A number with its lowest `bits` bits in the opposite order, and without the others.
pub(crate) fn reversed(number: usize, bits: u32) -> usize {
    number.reverse_bits() >> (usize::BITS - bits)
}

// === impl Evaluator ===

impl Evaluator {
    pub(crate) fn new() -> Self {
        let half = BLOB_ELEMENTS / 2;
        let root = Scalar::get_root_of_unity(BLOB_ELEMENTS as u64)
            .and_then(|root| root.inverse())
            .expect("the field has roots of unity of order 2³²");
        let powers: Vec<Scalar> =
            std::iter::successors(Some(Scalar::ONE), |power| Some(*power * root))
                .take(half)
                .collect();
        let inverse_size = Scalar::from(BLOB_ELEMENTS as u64).inverse();
        Self {
            inverse_roots: (0..half)
                .map(|i| powers[reversed(i, half.ilog2())])
                .collect(),
            inverse_size: inverse_size.expect("the modulus is no power of two"),
        }
    }

    /// The value at z of the polynomial that has these values at the roots of unity, in
    /// bit-reversed order (`evaluate_polynomial_in_evaluation_form`).
    ///
    /// Two neighbours are f(w) and f(−w). With f(X) = e(X²) + X·o(X²), the polynomial e + z·o has at
    /// w² the value (f(w) + f(−w))/2 + z·(f(w) − f(−w))/2w, and f's value at z². So half as many values
    /// remain, again in bit-reversed order. This takes two multiplications for each value and no inversion,
    /// and is also right at the roots of unity.
    pub(crate) fn evaluate(&self, mut values: Vec<Scalar>, mut z: Scalar) -> Scalar {
        assert_eq!(values.len(), BLOB_ELEMENTS, "a blob's values");
        while values.len() > 1 {
            let half = values.len() / 2;
            for i in 0..half {
                let (plus, minus) = (values[2 * i], values[2 * i + 1]);
                values[i] = plus + minus + (plus - minus) * self.inverse_roots[i] * z;
            }
            values.truncate(half);
            z.square_in_place();
        }
        // The halves that were left out.
        values[0] * self.inverse_size
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ff::{UniformRand, Zero};

    fn root() -> Scalar {
        Scalar::get_root_of_unity(BLOB_ELEMENTS as u64).unwrap()
    }

    /// The values of Σ coefficients[i]·Xⁱ, by Horner's rule.
    fn horner(coefficients: &[Scalar], x: Scalar) -> Scalar {
        let step = |value, coefficient: &Scalar| value * x + coefficient;
        coefficients.iter().rev().fold(Scalar::zero(), step)
    }

    fn values(coefficients: &[Scalar]) -> Vec<Scalar> {
        let at = |i| horner(coefficients, root().pow([reversed(i, 12) as u64]));
        (0..BLOB_ELEMENTS).map(at).collect()
    }

    #[test]
    fn values_are_those_of_the_polynomial() {
        let rng = &mut ark_std::test_rng();
        let evaluator = Evaluator::new();
        let mut coefficients: Vec<_> = (0..40).map(|_| Scalar::rand(rng)).collect();
        coefficients.resize(BLOB_ELEMENTS, Scalar::zero());
        coefficients[BLOB_ELEMENTS - 1] = Scalar::rand(rng);
        let values = values(&coefficients);
        let roots = [0, 1, 2, 2047, 2048, 4095].map(|power| root().pow([power]));
        let others = [Scalar::zero(), Scalar::from(2), Scalar::rand(rng)];
        for z in roots.into_iter().chain(others) {
            let expected = horner(&coefficients, z);
            assert_eq!(evaluator.evaluate(values.clone(), z), expected, "{z}");
        }
        for i in [0, 1, 2, 3, 1000, 4095] {
            let z = root().pow([reversed(i, 12) as u64]);
            assert_eq!(evaluator.evaluate(values.clone(), z), values[i]);
        }
    }
}
