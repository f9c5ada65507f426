//! Products of many proofs' equations, each to the power of its weight.

use std::sync::OnceLock;

use ark_ec::pairing::{Pairing, PairingOutput};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::Zero;
use ark_std::rand::RngCore;
use proofmill_kernels::pairing::{Product, multi_power};
use proofmill_kernels::{msm, multiply_each, scale_each};

use super::{PreparedVerifyingKey, quotient};
use crate::{Proof, SnarkCurve};

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
pub struct WeightedProof<'a, E: SnarkCurve> {
    /// The key it is under.
    pub key: &'a PreparedVerifyingKey<E>,
    /// Public inputs; their number must be the circuit's ([`PreparedVerifyingKey::check_count`]).
    pub inputs: &'a [E::ScalarField],
    /// The proof.
    pub proof: &'a Proof<E>,
    /// The proof's exponent in the product.
    pub weight: Weight,
    /// Storage for multiples of its points, for further products; `None` if there are none.
    pub multiples: Option<&'a MultiplesCache<E>>,
}

/// A proof's points in the first group times the random part of its weight, once a product has computed them. Products
/// of the same proof under this weight times any factor start from them.
#[derive(Debug)]
pub struct MultiplesCache<E: SnarkCurve>(OnceLock<CachedMultiples<E>>);

/// The multiples, with the weight and points that they were computed for: they apply to no others.
#[derive(Debug)]
struct CachedMultiples<E: SnarkCurve> {
    random: u128,
    points: [E::G1Affine; 2],
    multiples: [E::G1Affine; 2],
}

/// The sum over the proofs under one key.
struct KeySum<'a, E: SnarkCurve> {
    key: &'a PreparedVerifyingKey<E>,
    weights: E::ScalarField,
    instance: Vec<E::ScalarField>,
    c: E::G1,
}

/// Points for inputs of a key from which on their own combination costs less than multiples side by side with those of
/// other keys.
const POINTS_FOR_COMBINATION: usize = 12;

