//! TIPP for the combined pairing product relation (definition 5.2 of the Hekaton paper; SnarkPack, section 4):
//! of a commitment (T, U) and an element Z, that they are CM_D(A, B) and Σ rⁱ·e(Aᵢ, Bᵢ) for vectors A and B.
//!
//! The vectors are r∘A and B under the key (r⁻¹∘v, w), so that both claims are inner products, and each round
//! folds all of them at a challenge x (GIPA, eprint.iacr.org/2019/1177, section 4):
//!
//! ```text
//! left  ← left_lower  + x⁻¹·left_upper      v ← v_lower + x·v_upper
//! right ← right_lower + x·right_upper       w ← w_lower + x⁻¹·w_upper
//! ```
//!
//! after the prover has sent the terms with x and with x⁻¹ that the inner products get by that. The
//! challenges are short and multiply the second group, where folding costs most; the papers have x and x⁻¹
//! the other way round, which is the same relation. In the end there is one point of each, and the
//! two keys' are opened by [`kzg`](crate::kzg).
//!
//! Vectors whose length is no power of two end with points at infinity, which cost nothing.

use ark_ec::pairing::{MillerLoopOutput, PairingOutput};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{Field, PrimeField};
use proofmill_kernels::pairing::{Product, multi_power};
use proofmill_kernels::{MsmGroup, fold, msm, scale_each};

use crate::commitment::{Commitment, exponentiate, multiply_all};
use crate::kzg::{KeyPolynomial, Residue};
use crate::srs::{CommitmentKey, Powers, VerifierSrs, powers_of};
use crate::torus::AggregationCurve;
use crate::transcript::Transcript;

/// The prover's message of a round: of T, U and Z the terms with the challenge, and those with its
/// inverse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Round<E: AggregationCurve> {
    pub(crate) with_challenge: [PairingOutput<E>; 3],
    pub(crate) with_inverse: [PairingOutput<E>; 3],
}

/// The argument: a message for each round, the folded points, and the openings of the folded keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TippProof<E: AggregationCurve> {
    pub(crate) rounds: Vec<Round<E>>,
    pub(crate) left: E::G1Affine,
    pub(crate) right: E::G2Affine,
    pub(crate) v: [E::G2Affine; 2],
    pub(crate) w: [E::G1Affine; 2],
    pub(crate) v_openings: [E::G2Affine; 2],
    pub(crate) w_openings: [E::G1Affine; 2],
}

/// The claim that is verified.
#[derive(Clone, Debug)]
pub(crate) struct Claim<E: AggregationCurve> {
    /// N.
    pub(crate) size: usize,
    /// r.
    pub(crate) r: E::ScalarField,
    /// The commitment as a combination of others.
    pub(crate) commitment: Vec<(Commitment<E>, E::ScalarField)>,
    /// Z as a combination of elements …
    pub(crate) product: Vec<(PairingOutput<E>, E::ScalarField)>,
    /// … and of the pairings of these points.
    pub(crate) pairs: Vec<(E::G1Affine, E::G2Affine)>,
}

/// The vectors of a round. Those of the claim may be shorter than the keys.
#[derive(Clone, Debug)]
pub(crate) struct Vectors<E: AggregationCurve> {
    pub(crate) left: Vec<E::G1Affine>,
    pub(crate) right: Vec<E::G2Affine>,
    pub(crate) v: [Vec<E::G2Affine>; 2],
    pub(crate) w: [Vec<E::G1Affine>; 2],
}

/// One point of each vector, after all rounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Folded<E: AggregationCurve> {
    pub(crate) left: E::G1Affine,
    pub(crate) right: E::G2Affine,
    pub(crate) v: [E::G2Affine; 2],
    pub(crate) w: [E::G1Affine; 2],
}

/// The challenges of the rounds so far, the first round's first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Challenges<F> {
    pub(crate) x: Vec<F>,
    pub(crate) inverses: Vec<F>,
}

/// Proves that `left` and `right`, each up to N points, have the commitment and the product that the
/// transcript has bound: `left` is scaled by the powers of `r`.
pub(crate) fn prove<E: AggregationCurve>(
    key: CommitmentKey<'_, E>,
    r: E::ScalarField,
    left: Vec<E::G1Affine>,
    right: Vec<E::G2Affine>,
    transcript: &mut Transcript,
) -> TippProof<E> {
    let r_inverse = r.inverse().expect("challenges are not zero");
    let mut vectors = Vectors::new(key, &powers_of(r_inverse, key.size), left, right);
    let mut proof = TippProof::new();
    let mut challenges = Challenges::default();
    proof.fold_all(&mut vectors, &mut challenges, transcript);
    let z = proof.opening_challenge(transcript);
    (proof.v_openings, proof.w_openings) =
        challenges.open::<E>(key.powers, key.size, r_inverse, z, Residue::ALL);
    proof
}

