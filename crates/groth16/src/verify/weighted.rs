//! Products of many proofs' equations, each to the power of its weight.

use ark_ec::CurveGroup;
use ark_ec::pairing::{Pairing, PairingOutput};
use ark_ff::Zero;
use ark_std::rand::RngCore;
use proofmill_kernels::pairing::{Product, multi_power};
use proofmill_kernels::{msm, multiply_each};

use super::{PreparedVerifyingKey, quotient};
use crate::{Engine, Proof};

/// The power to which a proof's equation is taken: a random number of 128 bits, times another one.
///
/// It is a number below 2²⁵⁶, and what counts is its residue modulo the group's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weight {
    random: u128,
    factor: u128,
}

/// A proof, its public inputs without the leading one, and its weight.
#[derive(Clone, Copy, Debug)]
pub struct WeightedProof<'a, E: Engine> {
    /// The key it is under.
    pub key: &'a PreparedVerifyingKey<E>,
    /// As many as the key's circuit has ([`PreparedVerifyingKey::check_count`]).
    pub inputs: &'a [E::ScalarField],
    /// The proof.
    pub proof: &'a Proof<E>,
    /// Its power in the product.
    pub weight: Weight,
}

/// The sum over the proofs under one key.
struct KeySum<'a, E: Engine> {
    key: &'a PreparedVerifyingKey<E>,
    weights: E::ScalarField,
    instance: Vec<E::ScalarField>,
    c: E::G1,
}

/// A proof's points in the first group, each times its weight.
struct Multiples<E: Engine> {
    a: E::G1Affine,
    c: E::G1Affine,
}

/// The product over all proofs of `(e(A, B) / (e(α, β)·e(Σ xⱼ·instanceⱼ, γ)·e(C, δ)))^weight`, which is
/// one if all of them hold; with weights that were drawn after the proofs were fixed, by a chance of
/// 2⁻¹²⁷ also if some do not. Any number of keys: n proofs under k keys take n + 3k Miller loops and one
/// final exponentiation. None if it does not exist, for which a point must be outside of its subgroup.
///
/// Products multiply: that of some proofs is that of all divided by that of the others, under the same
/// weights. (Arkworks writes the target group as addition.)
pub fn weighted_product<E: Engine>(proofs: &[WeightedProof<'_, E>]) -> Option<PairingOutput<E>> {
    if let [weighted] = proofs {
        return power(weighted);
    }
    weighted_terms(proofs).checked_value()
}

/// As [`weighted_product`], before it is evaluated.
pub(crate) fn weighted_terms<'a, E: Engine>(proofs: &[WeightedProof<'a, E>]) -> Product<'a, E> {
    let mut product = Product::new();
    let multiples = multiples(proofs);
    for (multiples, weighted) in multiples.iter().zip(proofs) {
        product.multiply(multiples.a, weighted.proof.b);
    }
    let sums = by_key(proofs, &multiples);
    let mut points = Vec::with_capacity(3 * sums.len());
    for sum in &sums {
        points.push(msm::<E::G1>(&[sum.key.vk.alpha_g1], &[-sum.weights]));
        points.push(msm::<E::G1>(&sum.key.vk.instance, &sum.instance));
        points.push(sum.c);
    }
    let points = E::G1::normalize_batch(&points);
    for (points, sum) in points.chunks_exact(3).zip(&sums) {
        let key = sum.key;
        for (point, fixed) in points
            .iter()
            .zip([&key.beta, &key.minus_gamma, &key.minus_delta])
        {
            product.multiply_prepared(*point, fixed);
        }
    }
    product
}

/// The product over one proof, to its power afterwards: that e(α, β) is known saves a Miller loop and four
/// multiplications of points, and one is one to any power.
fn power<E: Engine>(weighted: &WeightedProof<'_, E>) -> Option<PairingOutput<E>> {
    let quotient = quotient(weighted.key, weighted.inputs, weighted.proof)?;
    if quotient.is_zero() {
        return Some(quotient);
    }
    Some(multi_power(
        &[quotient],
        &[weighted.weight.as_scalar::<E>()],
    ))
}

/// `weight·A` and `weight·C` for each proof.
fn multiples<E: Engine>(proofs: &[WeightedProof<'_, E>]) -> Vec<Multiples<E>> {
    let points: Vec<_> = proofs
        .iter()
        .flat_map(|weighted| [weighted.proof.a, weighted.proof.c])
        .collect();
    let numbers = |number: fn(&Weight) -> u128| -> Vec<u128> {
        let numbers = proofs.iter().map(|weighted| number(&weighted.weight));
        numbers.flat_map(|number| [number; 2]).collect()
    };
    let mut multiples = multiply_each::<E::G1>(&points, &numbers(|weight| weight.random));
    if proofs.iter().any(|weighted| weighted.weight.factor != 1) {
        multiples = multiply_each::<E::G1>(&multiples, &numbers(|weight| weight.factor));
    }
    let pairs = multiples.chunks_exact(2);
    pairs
        .map(|pair| Multiples {
            a: pair[0],
            c: pair[1],
        })
        .collect()
}

fn by_key<'a, E: Engine>(
    proofs: &[WeightedProof<'a, E>],
    multiples: &[Multiples<E>],
) -> Vec<KeySum<'a, E>> {
    let mut sums: Vec<KeySum<'a, E>> = Vec::new();
    for (weighted, multiples) in proofs.iter().zip(multiples) {
        // Few keys have many proofs; that two are the same one is a matter of their place alone.
        let place = sums
            .iter()
            .position(|sum| std::ptr::eq(sum.key, weighted.key))
            .unwrap_or_else(|| {
                sums.push(KeySum::new(weighted.key));
                sums.len() - 1
            });
        sums[place].add(weighted, multiples.c);
    }
    sums
}

// === impl KeySum ===

impl<'a, E: Engine> KeySum<'a, E> {
    fn new(key: &'a PreparedVerifyingKey<E>) -> Self {
        Self {
            key,
            weights: E::ScalarField::zero(),
            instance: vec![E::ScalarField::zero(); key.vk.instance.len()],
            c: E::G1::zero(),
        }
    }

    fn add(&mut self, weighted: &WeightedProof<'_, E>, c: E::G1Affine) {
        let weight = weighted.weight.as_scalar::<E>();
        self.weights += weight;
        let mut instance = self.instance.iter_mut();
        if let Some(leading) = instance.next() {
            *leading += weight;
        }
        for (scalar, input) in instance.zip(weighted.inputs) {
            *scalar += *input * weight;
        }
        self.c += c;
    }
}

// === impl Weight ===

impl Weight {
    /// A random weight. `rng` must be unpredictable to whoever made the proofs.
    pub fn draw(rng: &mut (impl RngCore + ?Sized)) -> Self {
        let mut bytes = [0; 16];
        rng.fill_bytes(&mut bytes);
        Self::new(u128::from_le_bytes(bytes))
    }

    /// A weight from 128 random bits.
    pub fn new(random: u128) -> Self {
        Self {
            // Zero would drop a proof from the combination.
            random: random.max(1),
            factor: 1,
        }
    }

    /// The weight times a number, for sums that tell where a false proof is; none if the numbers that
    /// it was multiplied by exceed 128 bits.
    pub fn checked_mul(self, factor: u64) -> Option<Self> {
        let factor = self.factor.checked_mul(factor.into())?;
        Some(Self { factor, ..self })
    }

    pub(crate) fn as_scalar<E: Pairing>(self) -> E::ScalarField {
        E::ScalarField::from(self.random) * E::ScalarField::from(self.factor)
    }
}