/// The product over all proofs of `(e(A, B) / (e(α, β)·e(Σ xⱼ·instanceⱼ, γ)·e(C, δ)))^weight`, which is
/// one if all of them hold; with weights that were drawn after the proofs were fixed, by a chance of
/// 2⁻¹²⁷ also if some do not. Any number of keys: n proofs under k keys take n + 3k Miller loops and one
/// final exponentiation. `None` if it does not exist, for which a point must be outside of its subgroup.
///
/// Products multiply: that of some proofs is that of all divided by that of the others, under the same
/// weights. (Arkworks writes the target group as addition.)
pub fn weighted_product<E: SnarkCurve>(
    proofs: &[WeightedProof<'_, E>],
) -> Option<PairingOutput<E>> {
    if let [weighted] = proofs {
        return power(weighted);
    }
    weighted_terms(proofs).checked_value()
}

/// The terms of [`weighted_product`], not yet evaluated.
pub(crate) fn weighted_terms<'a, E: SnarkCurve>(proofs: &[WeightedProof<'a, E>]) -> Product<'a, E> {
    let mut product = Product::new();
    let multiples = multiples(proofs);
    for ([a, _], weighted) in multiples.iter().zip(proofs) {
        product.multiply(*a, weighted.proof.b);
    }
    let sums = by_key(proofs, &multiples);
    for (points, sum) in points_of_keys(&sums).chunks_exact(3).zip(&sums) {
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

/// Three points for each key: `−Σ weights·α`, the combination of its points for inputs, and `Σ weight·C`.
fn points_of_keys<E: SnarkCurve>(sums: &[KeySum<'_, E>]) -> Vec<E::G1Affine> {
    // One key has too few points to fill the lanes of a vector.
    let is_short = |sum: &KeySum<'_, E>| sum.instance.len() < POINTS_FOR_COMBINATION;
    let (mut points, mut scalars) = (Vec::new(), Vec::new());
    for sum in sums {
        points.push(sum.key.vk.alpha_g1);
        scalars.push(-sum.weights);
        if is_short(sum) {
            points.extend_from_slice(&sum.key.vk.instance);
            scalars.extend_from_slice(&sum.instance);
        }
    }
    let mut multiples = scale_each::<E::G1>(&points, &scalars).into_iter();
    let mut points = Vec::with_capacity(3 * sums.len());
    for sum in sums {
        let alpha = multiples.next().expect("one for each key");
        points.push(alpha.into_group());
        points.push(match is_short(sum) {
            true => multiples.by_ref().take(sum.instance.len()).sum(),
            false => msm::<E::G1>(&sum.key.vk.instance, &sum.instance),
        });
        points.push(sum.c);
    }
    E::G1::normalize_batch(&points)
}

/// The product over one proof, to its power afterwards: that e(α, β) is known saves a Miller loop and four
/// multiplications of points, and one is one to any power.
fn power<E: SnarkCurve>(weighted: &WeightedProof<'_, E>) -> Option<PairingOutput<E>> {
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
fn multiples<E: SnarkCurve>(proofs: &[WeightedProof<'_, E>]) -> Vec<[E::G1Affine; 2]> {
    let mut multiples = random_multiples(proofs);
    if proofs.iter().any(|weighted| weighted.weight.factor != 1) {
        let factors = proofs.iter().map(|weighted| weighted.weight.factor);
        multiples = multiply_pairs::<E>(&multiples, factors);
    }
    multiples
}

/// `random·A` and `random·C` for each proof, those that were kept and the others computed together.
fn random_multiples<E: SnarkCurve>(proofs: &[WeightedProof<'_, E>]) -> Vec<[E::G1Affine; 2]> {
    let kept: Vec<_> = proofs.iter().map(WeightedProof::kept).collect();
    let new = || proofs.iter().zip(&kept).filter(|(_, kept)| kept.is_none());
    let points: Vec<_> = new().map(|(weighted, _)| weighted.points()).collect();
    let randoms = new().map(|(weighted, _)| weighted.weight.random);
    let mut computed = multiply_pairs::<E>(&points, randoms).into_iter();
    let all = proofs.iter().zip(kept).map(|(weighted, kept)| {
        kept.unwrap_or_else(|| {
            let multiples = computed.next().expect("one for each that was not kept");
            weighted.keep(multiples);
            multiples
        })
    });
    all.collect()
}

/// Both points of each pair times the pair's number.
fn multiply_pairs<E: SnarkCurve>(
    pairs: &[[E::G1Affine; 2]],
    numbers: impl Iterator<Item = u128>,
) -> Vec<[E::G1Affine; 2]> {
    let numbers: Vec<u128> = numbers.flat_map(|number| [number; 2]).collect();
    let multiples = multiply_each::<E::G1>(pairs.as_flattened(), &numbers);
    multiples.as_chunks().0.to_vec()
}

fn by_key<'a, E: SnarkCurve>(
    proofs: &[WeightedProof<'a, E>],
    multiples: &[[E::G1Affine; 2]],
) -> Vec<KeySum<'a, E>> {
    let mut sums: Vec<KeySum<'a, E>> = Vec::new();
    for (weighted, [_, c]) in proofs.iter().zip(multiples) {
        // Few keys have many proofs; that two are the same one is a matter of their place alone.
        let place = sums
            .iter()
            .position(|sum| std::ptr::eq(sum.key, weighted.key))
            .unwrap_or_else(|| {
                sums.push(KeySum::new(weighted.key));
                sums.len() - 1
            });
        sums[place].add(weighted, *c);
    }
    sums
}

// === impl WeightedProof ===

impl<E: SnarkCurve> WeightedProof<'_, E> {
    const fn points(&self) -> [E::G1Affine; 2] {
        [self.proof.a, self.proof.c]
    }

    /// The multiples that an earlier product kept; `None` if it kept none, or those of another proof or
    /// another random part.
    fn kept(&self) -> Option<[E::G1Affine; 2]> {
        let kept = self.multiples?.0.get()?;
        let is_of_this = kept.random == self.weight.random && kept.points == self.points();
        is_of_this.then_some(kept.multiples)
    }

    fn keep(&self, multiples: [E::G1Affine; 2]) {
        if let Some(place) = self.multiples {
            // Multiples of another proof or weight that are already kept stay.
            let _ = place.0.set(CachedMultiples {
                random: self.weight.random,
                points: self.points(),
                multiples,
            });
        }
    }
}

// === impl MultiplesCache ===

impl<E: SnarkCurve> MultiplesCache<E> {
    /// Storage without multiples yet.
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }
}

impl<E: SnarkCurve> Default for MultiplesCache<E> {
    fn default() -> Self {
        Self::new()
    }
}

// === impl KeySum ===

impl<'a, E: SnarkCurve> KeySum<'a, E> {
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

    /// The weight times a number, for sums that locate a false proof; `None` if the product of all factors so
    /// far exceeds 128 bits.
    pub fn checked_mul(self, factor: u64) -> Option<Self> {
        let factor = self.factor.checked_mul(factor.into())?;
        Some(Self { factor, ..self })
    }

    pub(crate) fn as_scalar<E: Pairing>(self) -> E::ScalarField {
        E::ScalarField::from(self.random) * E::ScalarField::from(self.factor)
    }
}