/// True if the proof shows the claim. The whole verification is one product of powers in the target group
/// and one product of eight pairings, beside those of the claim.
pub(crate) fn verify<E: AggregationCurve>(
    srs: &VerifierSrs<E>,
    claim: &Claim<E>,
    proof: &TippProof<E>,
    transcript: &mut Transcript,
) -> bool {
    if proof.rounds.len() != claim.size.trailing_zeros() as usize {
        return false;
    }
    let challenges: Vec<_> = proof
        .rounds
        .iter()
        .map(|round| round.challenge(transcript))
        .collect();
    let z = proof.opening_challenge(transcript);
    let weights = Weights::draw(proof, transcript);
    let (bases, exponents) = powers(claim, proof, &challenges, &weights);
    let mut product = Product::new();
    for (left, right) in &claim.pairs {
        product.multiply((*left * weights.z).into_affine(), *right);
    }
    proof.multiply_folded(&weights, &mut product);
    let (x, x_inverse): (Vec<_>, Vec<_>) = challenges.into_iter().unzip();
    let r_inverse = claim.r.inverse().expect("challenges are not zero");
    let values = [
        KeyPolynomial::of_v(&x, r_inverse).evaluate(z),
        KeyPolynomial::of_w(&x_inverse, claim.size).evaluate(z),
    ];
    proof.multiply_openings(srs, z, values, &weights, &mut product);
    let Some(pairings) = product.checked_value() else {
        return false;
    };
    // Equality in the cyclotomic subgroup: see `torus`.
    multi_power(&bases, &exponents) == -pairings
}

/// The weights under which all that must hold is one equation; that of T is one. Each is 128 bits long,
/// drawn when everything else is fixed: a false proof passes with a chance of 2⁻¹²⁷.
struct Weights<F> {
    u: F,
    z: F,
    v_openings: [F; 2],
    w_openings: [F; 2],
}

/// The bases and exponents of Σ weights·(claim + x·messages + x⁻¹·messages).
fn powers<E: AggregationCurve>(
    claim: &Claim<E>,
    proof: &TippProof<E>,
    challenges: &[(E::ScalarField, E::ScalarField)],
    weights: &Weights<E::ScalarField>,
) -> (Vec<PairingOutput<E>>, Vec<E::ScalarField>) {
    let mut terms = Vec::with_capacity(2 * claim.commitment.len() + 6 * challenges.len() + 8);
    let weight = [E::ScalarField::ONE, weights.u, weights.z];
    for (commitment, coefficient) in &claim.commitment {
        let elements = commitment.0.iter().zip(&weight);
        terms.extend(elements.map(|(element, weight)| (*element, *coefficient * weight)));
    }
    for (element, coefficient) in &claim.product {
        terms.push((*element, *coefficient * weights.z));
    }
    for (round, (x, x_inverse)) in proof.rounds.iter().zip(challenges) {
        for (elements, factor) in [(&round.with_challenge, x), (&round.with_inverse, x_inverse)] {
            let elements = elements.iter().zip(&weight);
            terms.extend(elements.map(|(element, weight)| (*element, *factor * weight)));
        }
    }
    terms.into_iter().unzip()
}

// === impl Vectors ===

impl<E: AggregationCurve> Vectors<E> {
    /// The vectors of the first round: `left` and `right` of the claim under the key (`scale`∘v, w).
    pub(crate) fn new(
        key: CommitmentKey<'_, E>,
        scale: &[E::ScalarField],
        left: Vec<E::G1Affine>,
        right: Vec<E::G2Affine>,
    ) -> Self {
        Self {
            left,
            right,
            v: key.v().map(|v| scale_each::<E::G2>(v, scale)),
            w: key.w().map(<[_]>::to_vec),
        }
    }

    /// The length of the keys.
    pub(crate) fn size(&self) -> usize {
        self.v[0].len()
    }

    /// The points of vectors of size one.
    pub(crate) fn folded(&self) -> Folded<E> {
        Folded {
            left: self.left.first().copied().unwrap_or_default(),
            right: self.right.first().copied().unwrap_or_default(),
            v: self.v.each_ref().map(|v| v[0]),
            w: self.w.each_ref().map(|w| w[0]),
        }
    }

