//! Claims under weights, as one combination of points.

use ark_ff::{One, Zero};
use proofmill_kernels::{NoRandomness, draw_weights, inner_products};

use crate::reduce::DeferredClaim;
use crate::{Point, Scalar};

/// The random factors of a claim's two combinations of points in a sum of claims.
///
/// If weights are drawn independently after the claims are fixed, a sum with a part that is not zero
/// is zero with a probability of 2⁻¹²⁸.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights {
    /// ρ: the weight of the folded commitment.
    argument: Scalar,
    /// σ: the weight of the folded SRS, which binds G₀.
    folded_base: Scalar,
}

/// A sum of claims: coefficients of the SRS and of G, and points of the claims' own.
pub(crate) struct Combination {
    pub(crate) srs: Vec<Scalar>,
    pub(crate) generator: Scalar,
    pub(crate) points: Vec<Point>,
    pub(crate) scalars: Vec<Scalar>,
}

/// Products of a claim's inverse challenges, whose products with each other make the vector s.
struct ChallengeProducts {
    /// Products over the first rounds, times the claim's weight: 2^h for each of `count` claims, with the
    /// claims adjacent.
    high: Vec<Scalar>,
    /// Products over the other rounds.
    low: Vec<Scalar>,
    count: usize,
}

// === impl Weights ===

impl Weights {
    /// Draws weights of 128 bits for `count` claims from the operating system. Draw them after the claims are
    /// fixed: a claim chosen with its weights known can be false and pass.
    ///
    /// # Errors
    ///
    /// [`NoRandomness`] if the operating system gives no random numbers; the claims cannot be checked then.
    pub fn draw(count: usize) -> Result<Vec<Self>, NoRandomness> {
        let drawn: Vec<Scalar> = draw_weights(2 * count)?;
        let pairs = drawn.as_chunks::<2>().0.iter();
        Ok(pairs
            .map(|[argument, folded_base]| Self {
                argument: *argument,
                folded_base: *folded_base,
            })
            .collect())
    }

    /// The weights times a number, for sums that locate a false claim.
    #[must_use]
    pub fn times(&self, factor: u64) -> Self {
        let factor = Scalar::from(factor);
        Self {
            argument: self.argument * factor,
            folded_base: self.folded_base * factor,
        }
    }
}

// === impl Combination ===

impl Combination {
    /// Σ ρ·(C + u·(v − a₀·b₀)·G + Σ(u_j⁻¹·L_j + u_j·R_j) − a₀·⟨s, SRS⟩) + σ·(⟨s, SRS⟩ − G₀).
    ///
    /// The first combination has ⟨s, SRS⟩ for the prover's G₀, which the second compares with it. So
    /// the scalar of G₀ is a short one.
    pub(crate) fn of(claims: &[(&DeferredClaim, Weights)], log_size: u32) -> Self {
        let points = claims.iter().map(|(claim, _)| claim.own_points()).sum();
        let mut combination = Self {
            srs: Vec::new(),
            generator: Scalar::zero(),
            points: Vec::with_capacity(points),
            scalars: Vec::with_capacity(points),
        };
        for (claim, weights) in claims {
            combination.generator += weights.argument * claim.generator_coefficient();
            combination.add_folded_commitment(claim, weights.argument);
            combination.add(claim.folded_base, -weights.folded_base);
        }
        let seeds: Vec<_> = claims
            .iter()
            .map(|(claim, weights)| {
                let seed = weights.folded_base - weights.argument * claim.folded_coefficient;
                (claim.inverses.as_slice(), seed)
            })
            .collect();
        combination.srs = weighted_products(&seeds, log_size);
        combination
    }

    /// One claim's second combination with its own G₀: C + u·(v − a₀·b₀)·G + Σ(u_j⁻¹·L_j + u_j·R_j)
    /// − a₀·G₀. All its terms are in `points`.
    pub(crate) fn of_argument(claim: &DeferredClaim, generator: Point) -> Self {
        let mut combination = Self {
            srs: Vec::new(),
            generator: Scalar::zero(),
            points: Vec::with_capacity(claim.own_points() + 1),
            scalars: Vec::with_capacity(claim.own_points() + 1),
        };
        combination.add_folded_commitment(claim, Scalar::one());
        combination.add(claim.folded_base, -claim.folded_coefficient);
        combination.add(generator, claim.generator_coefficient());
        combination
    }

