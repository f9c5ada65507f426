//! The structured reference string: powers of two secrets a and b in both groups (SnarkPack, Gailly,
//! Maller and Nitulescu, eprint.iacr.org/2021/529, section 3.1).
//!
//! A string of capacity M, a power of two, has aⁱ·G and bⁱ·G for i below 2·M, and aⁱ·H and bⁱ·H for i
//! below M, where G and H are the curve's generators. It serves every number of proofs up to M: the
//! commitment key for N of them is the first N powers in the second group, and those from N to 2·N − 1 in
//! the first. That the higher powers are public as well does not help to open a commitment twice:
//! with coefficients that are polynomials in a and in b, as all that a generic prover has, the terms of
//! Σ Aᵢ·aⁱ + a^N·Σ Bᵢ·aⁱ and of the same in b that are in both unknowns must vanish one by one, which
//! leaves constants, and these are at different powers.
//!
//! Nobody may know a or b. [`Srs::setup`] knows them for a moment; everybody who [contributes](Srs::contribute)
//! multiplies both by secrets of their own, and one who forgets them is enough.

use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::Field;
use ark_std::rand::{CryptoRng, RngCore};
use proofmill_kernels::pairing::{PreparedG2, Product};
use proofmill_kernels::{MsmGroup, msm, scale_each};
use zeroize::Zeroizing;

use crate::aggregate::{Points, write_point};
use crate::contribution::{Contribution, SecretKnowledge};
use crate::files::{AggregationFileError, FileKind, wrong_point};
use crate::kzg::Residue;
use crate::torus::AggregationCurve;
use crate::transcript::Transcript;

/// The largest capacity: 2²⁰ proofs, a string of some 700 MiB over BLS12-381.
pub const MAX_CAPACITY: usize = 1 << 20;

/// Powers of one secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Powers<E: AggregationCurve> {
    /// Powers in the first group, twice as many as the capacity.
    pub(crate) g1: Vec<E::G1Affine>,
    /// Powers in the second group, as many as the capacity.
    pub(crate) g2: Vec<E::G2Affine>,
}

/// A structured reference string and the chain of those who contributed to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Srs<E: AggregationCurve> {
    /// Powers of a, and powers of b.
    pub(crate) powers: [Powers<E>; 2],
    pub(crate) contributions: Vec<Contribution<E>>,
}

/// The part of a string for a verifier: G, H, and the first powers. It is the same for strings of every
/// capacity with the same secrets.
#[derive(Clone, Debug)]
pub struct VerifierSrs<E: AggregationCurve> {
    /// a·G and b·G.
    pub(crate) g1: [E::G1Affine; 2],
    /// H.
    pub(crate) h: PreparedG2<E>,
    /// a·H and b·H.
    pub(crate) g2: [PreparedG2<E>; 2],
    digest: [u8; 32],
}

/// The part of a string that commits to vectors of N = 2^k elements.
#[derive(Clone, Copy, Debug)]
pub struct CommitmentKey<'a, E: AggregationCurve> {
    pub(crate) powers: [&'a Powers<E>; 2],
    /// N.
    pub(crate) size: usize,
}

/// A reference string that is inconsistent, or not large enough.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SrsError {
    /// The number of proofs is zero or exceeds the string's capacity.
    #[error("{count} proofs: this reference string is for 1 to {capacity}; make a larger one")]
    Count {
        /// The number of proofs.
        count: usize,
        /// The string's.
        capacity: usize,
    },
    /// A capacity that no string has.
    #[error(
        "a reference string for {0} proofs: the capacity is a power of two from 2 to {MAX_CAPACITY}"
    )]
    Capacity(usize),
    /// The powers are not powers of one number.
    #[error("the reference string's powers of {secret} are inconsistent: do not use it")]
    Inconsistent {
        /// `a` or `b`.
        secret: char,
    },
    /// A secret is zero or one, or both are the same.
    #[error("the reference string has a trivial secret: do not use it")]
    Trivial,
    /// A contribution does not follow from the one before, or the last is not the string's.
    #[error("contribution {index} of the reference string is false: do not use it")]
    Contribution {
        /// The number of the contribution, from 0.
        index: usize,
    },
    /// The string has no contribution.
    #[error("the reference string names no contribution: do not use it")]
    NoContribution,
}