    /// The terms that folding will add.
    pub(crate) fn round(&self) -> Round<E> {
        let half = self.size() / 2;
        let (left_lower, left_upper) = halves(&self.left, half);
        let (right_lower, right_upper) = halves(&self.right, half);
        let of = |left: &[E::G1Affine], right: &[E::G2Affine], side: Option<(usize, bool)>| {
            let mut product = Product::new();
            match side {
                // The term of Z.
                None => multiply_all(&mut product, left, right),
                Some((side, is_upper)) => {
                    let (v_lower, v_upper) = self.v[side].split_at(half);
                    let (w_lower, w_upper) = self.w[side].split_at(half);
                    let (v, w) = if is_upper {
                        (v_upper, w_lower)
                    } else {
                        (v_lower, w_upper)
                    };
                    multiply_all(&mut product, left, v);
                    multiply_all(&mut product, w, right);
                }
            }
            product.miller_loop()
        };
        let terms = |left: &[E::G1Affine], right: &[E::G2Affine], is_upper: bool| {
            [Some((0, is_upper)), Some((1, is_upper)), None].map(|side| of(left, right, side))
        };
        let [a, b, c]: [MillerLoopOutput<E>; 3] = terms(left_lower, right_upper, true);
        let [d, e, f] = terms(left_upper, right_lower, false);
        // Side by side, six exponentiations take little more time than one: in late rounds that counts.
        let [a, b, c, d, e, f] = exponentiate([a, b, c, d, e, f]);
        Round {
            with_challenge: [a, b, c],
            with_inverse: [d, e, f],
        }
    }

    pub(crate) fn fold(&mut self, x: E::ScalarField, x_inverse: E::ScalarField) {
        let half = self.size() / 2;
        self.left = folded::<E::G1>(&self.left, half, x_inverse);
        self.right = folded::<E::G2>(&self.right, half, x);
        for v in &mut self.v {
            *v = folded::<E::G2>(v, half, x);
        }
        for w in &mut self.w {
            *w = folded::<E::G1>(w, half, x_inverse);
        }
    }
}

/// The lower half of a vector that may be shorter than two halves, and the rest.
fn halves<A>(points: &[A], half: usize) -> (&[A], &[A]) {
    points.split_at(half.min(points.len()))
}

/// lower + x·upper; missing points count as infinity.
fn folded<G: MsmGroup>(points: &[G::Affine], half: usize, x: G::ScalarField) -> Vec<G::Affine> {
    let (lower, upper) = halves(points, half);
    let (both, rest) = lower.split_at(upper.len());
    let mut sums = fold::<G>(both, upper, x);
    sums.extend_from_slice(rest);
    sums
}

// === impl Challenges ===

impl<F: PrimeField> Challenges<F> {
    pub(crate) fn push(&mut self, x: F, x_inverse: F) {
        self.x.push(x);
        self.inverses.push(x_inverse);
    }

    /// The openings of the folded keys v and w at z, when all challenges are drawn: the part of them of the powers in
    /// a residue class, which `powers` has without those in between. `size` is N.
    pub(crate) fn open<E: AggregationCurve<ScalarField = F>>(
        &self,
        powers: [&Powers<E>; 2],
        size: usize,
        r_inverse: F,
        z: F,
        residue: Residue,
    ) -> ([E::G2Affine; 2], [E::G1Affine; 2]) {
        let of_v = KeyPolynomial::of_v(&self.x, r_inverse);
        let of_w = KeyPolynomial::of_w(&self.inverses, size);
        (
            of_v.open::<E::G2>(powers.map(|powers| &powers.g2[..]), z, residue),
            of_w.open::<E::G1>(powers.map(|powers| &powers.g1[..]), z, residue),
        )
    }
}

// === impl Round ===

impl<E: AggregationCurve> Round<E> {
    /// The round's challenge, 128 bits long, and its inverse.
    pub(crate) fn challenge(
        &self,
        transcript: &mut Transcript,
    ) -> (E::ScalarField, E::ScalarField) {
        transcript.absorb_elements("round: with x", &self.with_challenge);
        transcript.absorb_elements("round: with 1/x", &self.with_inverse);
        let x: E::ScalarField = transcript.short_scalar("x");
        (x, x.inverse().expect("challenges are not zero"))
    }
}

// === impl TippProof ===

