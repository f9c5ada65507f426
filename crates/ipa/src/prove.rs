//! Making openings: for tests and measurements, not for speed.

use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::{AdditiveGroup, Field};
use proofmill_kernels::{inner_products, msm};
use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};

use crate::transcript::Transcript;
use crate::{Opening, OpeningClaim, Point, Round, Scalar, Srs, Sum};

impl Opening {
    /// Commits to the polynomial with these coefficients, the constant first, and opens it at `point`.
    /// The commitment hides nothing. Nothing, if a challenge is zero.
    ///
    /// # Panics
    ///
    /// If there is not one coefficient for each point of the SRS.
    pub fn prove(srs: &Srs, coefficients: &[Scalar], point: Scalar) -> Option<Self> {
        assert_eq!(coefficients.len(), srs.points().len(), "one for each point");
        let mut coefficients = coefficients.to_vec();
        let mut bases = srs.points().to_vec();
        let mut powers: Vec<_> =
            std::iter::successors(Some(Scalar::ONE), |power| Some(*power * point))
                .take(bases.len())
                .collect();
        let claim = OpeningClaim {
            commitment: msm::<Sum>(&bases, &coefficients).into_affine(),
            point,
            value: inner_product(&coefficients, &powers),
        };
        let (mut transcript, challenge) = Transcript::begin(&claim);
        if challenge == Scalar::ZERO {
            return None;
        }
        let auxiliary = Point::generator() * challenge;
        let mut rounds = Vec::new();
        while bases.len() > 1 {
            let half = bases.len() / 2;
            let cross = |from: &[Scalar], bases: &[Point], powers: &[Scalar]| {
                let sum = msm::<Sum>(bases, from) + auxiliary * inner_product(from, powers);
                sum.into_affine()
            };
            let round = Round {
                left: cross(&coefficients[..half], &bases[half..], &powers[half..]),
                right: cross(&coefficients[half..], &bases[..half], &powers[..half]),
            };
            let challenge = transcript.round(&round);
            let inverse = challenge.inverse()?;
            fold(&mut coefficients, challenge);
            fold(&mut powers, inverse);
            bases = folded_bases(&bases, inverse);
            rounds.push(round);
        }
        Some(Self {
            claim,
            rounds,
            folded_base: bases[0],
            folded_coefficient: coefficients[0],
        })
    }
}

/// The lower half plus the upper half times a factor.
fn fold(values: &mut Vec<Scalar>, factor: Scalar) {
    let half = values.len() / 2;
    for i in 0..half {
        let upper = values[half + i] * factor;
        values[i] += upper;
    }
    values.truncate(half);
}

/// Like [`fold`], of points.
fn folded_bases(bases: &[Point], factor: Scalar) -> Vec<Point> {
    let (lower, upper) = bases.split_at(bases.len() / 2);
    let sums: Vec<Sum> = lower
        .par_iter()
        .zip(upper)
        .map(|(lower, upper)| *upper * factor + lower)
        .collect();
    Sum::normalize_batch(&sums)
}

/// Σ left[i]·right[i].
fn inner_product(left: &[Scalar], right: &[Scalar]) -> Scalar {
    inner_products(left, right, left.len())[0]
}
