//! The verifier, for one proof and for many.

use ark_ec::pairing::PairingOutput;
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::Zero;
use ark_std::rand::{CryptoRng, RngCore};
use proofmill_kernels::msm;
use proofmill_kernels::pairing::PreparedG2;

use super::{Commitment, VerifyingKey};
use crate::verify::{bisect, weighted_terms};
use crate::{Proof, SnarkCurve, VerifyError, Weight, WeightedProof};

/// A verifying key with what every verification needs computed once.
#[derive(Clone, Debug)]
pub struct PreparedVerifyingKey<E: SnarkCurve> {
    plain: crate::PreparedVerifyingKey<E>,
    eta_g2: E::G2Affine,
    minus_eta: PreparedG2<E>,
    committed: usize,
}

/// Σ xⱼ·\[pⱼ(s)/γ\] over some of a circuit's public inputs, which are the same for many verifiers or known when
/// keys are made (section 6.3 of Hekaton). A verifier takes the point in place of the inputs; it must trust
/// the point's maker that the point is of the right inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreparedInputs<E: SnarkCurve> {
    /// Index of the first prepared input; the leading one is not counted.
    pub first: usize,
    /// The number of prepared inputs.
    pub count: usize,
    /// The sum over the prepared inputs.
    pub point: E::G1Affine,
}

/// The public inputs of a proof, without the leading one.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a, E: SnarkCurve> {
    given: &'a [E::ScalarField],
    prepared: Option<&'a PreparedInputs<E>>,
}

/// A proof, its claimed public inputs and commitment, and its key.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a, E: SnarkCurve> {
    /// The key that the proof is checked with.
    pub key: &'a PreparedVerifyingKey<E>,
    /// The public inputs.
    pub inputs: Inputs<'a, E>,
    /// The commitment that the proof belongs to.
    pub commitment: &'a Commitment<E>,
    /// The proof.
    pub proof: &'a Proof<E>,
}

/// The claims under one key.
struct ClaimsOfKey<'a, E: SnarkCurve> {
    key: &'a PreparedVerifyingKey<E>,
    commitments: Weighted<E>,
    prepared: Weighted<E>,
}

/// Points, and a scalar for each.
struct Weighted<E: SnarkCurve> {
    points: Vec<E::G1Affine>,
    weights: Vec<E::ScalarField>,
}

// === impl PreparedVerifyingKey ===

impl<E: SnarkCurve> From<VerifyingKey<E>> for PreparedVerifyingKey<E> {
    fn from(vk: VerifyingKey<E>) -> Self {
        Self {
            minus_eta: PreparedG2::new((-vk.eta_g2.into_group()).into_affine()),
            eta_g2: vk.eta_g2,
            plain: vk.plain.into(),
            committed: vk.committed,
        }
    }
}

impl<E: SnarkCurve> PreparedVerifyingKey<E> {
    /// The key itself.
    pub fn vk(&self) -> VerifyingKey<E> {
        VerifyingKey {
            plain: self.plain.vk().clone(),
            eta_g2: self.eta_g2,
            committed: self.committed,
        }
    }

    /// e(α, β), which is the same under all keys of one setup.
    pub const fn alpha_beta(&self) -> PairingOutput<E> {
        self.plain.alpha_beta()
    }

    /// S = Σ xⱼ·\[pⱼ(s)/γ\] over the leading one and all inputs.
    ///
    /// # Errors
    ///
    /// [`VerifyError::InputCount`], [`VerifyError::InputRange`]; [`VerifyError::Invalid`] for a key without
    /// any point for inputs.
    pub fn input_point(&self, inputs: Inputs<'_, E>) -> Result<E::G1, VerifyError> {
        let scalars = self.input_scalars(inputs)?;
        let points = &self.plain.vk().instance;
        let sum = msm::<E::G1>(&points[1..], &scalars) + points[0];
        Ok(inputs.prepared.map_or(sum, |prepared| sum + prepared.point))
    }

