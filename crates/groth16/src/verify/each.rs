//! Verification of many proofs separately, without weights: the costly steps of several proofs run side by side.

use ark_ec::pairing::PairingOutput;
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::Zero;
use proofmill_kernels::pairing::{Product, power_each};
use proofmill_kernels::{msm, scale_each};
use rayon::prelude::*;

use super::{PreparedVerifyingKey, VerifyError, WeightedProof};
use crate::{Proof, SnarkCurve};

/// A proof, its public inputs without the leading one, and the key it is under.
#[derive(Clone, Copy, Debug)]
pub struct KeyedProof<'a, E: SnarkCurve> {
    /// The key.
    pub key: &'a PreparedVerifyingKey<E>,
    /// The public inputs.
    pub inputs: &'a [E::ScalarField],
    /// The proof.
    pub proof: &'a Proof<E>,
}

/// Number of public inputs from which a multi-scalar product of its own costs a proof less than single multiples
/// that are computed side by side with those of other proofs.
const MSM_INPUTS_MIN: usize = 12;

/// Checks each of some proofs as [`verify`](super::verify) does, under any keys, on the threads of the current rayon
/// pool. On a processor with vector kernels, eight proofs take about three times as long as one.
///
/// # Errors
///
/// For each proof, [`VerifyError`] unless it proves its inputs.
pub fn verify_each<E: SnarkCurve>(proofs: &[KeyedProof<'_, E>]) -> Vec<Result<(), VerifyError>> {
    let mut verdicts: Vec<Result<(), VerifyError>> = proofs
        .iter()
        .map(|proof| proof.key.check_count(proof.inputs.len()))
        .collect();
    let with_verdicts = proofs.iter().zip(&verdicts);
    let well_formed: Vec<_> = with_verdicts
        .filter(|(_, verdict)| verdict.is_ok())
        .map(|(proof, _)| *proof)
        .collect();
    let mut quotients = quotient_each(&well_formed).into_iter();
    for verdict in verdicts.iter_mut().filter(|verdict| verdict.is_ok()) {
        match quotients.next().flatten() {
            Some(quotient) if quotient.is_zero() => {}
            _ => *verdict = Err(VerifyError::Invalid),
        }
    }
    verdicts
}

/// The [`weighted_product`](super::weighted_product) of each proof alone, computed on the threads of the current
/// rayon pool.
pub fn weighted_product_each<E: SnarkCurve>(
    proofs: &[WeightedProof<'_, E>],
) -> Vec<Option<PairingOutput<E>>> {
    let keyed: Vec<_> = proofs.iter().map(KeyedProof::from).collect();
    let mut products = quotient_each(&keyed);
    // Any power of one is one.
    let (mut bases, mut exponents) = (Vec::new(), Vec::new());
    for (product, weighted) in products.iter().zip(proofs) {
        if let Some(product) = product.filter(|product| !product.is_zero()) {
            bases.push(product);
            exponents.push(weighted.weight.as_scalar::<E>());
        }
    }
    let mut powers = power_each(&bases, &exponents).into_iter();
    for product in products.iter_mut().flatten() {
        if !product.is_zero() {
            *product = powers.next().expect("a power for each base");
        }
    }
    products
}

/// For each proof, whose inputs are of its key's count, `e(A, B) / (e(α, β) · e(Σ xⱼ·instanceⱼ, γ) · e(C, δ))`: one
/// (written as zero) if it holds. `None` if the quotient does not exist, which happens only if a point is outside its
/// subgroup.
fn quotient_each<E: SnarkCurve>(proofs: &[KeyedProof<'_, E>]) -> Vec<Option<PairingOutput<E>>> {
    let instances = instance_each(proofs);
    let products: Vec<Product<'_, E>> = instances
        .iter()
        .zip(proofs)
        .map(|(instance, proof)| proof.key.equation_terms(*instance, proof.proof))
        .collect();
    let values = Product::checked_value_each(&products).into_iter();
    values
        .zip(proofs)
        .map(|(value, proof)| Some(value? - proof.key.alpha_beta))
        .collect()
}

/// `Σ xⱼ·instanceⱼ` of each proof, over the leading one and its inputs.
fn instance_each<E: SnarkCurve>(proofs: &[KeyedProof<'_, E>]) -> Vec<E::G1Affine> {
    let is_short = |proof: &KeyedProof<'_, E>| proof.inputs.len() < MSM_INPUTS_MIN;
    let (mut points, mut scalars) = (Vec::new(), Vec::new());
    for proof in proofs.iter().filter(|proof| is_short(proof)) {
        points.extend_from_slice(&proof.key.vk.instance[1..]);
        scalars.extend_from_slice(proof.inputs);
    }
    let multiples = scale_each::<E::G1>(&points, &scalars);
    let combinations = proofs.par_iter().filter(|proof| !is_short(proof));
    let combinations: Vec<E::G1> = combinations
        .map(|proof| msm::<E::G1>(&proof.key.vk.instance[1..], proof.inputs))
        .collect();
    let (mut multiples, mut combinations) = (multiples.into_iter(), combinations.into_iter());
    let mut sums = Vec::with_capacity(proofs.len());
    for proof in proofs {
        let mut sum = proof.key.vk.instance[0].into_group();
        if is_short(proof) {
            for multiple in multiples.by_ref().take(proof.inputs.len()) {
                sum += multiple;
            }
        } else {
            sum += combinations
                .next()
                .expect("one for each proof that is not short");
        }
        sums.push(sum);
    }
    E::G1::normalize_batch(&sums)
}

// === impl KeyedProof ===

impl<'a, E: SnarkCurve> From<&WeightedProof<'a, E>> for KeyedProof<'a, E> {
    fn from(weighted: &WeightedProof<'a, E>) -> Self {
        Self {
            key: weighted.key,
            inputs: weighted.inputs,
            proof: weighted.proof,
        }
    }
}
