//! Affine additions that share one inversion.

use ark_ec::AffineRepr;
use ark_ec::short_weierstrass::{Affine, SWCurveConfig};
use ark_ff::{AdditiveGroup, Field, Zero};

use super::inversion::{Invertible, invert_all};

/// `left[i] += right[i]`, complete: equal, opposite and infinite points are handled too.
///
/// An addition by slope takes 2 multiplications, 1 squaring and an inversion; Montgomery's trick
/// makes an inversion of 3 multiplications. A mixed addition in Jacobian form takes 11.
pub(crate) fn batch_add_assign<P: SWCurveConfig<BaseField: Invertible>>(
    left: &mut [Affine<P>],
    right: &[Affine<P>],
) {
    assert_eq!(left.len(), right.len(), "one point for each point");
    let mut denominators: Vec<P::BaseField> = left
        .iter()
        .zip(right)
        .map(|(p, q)| {
            if p.is_zero() || q.is_zero() {
                // A batch inversion skips zeros.
                P::BaseField::ZERO
            } else if p.x == q.x {
                // A doubling, or opposite points, for which y + y = 0.
                p.y + q.y
            } else {
                q.x - p.x
            }
        })
        .collect();
    invert_all(&mut denominators, &mut Vec::with_capacity(left.len()));
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
