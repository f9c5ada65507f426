//! The verifier, for one proof and for many.

mod each;
mod weighted;

pub use each::{KeyedProof, verify_each, weighted_product_each};
pub(crate) use weighted::weighted_terms;
pub use weighted::{MultiplesCache, Weight, WeightedProof, weighted_product};

use ark_ec::pairing::PairingOutput;
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{One, Zero};
use ark_std::rand::{CryptoRng, RngCore};
use proofmill_kernels::msm;
use proofmill_kernels::pairing::{self, PreparedG2, Product};

use crate::{Proof, SnarkCurve, VerifyingKey};

/// A verifying key with what every verification needs computed once.
#[derive(Clone, Debug)]
pub struct PreparedVerifyingKey<E: SnarkCurve> {
    vk: VerifyingKey<E>,
    alpha_beta: PairingOutput<E>,
    minus_gamma: PreparedG2<E>,
    minus_delta: PreparedG2<E>,
    beta: PreparedG2<E>,
}

/// The reason why a proof is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// The number of public inputs is not the circuit's.
    #[error("{found} public inputs: the circuit has {expected}")]
    InputCount {
        /// The circuit's number of public inputs.
        expected: usize,
        /// The number given.
        found: usize,
    },
    /// The prepared inputs are not some of the circuit's.
    #[error("{count} prepared public inputs from place {first} on: the circuit has {inputs}")]
    InputRange {
        /// Index of the first prepared input.
        first: usize,
        /// The number of prepared inputs.
        count: usize,
        /// The circuit's number of public inputs.
        inputs: usize,
    },
    /// The proof does not prove these public inputs under this key.
    #[error("the proof does not verify against these public inputs")]
    Invalid,
}

// === impl PreparedVerifyingKey ===

impl<E: SnarkCurve> From<VerifyingKey<E>> for PreparedVerifyingKey<E> {
    fn from(vk: VerifyingKey<E>) -> Self {
        let negated = |point: E::G2Affine| PreparedG2::new((-point.into_group()).into_affine());
        Self {
            alpha_beta: pairing::product(&[vk.alpha_g1], &[vk.beta_g2]),
            minus_gamma: negated(vk.gamma_g2),
            minus_delta: negated(vk.delta_g2),
            beta: PreparedG2::new(vk.beta_g2),
            vk,
        }
    }
}

impl<E: SnarkCurve> PreparedVerifyingKey<E> {
    /// The key itself.
    pub const fn vk(&self) -> &VerifyingKey<E> {
        &self.vk
    }

    /// Checks that a proof has as many public inputs as the circuit, the leading one left out.
    ///
    /// # Errors
    ///
    /// [`VerifyError::InputCount`].
    pub fn check_count(&self, found: usize) -> Result<(), VerifyError> {
        // A decoded key has at least the leading one's point.
        let expected = self.vk.instance.len().saturating_sub(1);
        if found == expected {
            Ok(())
        } else {
            Err(VerifyError::InputCount { expected, found })
        }
    }

    /// `e(A, B) · e(−instance, γ) · e(−C, δ)`, which is [e(α, β)](Self::alpha_beta) if the proof holds for the
    /// inputs that the point `instance` is computed from.
    pub(crate) fn equation_terms(&self, instance: E::G1Affine, proof: &Proof<E>) -> Product<'_, E> {
        let mut product = Product::new();
        product.multiply(proof.a, proof.b);
        product.multiply_prepared(instance, &self.minus_gamma);
        product.multiply_prepared(proof.c, &self.minus_delta);
        product
    }

    pub(crate) const fn alpha_beta(&self) -> PairingOutput<E> {
        self.alpha_beta
    }

    pub(crate) const fn minus_gamma(&self) -> &PreparedG2<E> {
        &self.minus_gamma
    }
}

