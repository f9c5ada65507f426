//! Challenges as hashes of all messages before: the transform of Fiat and Shamir (CRYPTO 1986).
//!
//! A chain of SHA-256. `docs/aggregation-transcript.md` lists the labels and their order.

use ark_ec::AffineRepr;
use ark_ec::pairing::PairingOutput;
use ark_ff::{Field, PrimeField};
use sha2::{Digest, Sha256};

use crate::torus::{AggregationCurve, write_elements};

/// Version of all protocols of this crate: the first thing that is hashed.
const VERSION: &[u8] = b"proofmill aggregation v1";

/// Bytes of a challenge before it is reduced: 512 bits, so that it is as good as uniform.
const WIDE_BYTES: usize = 64;

/// The running hash of all messages so far.
#[derive(Clone, Debug)]
pub struct Transcript {
    hasher: Sha256,
}

// === impl Transcript ===

impl Transcript {
    /// The beginning of a protocol over a curve.
    pub fn new<E: AggregationCurve>(protocol: &str) -> Self {
        let mut transcript = Self {
            hasher: Sha256::new(),
        };
        transcript.absorb("version", VERSION);
        transcript.absorb("protocol", protocol.as_bytes());
        transcript.absorb("curve", E::CURVE.name().as_bytes());
        transcript
    }

    /// Takes bytes: label and bytes each after their length, so that no two lists of them are alike.
    pub fn absorb(&mut self, label: &str, bytes: &[u8]) {
        self.hasher.update([1]);
        for part in [label.as_bytes(), bytes] {
            self.hasher.update((part.len() as u64).to_le_bytes());
            self.hasher.update(part);
        }
    }

    /// Takes a number.
    pub fn absorb_number(&mut self, label: &str, number: u64) {
        self.absorb(label, &number.to_le_bytes());
    }

    /// Takes field elements, each in little-endian bytes.
    pub fn absorb_scalars<F: PrimeField>(&mut self, label: &str, scalars: &[F]) {
        let mut bytes = Vec::with_capacity(scalars.len() * 32);
        for scalar in scalars {
            scalar
                .serialize_compressed(&mut bytes)
                .expect("writing to a vector does not fail");
        }
        self.absorb(label, &bytes);
    }

    /// Takes points, compressed.
    pub fn absorb_points<A: AffineRepr>(&mut self, label: &str, points: &[A]) {
        let mut bytes = Vec::with_capacity(points.len() * 96);
        for point in points {
            point
                .serialize_compressed(&mut bytes)
                .expect("writing to a vector does not fail");
        }
        self.absorb(label, &bytes);
    }

    /// Takes elements of the target group, compressed.
    pub fn absorb_elements<E: AggregationCurve>(
        &mut self,
        label: &str,
        elements: &[PairingOutput<E>],
    ) {
        let mut bytes = Vec::new();
        write_elements(elements, &mut bytes);
        self.absorb(label, &bytes);
    }

    /// A challenge of the whole field, not zero.
    pub fn scalar<F: PrimeField>(&mut self, label: &str) -> F {
        nonzero(F::from_le_bytes_mod_order(&self.challenge(label)))
    }

    /// A challenge of 128 bits, not zero.
    pub fn short_scalar<F: PrimeField>(&mut self, label: &str) -> F {
        nonzero(F::from_le_bytes_mod_order(&self.challenge(label)[..16]))
    }

    /// The hash of all that was taken.
    pub fn digest(mut self, label: &str) -> [u8; 32] {
        let mut digest = [0; 32];
        digest.copy_from_slice(&self.challenge(label)[..32]);
        digest
    }

    fn challenge(&mut self, label: &str) -> [u8; WIDE_BYTES] {
        self.hasher.update([2]);
        self.hasher.update((label.len() as u64).to_le_bytes());
        self.hasher.update(label);
        let state = self.hasher.finalize_reset();
        // What follows begins with the state; a block of output begins with another byte.
        self.hasher.update([3]);
        self.hasher.update(state);
        let mut wide = [0; WIDE_BYTES];
        for (number, block) in wide.chunks_exact_mut(32).enumerate() {
            let hasher = Sha256::new().chain_update([4, number as u8]);
            block.copy_from_slice(&hasher.chain_update(state).finalize());
        }
        wide
    }
}

/// Replaces zero, which occurs with a probability of 2⁻¹²⁸ and has no inverse, by one.
fn nonzero<F: Field>(challenge: F) -> F {
    if challenge.is_zero() {
        F::ONE
    } else {
        challenge
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_bls12_381::{Bls12_381, Fr};
    use ark_bn254::Bn254;

    fn challenge(said: &[(&str, &[u8])]) -> Fr {
        let mut transcript = Transcript::new::<Bls12_381>("test");
        for (label, bytes) in said {
            transcript.absorb(label, bytes);
        }
        transcript.scalar("x")
    }

    #[test]
    fn every_message_changes_the_challenge() {
        let lists: [&[(&str, &[u8])]; 6] = [
            &[],
            &[("a", b"bc")],
            &[("ab", b"c")],
            &[("a", b"b"), ("c", b"")],
            &[("a", b"bc"), ("", b"")],
            &[("a", b"bd")],
        ];
        for (i, list) in lists.iter().enumerate() {
            assert_eq!(challenge(list), challenge(list));
            for other in &lists[..i] {
                assert_ne!(challenge(list), challenge(other));
            }
        }
        let of = |mut transcript: Transcript| transcript.scalar::<Fr>("x");
        let transcript = Transcript::new::<Bls12_381>("test");
        assert_ne!(of(transcript.clone()), of(Transcript::new::<Bn254>("test")));
        assert_ne!(
            of(transcript.clone()),
            of(Transcript::new::<Bls12_381>("tests"))
        );
        let mut later = transcript.clone();
        let first: Fr = later.scalar("x");
        assert_ne!(first, later.scalar("x"));
        assert_ne!(first, transcript.clone().scalar("y"));
    }

    #[test]
    fn short_challenges_are_short() {
        let mut transcript = Transcript::new::<Bls12_381>("test");
        for _ in 0..20 {
            let challenge: Fr = transcript.short_scalar("x");
            let [low, high, rest @ ..] = challenge.into_bigint().0;
            assert!(rest == [0, 0] && low != 0 && high != 0);
        }
    }
}