// === impl Srs ===

impl<E: AggregationCurve> Srs<E> {
    /// Makes a string for up to `capacity` proofs, a power of two, from secrets that are drawn here and
    /// forgotten. **For development**, unless others contribute: with the secrets, proofs can be forged.
    ///
    /// # Errors
    ///
    /// [`SrsError::Capacity`].
    pub fn setup(capacity: usize, rng: &mut (impl RngCore + CryptoRng)) -> Result<Self, SrsError> {
        if !capacity.is_power_of_two() || !(2..=MAX_CAPACITY).contains(&capacity) {
            return Err(SrsError::Capacity(capacity));
        }
        let ones = Powers {
            g1: vec![E::G1Affine::generator(); 2 * capacity],
            g2: vec![E::G2Affine::generator(); capacity],
        };
        let mut srs = Self {
            powers: [ones.clone(), ones],
            contributions: Vec::new(),
        };
        srs.contribute(rng);
        Ok(srs)
    }

    /// Multiplies a and b by secrets that are drawn here and forgotten, and adds a proof of knowledge of them to
    /// the chain. It is not in constant time: run it on a machine without other users.
    pub fn contribute(&mut self, rng: &mut (impl RngCore + CryptoRng)) {
        let before = self.first_powers();
        let chain = chain_digest(&self.contributions);
        let mut knowledge = Vec::with_capacity(2);
        for (number, powers) in self.powers.iter_mut().enumerate() {
            let secret = Zeroizing::new(nonzero::<E::ScalarField>(rng));
            powers.multiply(*secret);
            let after = powers.g1[1];
            knowledge.push(SecretKnowledge::<E>::prove(
                &chain,
                number,
                before[number],
                after,
                &secret,
                rng,
            ));
        }
        let [a, b] = [knowledge[0].clone(), knowledge[1].clone()];
        self.contributions.push(Contribution {
            first_powers: self.first_powers(),
            knowledge: [a, b],
        });
    }

    /// The largest number of proofs.
    pub fn capacity(&self) -> usize {
        self.powers[0].g2.len()
    }

    /// The chain of contributions, that of the setup first.
    pub fn contributions(&self) -> &[Contribution<E>] {
        &self.contributions
    }

    /// The string for up to `capacity` proofs, a power of two, with the same secrets.
    ///
    /// # Errors
    ///
    /// [`SrsError::Capacity`] if it is no capacity, or above this string's.
    pub fn truncated(&self, capacity: usize) -> Result<Self, SrsError> {
        let possible = capacity.is_power_of_two() && (2..=self.capacity()).contains(&capacity);
        if !possible {
            return Err(SrsError::Capacity(capacity));
        }
        let mut srs = self.clone();
        for powers in &mut srs.powers {
            powers.g1.truncate(2 * capacity);
            powers.g2.truncate(capacity);
        }
        Ok(srs)
    }