    fn add_folded_commitment(&mut self, claim: &DeferredClaim, weight: Scalar) {
        self.add(claim.claim.commitment, weight);
        let challenges = claim.challenges.iter().zip(&claim.inverses);
        for (round, (challenge, inverse)) in claim.rounds.iter().zip(challenges) {
            self.add(round.left, weight * inverse);
            self.add(round.right, weight * challenge);
        }
    }

    fn add(&mut self, point: Point, scalar: Scalar) {
        self.points.push(point);
        self.scalars.push(scalar);
    }
}

/// Σ seed·s of claims, given by their inverse challenges: s has at i the product of those u_j⁻¹
/// whose bit of i is set, the highest bit being the first round's.
///
/// No claim's s is ever stored or computed: each entry is the product of a factor for the upper bits of i and
/// a factor for the lower bits, so an entry of the sum is an inner product over the claims.
pub(crate) fn weighted_products(claims: &[(&[Scalar], Scalar)], log_size: u32) -> Vec<Scalar> {
    let factors = ChallengeProducts::of(claims, log_size);
    if factors.count == 0 {
        return vec![Scalar::zero(); 1 << log_size];
    }
    inner_products(&factors.high, &factors.low, factors.count)
}

// === impl ChallengeProducts ===

impl ChallengeProducts {
    fn of(claims: &[(&[Scalar], Scalar)], log_size: u32) -> Self {
        let count = claims.len();
        let high_rounds = log_size as usize / 2;
        let mut factors = Self {
            high: vec![Scalar::zero(); count << high_rounds],
            low: vec![Scalar::zero(); count << (log_size as usize - high_rounds)],
            count,
        };
        let mut scratch = Vec::new();
        for (number, (inverses, seed)) in claims.iter().enumerate() {
            assert_eq!(inverses.len(), log_size as usize, "a claim for another SRS");
            let (high, low) = inverses.split_at(high_rounds);
            expand(*seed, high, &mut scratch);
            scatter(&scratch, &mut factors.high, number, count);
            expand(Scalar::one(), low, &mut scratch);
            scatter(&scratch, &mut factors.low, number, count);
        }
        factors
    }
}

/// The products of a seed with each set of the numbers, by doubling in place.
fn expand(seed: Scalar, numbers: &[Scalar], products: &mut Vec<Scalar>) {
    products.clear();
    products.push(seed);
    // The last number is for the lowest bit of a product's index. Each number doubles the list: the
    // products without the number, then those with it.
    for number in numbers.iter().rev() {
        for i in 0..products.len() {
            products.push(products[i] * number);
        }
    }
}

/// Writes every `count`-th element, from `first` on.
fn scatter(values: &[Scalar], to: &mut [Scalar], first: usize, count: usize) {
    for (value, place) in values.iter().zip(to[first..].iter_mut().step_by(count)) {
        *place = *value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ff::UniformRand;

    /// Entry by entry, from the definition.
    #[test]
    fn weighted_products_are_those_of_the_definition() {
        let rng = &mut ark_std::test_rng();
        for log_size in 0..7 {
            for count in [0, 1, 2, 17] {
                let claims: Vec<_> = (0..count)
                    .map(|_| {
                        let inverses: Vec<_> = (0..log_size).map(|_| Scalar::rand(rng)).collect();
                        (inverses, Scalar::rand(rng))
                    })
                    .collect();
                let references: Vec<_> = claims.iter().map(|(i, s)| (i.as_slice(), *s)).collect();
                let sums = weighted_products(&references, log_size);
                assert_eq!(sums.len(), 1 << log_size);
                for (place, sum) in sums.iter().enumerate() {
                    let entry = |(inverses, seed): &(Vec<Scalar>, Scalar)| -> Scalar {
                        let set = |round: usize| place >> (log_size as usize - 1 - round) & 1 == 1;
                        let chosen = (0..log_size as usize).filter(|round| set(*round));
                        *seed * chosen.map(|round| inverses[round]).product::<Scalar>()
                    };
                    assert_eq!(*sum, claims.iter().map(entry).sum(), "{log_size}, {place}");
                }
            }
        }
    }

    #[test]
    fn weights_differ() {
        let weights = Weights::draw(100).unwrap();
        for (number, drawn) in weights.iter().enumerate() {
            assert!(drawn.argument != drawn.folded_base && !weights[..number].contains(drawn));
        }
    }
}