    /// A scalar for each public input of the circuit: zero for the prepared ones, whose part
    /// [`PreparedInputs::point`] has.
    fn input_scalars(&self, inputs: Inputs<'_, E>) -> Result<Vec<E::ScalarField>, VerifyError> {
        let (first, count) = match inputs.prepared {
            None => (0, 0),
            Some(prepared) => (prepared.first, prepared.count),
        };
        // A decoded key has at least the leading one's point.
        let points = self.plain.vk().instance.len();
        let expected = points.checked_sub(1).ok_or(VerifyError::Invalid)?;
        if first.checked_add(count).is_none_or(|end| end > expected) {
            return Err(VerifyError::InputRange {
                first,
                count,
                inputs: expected,
            });
        }
        self.plain
            .check_count(inputs.given.len().saturating_add(count))?;
        let (before, after) = inputs.given.split_at(first);
        let mut scalars = Vec::with_capacity(expected);
        scalars.extend_from_slice(before);
        scalars.resize(first + count, E::ScalarField::zero());
        scalars.extend_from_slice(after);
        Ok(scalars)
    }
}

// === impl PreparedInputs ===

impl<E: SnarkCurve> PreparedInputs<E> {
    /// Prepares the inputs with the indices `first`, `first + 1`, …; the leading one is not counted.
    ///
    /// # Errors
    ///
    /// [`VerifyError::InputRange`] if the circuit has fewer inputs.
    pub fn new(
        key: &VerifyingKey<E>,
        first: usize,
        values: &[E::ScalarField],
    ) -> Result<Self, VerifyError> {
        let count = values.len();
        let points = first.checked_add(1).and_then(|start| {
            let end = start.checked_add(count)?;
            key.plain.instance.get(start..end)
        });
        let points = points.ok_or_else(|| VerifyError::InputRange {
            first,
            count,
            inputs: key.plain.instance.len().saturating_sub(1),
        })?;
        Ok(Self {
            first,
            count,
            point: msm::<E::G1>(points, values).into_affine(),
        })
    }
}

// === impl Inputs ===

impl<'a, E: SnarkCurve> Inputs<'a, E> {
    /// Public inputs of which some are prepared; the others are given in their order.
    pub const fn with_prepared(
        others: &'a [E::ScalarField],
        prepared: &'a PreparedInputs<E>,
    ) -> Self {
        Self {
            given: others,
            prepared: Some(prepared),
        }
    }
}

impl<'a, E: SnarkCurve> From<&'a [E::ScalarField]> for Inputs<'a, E> {
    fn from(given: &'a [E::ScalarField]) -> Self {
        Self {
            given,
            prepared: None,
        }
    }
}

/// `Mirage.Verify`: e(A, B) = e(α, β) · e(S, γ) · e(C, δ) · e(D, η).
///
/// # Errors
///
/// [`VerifyError`] unless the proof holds for `inputs` and the values that `commitment` commits to.
pub fn verify<E: SnarkCurve>(
    key: &PreparedVerifyingKey<E>,
    inputs: Inputs<'_, E>,
    commitment: &Commitment<E>,
    proof: &Proof<E>,
) -> Result<(), VerifyError> {
    let instance = key.input_point(inputs)?.into_affine();
    let mut terms = key.plain.equation_terms(instance, proof);
    terms.multiply_prepared(commitment.point, &key.minus_eta);
    match terms.checked_value() {
        Some(value) if value == key.alpha_beta() => Ok(()),
        _ => Err(VerifyError::Invalid),
    }
}