    /// The key that commits to `count` elements, padded to a power of two.
    ///
    /// # Errors
    ///
    /// [`SrsError::Count`] if there are none, or more than the capacity.
    pub fn commitment_key(&self, count: usize) -> Result<CommitmentKey<'_, E>, SrsError> {
        let capacity = self.capacity();
        if count == 0 || count > capacity {
            return Err(SrsError::Count { count, capacity });
        }
        Ok(CommitmentKey {
            powers: [&self.powers[0], &self.powers[1]],
            size: count.next_power_of_two(),
        })
    }

    /// The part of the string for a verifier.
    pub fn verifier(&self) -> VerifierSrs<E> {
        let second = self.powers.each_ref().map(|powers| powers.g2[1]);
        VerifierSrs::new(self.first_powers(), second)
    }

    /// A digest of the secrets in the exponent: [`VerifierSrs::digest`].
    pub fn digest(&self) -> [u8; 32] {
        let second = self.powers.each_ref().map(|powers| powers.g2[1]);
        digest::<E>(&self.first_powers(), &second)
    }

    /// a·G and b·G.
    fn first_powers(&self) -> [E::G1Affine; 2] {
        self.powers.each_ref().map(|powers| powers.g1[1])
    }

    /// Checks an untrusted string, whose points must be in their groups: all points must be powers of the same two
    /// secrets, and the chain of contributions must lead to them.
    ///
    /// The powers are checked by one combination under the powers of a challenge. A false string passes with a
    /// probability of 2⁻²³⁰ for each attempt of its maker.
    ///
    /// # Errors
    ///
    /// [`SrsError`] with the check that failed.
    pub fn check(&self) -> Result<(), SrsError> {
        let [a, b] = self.first_powers();
        let trivial = |point: &E::G1Affine| point.is_zero() || *point == E::G1Affine::generator();
        if trivial(&a) || trivial(&b) || a == b {
            return Err(SrsError::Trivial);
        }
        for (powers, secret) in self.powers.iter().zip(['a', 'b']) {
            if !powers.are_consistent() {
                return Err(SrsError::Inconsistent { secret });
            }
        }
        self.check_contributions()
    }

    fn check_contributions(&self) -> Result<(), SrsError> {
        let mut before = [E::G1Affine::generator(); 2];
        for (index, contribution) in self.contributions.iter().enumerate() {
            let chain = chain_digest(&self.contributions[..index]);
            for (number, knowledge) in contribution.knowledge.iter().enumerate() {
                let after = contribution.first_powers[number];
                if after.is_zero() || !knowledge.verify(&chain, number, before[number], after) {
                    return Err(SrsError::Contribution { index });
                }
            }
            before = contribution.first_powers;
        }
        match self.contributions.len() {
            0 => Err(SrsError::NoContribution),
            count if before != self.first_powers() => {
                Err(SrsError::Contribution { index: count - 1 })
            }
            _ => Ok(()),
        }
    }
}

/// A digest of a chain of contributions.
fn chain_digest<E: AggregationCurve>(contributions: &[Contribution<E>]) -> [u8; 32] {
    let mut transcript = Transcript::new::<E>("reference string contributions");
    for contribution in contributions {
        contribution.absorb(&mut transcript);
    }
    transcript.digest("chain")
}

fn nonzero<F: Field>(rng: &mut (impl RngCore + CryptoRng)) -> F {
    loop {
        let drawn = F::rand(rng);
        if !drawn.is_zero() && !drawn.is_one() {
            return drawn;
        }
    }
}

// === impl Powers ===

impl<E: AggregationCurve> Powers<E> {
    /// The powers of a residue class that vectors of N = `size` elements need: those below 2·N in the first group, and
    /// below N in the second.
    pub(crate) fn of_residue(&self, residue: Residue, size: usize) -> Self {
        let Residue { first, step } = residue;
        Self {
            g1: self.g1[first..2 * size]
                .iter()
                .step_by(step)
                .copied()
                .collect(),
            g2: self.g2[first..size].iter().step_by(step).copied().collect(),
        }
    }

    /// Multiplies power i by `secret`ⁱ.
    fn multiply(&mut self, secret: E::ScalarField) {
        let scalars = Zeroizing::new(powers_of(secret, self.g1.len()));
        self.g1 = scale_each::<E::G1>(&self.g1, &scalars);
        self.g2 = scale_each::<E::G2>(&self.g2, &scalars[..self.g2.len()]);
    }

    /// True if these are the powers of one number: each times it is the next, for a combination of
    /// all under powers of a challenge. The number is that of the first two points of the other group.
    fn are_consistent(&self) -> bool {
        let (g, h) = (E::G1Affine::generator(), E::G2Affine::generator());
        if self.g1[0] != g || self.g2[0] != h {
            return false;
        }
        let mut transcript = Transcript::new::<E>("reference string check");
        transcript.absorb_points("first group", &self.g1);
        transcript.absorb_points("second group", &self.g2);
        let challenge: E::ScalarField = transcript.scalar("combination");
        let weights = powers_of(challenge, self.g1.len() - 1);
        let [lower, higher] = combinations::<E::G1>(&self.g1, &weights);
        let [lower_2, higher_2] = combinations::<E::G2>(&self.g2, &weights[..self.g2.len() - 1]);
        let minus = |point: E::G1Affine| (-point.into_group()).into_affine();
        let in_first = [(higher, h), (minus(lower), self.g2[1])];
        let in_second = [(g, higher_2), (minus(self.g1[1]), lower_2)];
        [in_first, in_second].into_iter().all(|pairs| {
            let mut product = Product::<E>::new();
            for (left, right) in pairs {
                product.multiply(left, right);
            }
            product.is_one()
        })
    }
}

