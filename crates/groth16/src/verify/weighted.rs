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

/// The exponent of a proof's equation in a product: 128 random bits, times a factor of 128 bits.
///
/// The exponent is below 2²⁵⁶ and applies modulo the group's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weight {
    random: u128,
    factor: u128,
}

/// A proof, its public inputs without the leading one, and its weight.
#[derive(Clone, Copy, Debug)]
pub struct WeightedProof<'a, E: SnarkCurve> {
    /// The key that the proof is checked with.
    pub key: &'a PreparedVerifyingKey<E>,
    /// Public inputs; their number must be the circuit's ([`PreparedVerifyingKey::check_count`]).
    pub inputs: &'a [E::ScalarField],
    /// The proof.
    pub proof: &'a Proof<E>,
    /// The proof's exponent in the product.
    pub weight: Weight,
    /// Storage for multiples of the proof's points, which later products of the same proof use; `None` for a proof
    /// that occurs in one product only.
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

/// Sums over the proofs under one key, each term times its proof's weight.
struct KeySum<'a, E: SnarkCurve> {
    key: &'a PreparedVerifyingKey<E>,
    /// The sum of the weights.
    weights: E::ScalarField,
    /// The sums of the leading one and of each input.
    instance: Vec<E::ScalarField>,
    /// The sum of the points C.
    c: E::G1,
}

/// Number of a key's points for inputs from which a multi-scalar product of its own costs a key less than single
/// multiples that are computed side by side with those of other keys.
const MSM_POINTS_MIN: usize = 12;

/// The product over all proofs of `(e(A, B) / (e(α, β)·e(Σ xⱼ·instanceⱼ, γ)·e(C, δ)))^weight`, which is
/// one if all of them hold. If some do not, it is one with probability 2⁻¹²⁷ at most, provided that the weights
/// were drawn after the proofs were fixed. n proofs under k keys take n + 3k Miller loops and one final
/// exponentiation. `None` if the product does not exist, which happens only if a point is outside its subgroup.
///
/// Under the same weights, the product of some proofs is the product of all, divided by the product of the others.
/// (Arkworks writes the target group additively.)
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
    let sums = group_by_key(proofs, &multiples);
    for (points, sum) in points_of_keys(&sums).chunks_exact(3).zip(&sums) {
        let key = sum.key;
        for (point, prepared) in points
            .iter()
            .zip([&key.beta, &key.minus_gamma, &key.minus_delta])
        {
            product.multiply_prepared(*point, prepared);
        }
    }
    product
}

/// Three points for each key: `−Σ weights·α`, the combination of its points for inputs, and `Σ weight·C`.
fn points_of_keys<E: SnarkCurve>(sums: &[KeySum<'_, E>]) -> Vec<E::G1Affine> {
    // One key has too few points to fill the lanes of a vector.
    let is_short = |sum: &KeySum<'_, E>| sum.instance.len() < MSM_POINTS_MIN;
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

/// The product of a single proof: its quotient, then to the power of its weight. As e(α, β) is known, this saves a
/// Miller loop and four multiplications of points; and the power of a quotient that is one needs no computation.
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

/// `random·A` and `random·C` for each proof: cached ones, and the others computed together.
fn random_multiples<E: SnarkCurve>(proofs: &[WeightedProof<'_, E>]) -> Vec<[E::G1Affine; 2]> {
    let cached: Vec<_> = proofs.iter().map(WeightedProof::cached).collect();
    let uncached = || {
        let pairs = proofs.iter().zip(&cached);
        pairs.filter(|(_, cached)| cached.is_none())
    };
    let points: Vec<_> = uncached().map(|(weighted, _)| weighted.points()).collect();
    let randoms = uncached().map(|(weighted, _)| weighted.weight.random);
    let mut computed = multiply_pairs::<E>(&points, randoms).into_iter();
    let all = proofs.iter().zip(cached).map(|(weighted, cached)| {
        cached.unwrap_or_else(|| {
            let multiples = computed.next().expect("one for each that was not cached");
            weighted.cache(multiples);
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

fn group_by_key<'a, E: SnarkCurve>(
    proofs: &[WeightedProof<'a, E>],
    multiples: &[[E::G1Affine; 2]],
) -> Vec<KeySum<'a, E>> {
    let mut sums: Vec<KeySum<'a, E>> = Vec::new();
    for (weighted, [_, c]) in proofs.iter().zip(multiples) {
        // A linear search: there are few keys. Keys are compared by address.
        let index = sums
            .iter()
            .position(|sum| std::ptr::eq(sum.key, weighted.key))
            .unwrap_or_else(|| {
                sums.push(KeySum::new(weighted.key));
                sums.len() - 1
            });
        sums[index].add(weighted, *c);
    }
    sums
}

// === impl WeightedProof ===

impl<E: SnarkCurve> WeightedProof<'_, E> {
    const fn points(&self) -> [E::G1Affine; 2] {
        [self.proof.a, self.proof.c]
    }

    /// The multiples that an earlier product cached; `None` if there are none, or if they are of another proof or
    /// another random part.
    fn cached(&self) -> Option<[E::G1Affine; 2]> {
        let cached = self.multiples?.0.get()?;
        let applies = cached.random == self.weight.random && cached.points == self.points();
        applies.then_some(cached.multiples)
    }

    fn cache(&self, multiples: [E::G1Affine; 2]) {
        if let Some(cache) = self.multiples {
            // Cached multiples of another proof or weight are not replaced.
            let _ = cache.0.set(CachedMultiples {
                random: self.weight.random,
                points: self.points(),
                multiples,
            });
        }
    }
}

// === impl MultiplesCache ===

impl<E: SnarkCurve> MultiplesCache<E> {
    /// An empty cache.
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
    /// A random weight. `rng` must be unpredictable to those who made the proofs.
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
