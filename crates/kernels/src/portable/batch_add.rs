//! Affine additions that share one inversion.

use ark_ec::AffineRepr;
use ark_ec::short_weierstrass::{Affine, SWCurveConfig};
use ark_ff::{AdditiveGroup, Field, Zero, batch_inversion};
use rayon::prelude::*;

use crate::MsmGroup;

/// `left[i] += right[i]`, complete: equal, opposite and infinite points are right too.
///
/// An addition by slope takes 2 multiplications, 1 squaring and an inversion; Montgomery's trick
/// makes an inversion of 3 multiplications. A mixed addition in Jacobian form takes 11.
pub(crate) fn batch_add_assign<P: SWCurveConfig>(left: &mut [Affine<P>], right: &[Affine<P>]) {
    assert_eq!(left.len(), right.len(), "one point for each point");
    let mut denominators: Vec<P::BaseField> = left
        .iter()
        .zip(right)
        .map(|(p, q)| {
            if p.is_zero() || q.is_zero() {
                // Zero is what a batch inversion skips.
                P::BaseField::ZERO
            } else if p.x == q.x {
                // A doubling, or opposite points, for which y + y = 0.
                p.y + q.y
            } else {
                q.x - p.x
            }
        })
        .collect();
    batch_inversion(&mut denominators);
    for ((p, q), inverse) in left.iter_mut().zip(right).zip(denominators) {
        if q.is_zero() {
            continue;
        }
        if p.is_zero() {
            *p = *q;
            continue;
        }
        if inverse.is_zero() {
            *p = Affine::identity();
            continue;
        }
        let slope = if p.x == q.x {
            let square = p.x.square();
            (square.double() + square + P::COEFF_A) * inverse
        } else {
            (q.y - p.y) * inverse
        };
        let x = slope.square() - p.x - q.x;
        p.y = slope * (p.x - x) - p.y;
        p.x = x;
    }
}

/// Points summed by one task before the partial sums are added up: enough for the inversions to
/// be shared widely, few enough to stay in a core's cache.
const CHUNK: usize = 1 << 12;

/// The sum of the points, pairwise in batches.
pub(crate) fn sum<G: MsmGroup>(points: &[G::Affine]) -> G {
    points
        .par_chunks(CHUNK)
        .map(|chunk| {
            let mut points = chunk.to_vec();
            // Below this an inversion costs more than the additions it saves.
            while points.len() > 32 {
                let half = points.len() / 2;
                let odd = points.len() % 2;
                let (left, right) = points.split_at_mut(half + odd);
                G::batch_add_assign(&mut left[..half], right);
                points.truncate(half + odd);
            }
            points.iter().sum::<G>()
        })
        .sum()
}