/// The product over all claims of `(e(A, B) / (e(α, β)·e(S, γ)·e(C, δ)·e(D, η)))^weight`: the counterpart of
/// [`weighted_product`](crate::weighted_product) for plain proofs. n claims under k keys take n + 4k Miller loops,
/// one more for each key with prepared inputs, and one final exponentiation.
///
/// # Errors
///
/// [`VerifyError::InputCount`] or [`VerifyError::InputRange`] if the number of a claim's inputs is not its
/// circuit's; [`VerifyError::Invalid`] if the product does not exist, which happens only if a point is outside its
/// subgroup.
pub fn weighted_product<E: SnarkCurve>(
    claims: &[(Claim<'_, E>, Weight)],
) -> Result<PairingOutput<E>, VerifyError> {
    let inputs = claims
        .iter()
        .map(|(claim, _)| claim.key.input_scalars(claim.inputs));
    let inputs: Vec<_> = inputs.collect::<Result<_, _>>()?;
    let proofs: Vec<_> = claims
        .iter()
        .zip(&inputs)
        .map(|((claim, weight), inputs)| WeightedProof {
            key: &claim.key.plain,
            inputs,
            proof: claim.proof,
            weight: *weight,
            multiples: None,
        })
        .collect();
    let mut product = weighted_terms(&proofs);
    for of_key in group_by_key(claims) {
        let key = of_key.key;
        product.multiply_prepared(of_key.commitments.sum(), &key.minus_eta);
        product.multiply_prepared(of_key.prepared.sum(), key.plain.minus_gamma());
    }
    product.checked_value().ok_or(VerifyError::Invalid)
}

fn group_by_key<'a, E: SnarkCurve>(claims: &[(Claim<'a, E>, Weight)]) -> Vec<ClaimsOfKey<'a, E>> {
    let mut keys: Vec<ClaimsOfKey<'a, E>> = Vec::new();
    for (claim, weight) in claims {
        let index = keys
            .iter()
            .position(|of_key| std::ptr::eq(of_key.key, claim.key))
            .unwrap_or_else(|| {
                keys.push(ClaimsOfKey {
                    key: claim.key,
                    commitments: Weighted::default(),
                    prepared: Weighted::default(),
                });
                keys.len() - 1
            });
        let weight = weight.as_scalar::<E>();
        keys[index].commitments.push(claim.commitment.point, weight);
        if let Some(prepared) = claim.inputs.prepared {
            keys[index].prepared.push(prepared.point, weight);
        }
    }
    keys
}

// === impl Weighted ===

impl<E: SnarkCurve> Default for Weighted<E> {
    fn default() -> Self {
        Self {
            points: Vec::new(),
            weights: Vec::new(),
        }
    }
}

impl<E: SnarkCurve> Weighted<E> {
    fn push(&mut self, point: E::G1Affine, weight: E::ScalarField) {
        self.points.push(point);
        self.weights.push(weight);
    }

    fn sum(&self) -> E::G1Affine {
        msm::<E::G1>(&self.points, &self.weights).into_affine()
    }
}

/// Checks many claims together, under any number of keys, and returns a verdict for each, as
/// [`verify_batch`](crate::verify_batch) does. `rng` must be unpredictable to whoever made the proofs and
/// commitments.
pub fn verify_batch<E: SnarkCurve>(
    claims: &[Claim<'_, E>],
    rng: &mut (impl RngCore + CryptoRng),
) -> Vec<Result<(), VerifyError>> {
    let check_inputs = |claim: &Claim<'_, E>| claim.key.input_scalars(claim.inputs).map(drop);
    let mut verdicts: Vec<_> = claims.iter().map(check_inputs).collect();
    let candidates: Vec<usize> = (0..claims.len())
        .filter(|index| verdicts[*index].is_ok())
        .collect();
    bisect(
        &candidates,
        |range| {
            let weighted: Vec<_> = range
                .iter()
                .map(|index| (claims[*index], Weight::draw(rng)))
                .collect();
            weighted_product(&weighted).is_ok_and(|product| product.is_zero())
        },
        |index| {
            let claim = &claims[index];
            verdicts[index] = verify(claim.key, claim.inputs, claim.commitment, claim.proof);
        },
    );
    verdicts
}