impl<E: AggregationCurve> TippProof<E> {
    /// An argument without rounds, whose points are all infinity.
    pub(crate) fn new() -> Self {
        Self {
            rounds: Vec::new(),
            left: E::G1Affine::zero(),
            right: E::G2Affine::zero(),
            v: Default::default(),
            w: Default::default(),
            v_openings: Default::default(),
            w_openings: Default::default(),
        }
    }

    /// Adds the rounds that fold the vectors to one point each, and these points.
    pub(crate) fn fold_all(
        &mut self,
        vectors: &mut Vectors<E>,
        challenges: &mut Challenges<E::ScalarField>,
        transcript: &mut Transcript,
    ) {
        while vectors.size() > 1 {
            let round = vectors.round();
            let (x, x_inverse) = round.challenge(transcript);
            vectors.fold(x, x_inverse);
            challenges.push(x, x_inverse);
            self.rounds.push(round);
        }
        let folded = vectors.folded();
        self.left = folded.left;
        self.right = folded.right;
        self.v = folded.v;
        self.w = folded.w;
    }

    /// z, when the folded points are fixed.
    pub(crate) fn opening_challenge(&self, transcript: &mut Transcript) -> E::ScalarField {
        transcript.absorb_points("folded left", &[self.left]);
        transcript.absorb_points("folded right", &[self.right]);
        transcript.absorb_points("folded v", &self.v);
        transcript.absorb_points("folded w", &self.w);
        transcript.scalar("z")
    }

    /// Divides by what T, U and Z must be of the folded points, under their weights:
    /// e(left, v₁ + u·v₂ + z·right) and e(w₁ + u·w₂, right).
    fn multiply_folded(&self, weights: &Weights<E::ScalarField>, product: &mut Product<'_, E>) {
        let one = E::ScalarField::ONE;
        let [v1, v2] = self.v;
        let second = msm::<E::G2>(&[v1, v2, self.right], &[one, weights.u, weights.z]);
        let first = msm::<E::G1>(&self.w, &[-one, -weights.u]);
        let minus_left = (-self.left.into_group()).into_affine();
        product.multiply(minus_left, second.into_affine());
        product.multiply(first.into_affine(), self.right);
    }

    /// Multiplies by what must be one for the openings of the folded keys to hold, under their weights.
    /// With s one of the secrets a and b, π the opening and f its polynomial that is
    /// `e(G, v − f(z)·H + z·π) / e(s·G, π)` for v, and `e(w − f(z)·G + z·π, H) / e(π, s·H)` for w.
    fn multiply_openings<'a>(
        &self,
        srs: &'a VerifierSrs<E>,
        z: E::ScalarField,
        [v_value, w_value]: [E::ScalarField; 2],
        weights: &Weights<E::ScalarField>,
        product: &mut Product<'a, E>,
    ) {
        let g = E::G1Affine::generator();
        let [a, b] = weights.v_openings;
        let ([v1, v2], [open1, open2]) = (self.v, self.v_openings);
        let beside_g = msm::<E::G2>(&[v1, v2, open1, open2], &[a, b, a * z, b * z]);
        product.multiply(g, beside_g.into_affine());
        for (side, weight) in weights.v_openings.iter().enumerate() {
            let left = (srs.g1[side] * -*weight).into_affine();
            product.multiply(left, self.v_openings[side]);
        }

        let [c, d] = weights.w_openings;
        let ([w1, w2], [open1, open2]) = (self.w, self.w_openings);
        let of_g = -((a + b) * v_value + (c + d) * w_value);
        let beside_h = msm::<E::G1>(&[w1, w2, open1, open2, g], &[c, d, c * z, d * z, of_g]);
        product.multiply_prepared(beside_h.into_affine(), &srs.h);
        for (side, weight) in weights.w_openings.iter().enumerate() {
            let left = (self.w_openings[side] * -*weight).into_affine();
            product.multiply_prepared(left, &srs.g2[side]);
        }
    }
}

// === impl Weights ===

impl<F: PrimeField> Weights<F> {
    fn draw<E: AggregationCurve<ScalarField = F>>(
        proof: &TippProof<E>,
        transcript: &mut Transcript,
    ) -> Self {
        transcript.absorb_points("openings of v", &proof.v_openings);
        transcript.absorb_points("openings of w", &proof.w_openings);
        Self {
            u: transcript.short_scalar("weight of U"),
            z: transcript.short_scalar("weight of Z"),
            v_openings: ["a", "b"].map(|_| transcript.short_scalar("weight of an opening of v")),
            w_openings: ["a", "b"].map(|_| transcript.short_scalar("weight of an opening of w")),
        }
    }
}
