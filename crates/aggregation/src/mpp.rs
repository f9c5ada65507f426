//! Several pairing products at once (section 5.2 and figure 5 of the Hekaton paper), in fewer messages.
//!
//! Vectors X₀ … X_k and Y₀ … Y_k, where Xⱼ has a commitment CM₁ and Yⱼ one CM₂, but X₀ and Y₀ one CM_D
//! together; Y₁ … Y_k have one value for each class of places, and their commitments are part of the
//! key. With X ∗ Y = Σ rⁱ·e(Xᵢ, Yᵢ) the claim is
//!
//! ```text
//! X₀ ∗ Y₀ = X₁ ∗ Y₁ + … + X_k ∗ Y_k + Z₀
//! ```
//!
//! for a Z₀ that the verifier computes.
//!
//! **Difference from the paper.** Figure 5 folds the left and the right vectors by independent challenges s
//! and t, and sends each of the (k + 1)² products, sixteen for Mirage. Here there is one challenge:
//!
//! ```text
//! L = X₀ + s·X₁ + … + s^k·X_k          R = Y₀ − s⁻¹·Y₁ − … − s⁻ᵏ·Y_k
//! ```
//!
//! The term of L ∗ R without s is X₀ ∗ Y₀ − X₁ ∗ Y₁ − … − X_k ∗ Y_k, which the claim says is Z₀: the verifier
//! takes Z₀ for this term. The other terms are sums along the diagonals, one for each of s, …, s^k and s⁻¹, …, s⁻ᵏ,
//! six for Mirage, and the product A ∗ B need not be computed.
//!
//! Soundness: TIPP's extractor, run for 3k + 1 challenges s (ten for Mirage: hidden parts of a prover's commitments
//! give L ∗ R terms from s⁻ᵏ to s²ᵏ), gives openings of each commitment by interpolation, as in the proof of theorem
//! 5.4. Those of Y₁ … Y_k (and of an Xⱼ that the key commits to) are the honest ones, as commitments bind. A prover's
//! commitment to Xⱼ may turn out to have a part in the second group, which then is a term of R with sʲ, j ≥ 1. All
//! terms of L have powers from 0 to k, so that part adds only terms of sʲ or higher to L ∗ R: the term without s
//! stays as claimed.

use ark_ec::CurveGroup;
use ark_ec::pairing::PairingOutput;
use ark_ff::Field;
use proofmill_kernels::pairing::Product;
use proofmill_kernels::{MsmGroup, fold, msm, scale_each};
use rayon::prelude::*;

use crate::commitment::{Commitment, multiply_all};
use crate::srs::{CommitmentKey, VerifierSrs, powers_of};
use crate::tipp::{self, TippProof};
use crate::torus::AggregationCurve;
use crate::transcript::Transcript;

/// The vectors, as the prover has them: all of one length up to N.
pub(crate) struct Vectors<'a, E: AggregationCurve> {
    /// X₀ … X_k.
    pub(crate) first: Vec<&'a [E::G1Affine]>,
    /// Y₀.
    pub(crate) second: &'a [E::G2Affine],
    /// The class of each place.
    pub(crate) class_of: &'a [u32],
    /// Y₁ … Y_k of each class.
    pub(crate) constants: Vec<Vec<E::G2Affine>>,
}

/// The claim of the argument, in the form that the verifier has: commitments and combinations of them.
pub(crate) struct Claim<E: AggregationCurve> {
    /// N.
    pub(crate) size: usize,
    /// r.
    pub(crate) r: E::ScalarField,
    /// CM_D(X₀, Y₀).
    pub(crate) both: Commitment<E>,
    /// CM₁ of X₁ … X_k, each as a combination of commitments.
    pub(crate) first: Vec<Vec<(Commitment<E>, E::ScalarField)>>,
    /// CM₂ of Y₁ … Y_k.
    pub(crate) second: Vec<Commitment<E>>,
    /// Z₀ as a combination of elements …
    pub(crate) product: Vec<(PairingOutput<E>, E::ScalarField)>,
    /// … and of the pairings of these points.
    pub(crate) pairs: Vec<(E::G1Affine, E::G2Affine)>,
}

/// The argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MppProof<E: AggregationCurve> {
    /// The terms of L ∗ R with s, …, s^k, then those with s⁻¹, …, s⁻ᵏ.
    pub(crate) cross: Vec<PairingOutput<E>>,
    pub(crate) tipp: TippProof<E>,
}

/// Proves the claim about commitments that the transcript has bound.
pub(crate) fn prove<E: AggregationCurve>(
    key: CommitmentKey<'_, E>,
    r: E::ScalarField,
    vectors: &Vectors<'_, E>,
    transcript: &mut Transcript,
) -> MppProof<E> {
    let scale = powers_of(r, vectors.second.len());
    let scaled = vectors.scaled(&scale);
    let cross = vectors.cross_terms(&scaled);
    let s: E::ScalarField = combination_challenge(&cross, transcript);
    let left = combined_first::<E>(scaled, s);
    let right = vectors.combined_second(s);
    let tipp = tipp::prove(key, r, left, right, transcript);
    MppProof { cross, tipp }
}