/// Checks one proof: e(A, B) = e(α, β) · e(Σ xⱼ·instanceⱼ, γ) · e(C, δ).
///
/// # Errors
///
/// [`VerifyError`] unless the proof proves `inputs`, given without the leading one.
pub fn verify<E: SnarkCurve>(
    key: &PreparedVerifyingKey<E>,
    inputs: &[E::ScalarField],
    proof: &Proof<E>,
) -> Result<(), VerifyError> {
    key.check_count(inputs.len())?;
    match quotient(key, inputs, proof) {
        Some(quotient) if quotient.is_zero() => Ok(()),
        _ => Err(VerifyError::Invalid),
    }
}

/// `e(A, B) / (e(α, β) · e(Σ xⱼ·instanceⱼ, γ) · e(C, δ))` for inputs of the key's count, which is one (written as
/// zero) if the proof holds. `None` if the quotient does not exist, which happens only if a point is outside its
/// subgroup.
fn quotient<E: SnarkCurve>(
    key: &PreparedVerifyingKey<E>,
    inputs: &[E::ScalarField],
    proof: &Proof<E>,
) -> Option<PairingOutput<E>> {
    let mut scalars = Vec::with_capacity(inputs.len() + 1);
    scalars.push(E::ScalarField::one());
    scalars.extend_from_slice(inputs);
    let instance = msm::<E::G1>(&key.vk.instance, &scalars).into_affine();
    Some(key.equation_terms(instance, proof).checked_value()? - key.alpha_beta)
}

/// Checks many proofs under one key together, and returns a verdict for each.
///
/// With a random 128-bit ρᵢ for each proof the product
/// `Π e(ρᵢ·Aᵢ, Bᵢ) · e(−Σρᵢ·α, β) · e(−Σρᵢ·instanceᵢ, γ) · e(−Σρᵢ·Cᵢ, δ)` is one if all proofs hold,
/// and otherwise with probability at most 2⁻¹²⁷: n + 3 Miller loops and one final exponentiation.
/// If it is not one, the batch is bisected, so k bad proofs of n cost about 2k·log₂(n) products
/// more. `rng` must be unpredictable to whoever made the proofs.
pub fn verify_batch<E: SnarkCurve>(
    key: &PreparedVerifyingKey<E>,
    proofs: &[(&[E::ScalarField], &Proof<E>)],
    rng: &mut (impl RngCore + CryptoRng),
) -> Vec<Result<(), VerifyError>> {
    let mut verdicts: Vec<Result<(), VerifyError>> = proofs
        .iter()
        .map(|(inputs, _)| key.check_count(inputs.len()))
        .collect();
    let candidates: Vec<usize> = (0..proofs.len())
        .filter(|index| verdicts[*index].is_ok())
        .collect();
    bisect(
        &candidates,
        |range| all_hold(key, proofs, range, rng),
        |index| verdicts[index] = verify(key, proofs[index].0, proofs[index].1),
    );
    verdicts
}

/// Splits `candidates` in halves until `all_hold` accepts a part or the part is a single candidate, which is passed
/// to `decide`.
pub(crate) fn bisect(
    candidates: &[usize],
    mut all_hold: impl FnMut(&[usize]) -> bool,
    mut decide: impl FnMut(usize),
) {
    let mut ranges = vec![candidates];
    while let Some(range) = ranges.pop() {
        match *range {
            [] => {}
            [index] => decide(index),
            _ if all_hold(range) => {}
            _ => {
                let (left, right) = range.split_at(range.len() / 2);
                ranges.extend([right, left]);
            }
        }
    }
}

/// Whether a random linear combination of the proofs at `indices` holds. The number of their inputs must have been
/// checked.
fn all_hold<E: SnarkCurve>(
    key: &PreparedVerifyingKey<E>,
    proofs: &[(&[E::ScalarField], &Proof<E>)],
    indices: &[usize],
    rng: &mut (impl RngCore + CryptoRng),
) -> bool {
    let weighted: Vec<_> = indices
        .iter()
        .map(|index| WeightedProof {
            key,
            inputs: proofs[*index].0,
            proof: proofs[*index].1,
            weight: Weight::draw(rng),
            multiples: None,
        })
        .collect();
    weighted_product(&weighted).is_some_and(|product| product.is_zero())
}