/// Σ wᵢ·Pᵢ and Σ wᵢ·Pᵢ₊₁.
fn combinations<G: MsmGroup>(points: &[G::Affine], weights: &[G::ScalarField]) -> [G::Affine; 2] {
    let last = points.len() - 1;
    [&points[..last], &points[1..]].map(|points| msm::<G>(points, weights).into_affine())
}

/// The first `count` powers 1, x, x², ….
pub(crate) fn powers_of<F: Field>(x: F, count: usize) -> Vec<F> {
    progression(F::ONE, x, count)
}

/// `first`, `first`·x, `first`·x², …: `count` of them.
pub(crate) fn progression<F: Field>(first: F, x: F, count: usize) -> Vec<F> {
    std::iter::successors(Some(first), |power| Some(*power * x))
        .take(count)
        .collect()
}

// === impl CommitmentKey ===

impl<'a, E: AggregationCurve> CommitmentKey<'a, E> {
    /// v₁ and v₂: aⁱ·H and bⁱ·H for i below N.
    pub(crate) fn v(&self) -> [&'a [E::G2Affine]; 2] {
        self.powers.map(|powers| &powers.g2[..self.size])
    }

    /// w₁ and w₂: aⁱ·G and bⁱ·G for i from N to 2·N − 1.
    pub(crate) fn w(&self) -> [&'a [E::G1Affine]; 2] {
        self.powers
            .map(|powers| &powers.g1[self.size..2 * self.size])
    }
}

// === impl VerifierSrs ===

impl<E: AggregationCurve> VerifierSrs<E> {
    /// The points of a·G and b·G, a·H and b·H.
    pub(crate) fn new(g1: [E::G1Affine; 2], g2: [E::G2Affine; 2]) -> Self {
        Self {
            g1,
            digest: digest::<E>(&g1, &g2),
            h: PreparedG2::new(E::G2Affine::generator()),
            g2: g2.map(PreparedG2::new),
        }
    }

    /// Writes a·G, b·G, a·H and b·H, compressed.
    pub(crate) fn write(&self, bytes: &mut Vec<u8>) {
        self.g1.iter().for_each(|point| write_point(point, bytes));
        let second = self.g2.iter();
        second.for_each(|point| write_point(&point.point(), bytes));
    }

    /// Reads untrusted bytes in the format of [`write`](Self::write), in a file of this kind.
    pub(crate) fn read(
        points: &mut Points<'_>,
        kind: FileKind,
    ) -> Result<Self, AggregationFileError> {
        let wrong = wrong_point(kind, "reference string");
        let mut first = || points.next::<E::G1Affine>().map_err(&wrong);
        let g1 = [first()?, first()?];
        let mut second = || points.next::<E::G2Affine>().map_err(&wrong);
        let g2 = [second()?, second()?];
        let is_infinite = g1.iter().any(AffineRepr::is_zero) || g2.iter().any(AffineRepr::is_zero);
        if is_infinite {
            return Err(kind.point("reference string"));
        }
        Ok(Self::new(g1, g2))
    }

    /// A digest of the secrets in the exponent, and so of every string with them.
    pub const fn digest(&self) -> [u8; 32] {
        self.digest
    }
}

fn digest<E: AggregationCurve>(g1: &[E::G1Affine; 2], g2: &[E::G2Affine; 2]) -> [u8; 32] {
    let mut transcript = Transcript::new::<E>("reference string");
    transcript.absorb_points("G", &[E::G1Affine::generator()]);
    transcript.absorb_points("H", &[E::G2Affine::generator()]);
    transcript.absorb_points("first powers in the first group", g1);
    transcript.absorb_points("first powers in the second group", g2);
    transcript.digest("digest")
}
