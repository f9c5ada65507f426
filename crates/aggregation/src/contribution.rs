//! Contributions to a reference string, with proofs that the contributor knows the secret factors.
//!
//! A proof of knowledge of a discrete logarithm (Schnorr, CRYPTO 1989), made non-interactive over the
//! chain before it. With it a simulator of the setup can extract the contributors' secrets, so that a
//! chain is as good as its one honest contributor (Kohlweiss, Maller, Siim and Volkhov, "Snarky
//! Ceremonies", eprint.iacr.org/2021/219).

use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::UniformRand;
use ark_std::rand::{CryptoRng, RngCore};
use zeroize::Zeroizing;

use crate::torus::AggregationCurve;
use crate::transcript::Transcript;

/// The trace that one contributor leaves in a string: the first powers after it, and proofs that it knew its secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contribution<E: AggregationCurve> {
    /// a·G and b·G after it.
    pub(crate) first_powers: [E::G1Affine; 2],
    /// Proofs of knowledge of the factors of a and of b.
    pub(crate) knowledge: [SecretKnowledge<E>; 2],
}

/// Knowledge of x with after = x·before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SecretKnowledge<E: AggregationCurve> {
    /// k·before for a random k.
    pub(crate) commitment: E::G1Affine,
    /// k + c·x for the challenge c.
    pub(crate) response: E::ScalarField,
}

// === impl Contribution ===

impl<E: AggregationCurve> Contribution<E> {
    pub(crate) fn absorb(&self, transcript: &mut Transcript) {
        transcript.absorb_points("first powers", &self.first_powers);
        for knowledge in &self.knowledge {
            transcript.absorb_points("commitment", &[knowledge.commitment]);
            transcript.absorb_scalars("response", &[knowledge.response]);
        }
    }

    /// A digest of this contribution. Its maker can publish it, so that others can find it in the string's chain.
    pub fn digest(&self) -> [u8; 32] {
        let mut transcript = Transcript::new::<E>("reference string contribution");
        self.absorb(&mut transcript);
        transcript.digest("digest")
    }
}

// === impl SecretKnowledge ===

impl<E: AggregationCurve> SecretKnowledge<E> {
    /// Proves knowledge of `secret`, the `number`th of a contribution, after a chain of others.
    pub(crate) fn prove(
        chain: &[u8; 32],
        number: usize,
        before: E::G1Affine,
        after: E::G1Affine,
        secret: &E::ScalarField,
        rng: &mut (impl RngCore + CryptoRng),
    ) -> Self {
        let mask = Zeroizing::new(E::ScalarField::rand(rng));
        let commitment = (before * *mask).into_affine();
        let challenge = challenge::<E>(chain, number, [before, after, commitment]);
        Self {
            commitment,
            response: *mask + challenge * secret,
        }
    }

    pub(crate) fn verify(
        &self,
        chain: &[u8; 32],
        number: usize,
        before: E::G1Affine,
        after: E::G1Affine,
    ) -> bool {
        let challenge = challenge::<E>(chain, number, [before, after, self.commitment]);
        before * self.response == after * challenge + self.commitment.into_group()
    }
}

fn challenge<E: AggregationCurve>(
    chain: &[u8; 32],
    number: usize,
    points: [E::G1Affine; 3],
) -> E::ScalarField {
    let mut transcript = Transcript::new::<E>("reference string knowledge");
    transcript.absorb("chain", chain);
    transcript.absorb_number("secret", number as u64);
    transcript.absorb_points("before, after, commitment", &points);
    transcript.scalar("challenge")
}