/// True if the proof shows the claim.
pub(crate) fn verify<E: AggregationCurve>(
    srs: &VerifierSrs<E>,
    claim: Claim<E>,
    proof: &MppProof<E>,
    transcript: &mut Transcript,
) -> bool {
    let terms = claim.second.len();
    if proof.cross.len() != 2 * terms || claim.first.len() != terms {
        return false;
    }
    let s: E::ScalarField = combination_challenge(&proof.cross, transcript);
    let s_inverse = s.inverse().expect("challenges are not zero");
    let powers = powers_of(s, terms + 1);
    let inverse_powers = powers_of(s_inverse, terms + 1);

    let mut commitment = vec![(claim.both, E::ScalarField::ONE)];
    for (combination, power) in claim.first.iter().zip(&powers[1..]) {
        let terms = combination.iter();
        commitment.extend(terms.map(|(of, coefficient)| (*of, *coefficient * power)));
    }
    for (of, power) in claim.second.iter().zip(&inverse_powers[1..]) {
        commitment.push((*of, -*power));
    }
    let mut product = claim.product;
    let powers = powers[1..].iter().chain(&inverse_powers[1..]);
    product.extend(
        proof
            .cross
            .iter()
            .zip(powers)
            .map(|(of, power)| (*of, *power)),
    );
    let claim = tipp::Claim {
        size: claim.size,
        r: claim.r,
        commitment,
        product,
        pairs: claim.pairs,
    };
    tipp::verify(srs, &claim, &proof.tipp, transcript)
}

/// L, of vectors X that are scaled by powers of r.
pub(crate) fn combined_first<E: AggregationCurve>(
    scaled: Vec<Vec<E::G1Affine>>,
    s: E::ScalarField,
) -> Vec<E::G1Affine> {
    let mut combined = scaled.into_iter().rev();
    let mut left = combined.next().expect("at least X₀");
    for next in combined {
        left = fold::<E::G1>(&next, &left, s);
    }
    left
}

/// s, when the cross products are fixed.
pub(crate) fn combination_challenge<E: AggregationCurve>(
    cross: &[PairingOutput<E>],
    transcript: &mut Transcript,
) -> E::ScalarField {
    transcript.absorb_elements("cross products", cross);
    transcript.scalar("s")
}

// === impl Vectors ===

impl<E: AggregationCurve> Vectors<'_, E> {
    /// X₀ … X_k, place i multiplied by `scale[i]`.
    pub(crate) fn scaled(&self, scale: &[E::ScalarField]) -> Vec<Vec<E::G1Affine>> {
        let first = self.first.iter();
        first
            .map(|points| scale_each::<E::G1>(points, scale))
            .collect()
    }

    /// The terms of L ∗ R with s, …, s^k and s⁻¹, …, s⁻ᵏ, of vectors X that are scaled by powers of r.
    ///
    /// A product with a Yⱼ of classes is a pairing for each class, with the sum over its places.
    pub(crate) fn cross_terms(&self, scaled: &[Vec<E::G1Affine>]) -> Vec<PairingOutput<E>> {
        let minus_sums: Vec<Vec<E::G1Affine>> = scaled
            .par_iter()
            .map(|points| self.minus_class_sums(points))
            .collect();
        let terms = scaled.len() - 1;
        // −Xᵢ ∗ Yⱼ, j from 1.
        let by_classes = |product: &mut Product<'_, E>, i: usize, j: usize| {
            for (sum, constants) in minus_sums[i].iter().zip(&self.constants) {
                product.multiply(*sum, constants[j - 1]);
            }
        };
        let with_power = (1..=terms).map(|difference| {
            let mut product = Product::new();
            multiply_all(&mut product, &scaled[difference], self.second);
            for j in 1..=terms - difference {
                by_classes(&mut product, j + difference, j);
            }
            product.value()
        });
        let with_inverse = (1..=terms).map(|difference| {
            let mut product = Product::new();
            for i in 0..=terms - difference {
                by_classes(&mut product, i, i + difference);
            }
            product.value()
        });
        with_power.chain(with_inverse).collect()
    }

    /// For each class, the negated sum of the points at its places.
    fn minus_class_sums(&self, points: &[E::G1Affine]) -> Vec<E::G1Affine> {
        let mut sums = vec![E::G1::default(); self.constants.len()];
        for (point, class) in points.iter().zip(self.class_of) {
            sums[*class as usize] -= point;
        }
        E::G1::normalize_batch(&sums)
    }

    /// R.
    pub(crate) fn combined_second(&self, s: E::ScalarField) -> Vec<E::G2Affine> {
        let s_inverse = s.inverse().expect("challenges are not zero");
        let terms = self.first.len() - 1;
        let powers: Vec<_> = powers_of(s_inverse, terms + 1)[1..]
            .iter()
            .map(|power| -*power)
            .collect();
        let of_classes: Vec<E::G2> = self
            .constants
            .par_iter()
            .map(|constants| msm::<E::G2>(constants, &powers))
            .collect();
        let of_classes = E::G2::normalize_batch(&of_classes);
        let added: Vec<_> = self
            .class_of
            .iter()
            .map(|class| of_classes[*class as usize])
            .collect();
        let mut right = self.second.to_vec();
        E::G2::batch_add_assign(&mut right, &added);
        right
    }
}

/// 1 + r + … + r^(count−1).
pub(crate) fn geometric_sum<F: Field>(r: F, count: usize) -> F {
    let mut sum = F::ZERO;
    for _ in 0..count {
        sum = sum * r + F::ONE;
    }
    sum
}

/// For each class, the ranges of its places.
pub(crate) fn places_of_classes(
    class_of: &[u32],
    classes: usize,
) -> Vec<Vec<std::ops::Range<usize>>> {
    let mut places: Vec<Vec<std::ops::Range<usize>>> = vec![Vec::new(); classes];
    for (place, class) in class_of.iter().enumerate() {
        let places = &mut places[*class as usize];
        match places.last_mut() {
            Some(range) if range.end == place => range.end += 1,
            _ => places.push(place..place + 1),
        }
    }
    places
}
