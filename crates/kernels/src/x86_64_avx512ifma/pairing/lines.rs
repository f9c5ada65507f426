//! Multiples of eight points of the twist, and the lines through them.
//!
//! Points are homogeneous, (X : Y : Z) for x = X/Z, y = Y/Z. The formulas are those of Aranha,
//! Barreto, Longa, Ricardini, "The Realm of the Pairings" (SAC 2013), without the halves: points
//! and lines come out scaled by factors in Fq2, which the final exponentiation takes to one.

use std::arch::x86_64::*;

use super::super::field::Fp;
use super::super::field2::Quadratic;
use super::fq2::{Factor, dot};
use super::tower::{Tower, Twist};

/// Eight lines `constant + x·(x-coordinate) + y·(y-coordinate)` at eight points of the first group:
/// the three terms, products each.
pub(super) struct Line<E: Tower<L, N>, const L: usize, const N: usize> {
    pub(super) constant: Quadratic<E, L, N>,
    pub(super) x: Quadratic<E, L, N>,
    pub(super) y: Quadratic<E, L, N>,
}

/// Eight lines divided by their terms in y: the other two terms of each.
pub(super) struct MonicLine<E: Tower<L, N>, const L: usize, const N: usize> {
    pub(super) constant: Quadratic<E, L, N>,
    pub(super) x: Quadratic<E, L, N>,
}

/// Eight points of the first group, as lines take them.
pub(super) struct Arguments<E: Tower<L, N>, const L: usize, const N: usize> {
    pub(super) x: Fp<E::Base, L, N>,
    pub(super) minus_y: Fp<E::Base, L, N>,
}

/// Eight affine points of the twist.
pub(super) struct Affine<E: Tower<L, N>, const L: usize, const N: usize> {
    pub(super) x: Quadratic<E, L, N>,
    pub(super) y: Quadratic<E, L, N>,
}

/// Eight points of the twist, coordinates being products.
pub(super) struct Point<E: Tower<L, N>, const L: usize, const N: usize> {
    x: Quadratic<E, L, N>,
    y: Quadratic<E, L, N>,
    z: Quadratic<E, L, N>,
}

copied!(Line, Arguments, Affine, Point);

// === impl Line ===

impl<E: Tower<L, N>, const L: usize, const N: usize> Line<E, L, N> {
    /// Replaces the lines in `lanes` by one.
    ///
    /// # Safety
    ///
    /// The instructions of this back end.
    #[inline(always)]
    pub(super) unsafe fn without(self, lanes: __mmask8) -> Self {
        // SAFETY: as the caller promises.
        unsafe {
            let (unit, zero) = (Quadratic::unit(), Quadratic::nothing());
            // The term at w⁰ is one.
            let (constant, y) = match E::TWIST {
                Twist::Multiplied => (unit, zero),
                Twist::Divided => (zero, unit),
            };
            Self {
                constant: self.constant.replaced(lanes, constant),
                x: self.x.replaced(lanes, zero),
                y: self.y.replaced(lanes, y),
            }
        }
    }
}

// === impl Point ===

/// # Safety
///
/// Every function: the instructions of this back end.
impl<E: Tower<L, N>, const L: usize, const N: usize> Point<E, L, N> {
    #[inline(always)]
    pub(super) unsafe fn new(affine: &Affine<E, L, N>) -> Self {
        Self {
            x: affine.x,
            y: affine.y,
            // SAFETY: as the caller promises.
            z: unsafe { Quadratic::unit() },
        }
    }

    /// Doubles the points; the lines are their tangents.
    ///
    /// With B = Y², C = Z², E = 3bC, F = 3E, H = 2YZ, four times
    /// `(XY(B − F)/2 : (B + F)²/4 − 3E² : BH)`. The tangent is `(E − B) + 3X²·x − H·y`.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
    pub(super) unsafe fn double(
        &mut self,
        at: &Arguments<E, L, N>,
        three_b: &Factor<E, L, N>,
    ) -> Line<E, L, N> {
        // SAFETY: as the caller promises. In multiples of p: products are below 2.6, squares and
        // settled values below 1.4.
        unsafe {
            let (x, y) = (self.x.factor(), self.y.factor());
            let xy = dot([&x], [&y]);
            let b = y.squared();
            let c = self.z.factor().squared();
            let e = E::times_three_b(c, three_b);
            let f = e.shifted::<1>().plus(e);
            let yz = self.y.plus(self.z).settle().factor().squared();
            let h = yz.minus::<3>(b.plus(c)).settle();
            let xx = x.squared();
            let line = Line {
                constant: e.minus::<2>(b).settle(),
                x: xx.shifted::<1>().plus(xx).carry().scaled(&at.x),
                y: h.scaled(&at.minus_y),
            };

            let difference = b.minus::<8>(f).settle().factor();
            self.x = dot([&xy.shifted::<1>().carry().factor()], [&difference]);
            let sum = b.plus(f).settle().factor().squared();
            let ee = e.factor().squared();
            let twelve = ee.shifted::<3>().plus(ee.shifted::<2>());
            self.y = sum.minus::<17>(twelve).settle();
            let (b2, h2) = (b.shifted::<1>().carry(), h.shifted::<1>().carry());
            self.z = dot([&b2.factor()], [&h2.factor()]);
            line
        }
    }

    /// Adds affine points; the lines are the chords. With θ = Y − yZ and λ = X − xZ the chord is
    /// `(λy − θx) + θ·x − λ·y`.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
    pub(super) unsafe fn add(
        &mut self,
        other: &Affine<E, L, N>,
        at: &Arguments<E, L, N>,
    ) -> Line<E, L, N> {
        // SAFETY: as the caller promises; ranges as above.
        unsafe {
            let (x, y) = (other.x.factor(), other.y.factor());
            let z = self.z.factor();
            let theta = self.y.minus::<3>(dot([&y], [&z])).settle();
            let lambda = self.x.minus::<3>(dot([&x], [&z])).settle();
            let (theta_factor, lambda_factor) = (theta.factor(), lambda.factor());
            let minus_theta = theta.negated::<2>().settle().factor();
            let line = Line {
                constant: dot([&lambda_factor, &minus_theta], [&y, &x]),
                x: theta.scaled(&at.x),
                y: lambda.scaled(&at.minus_y),
            };

            let c = theta_factor.squared().factor();
            let d = lambda_factor.squared().factor();
            let e = dot([&lambda_factor], [&d]);
            let f = dot([&z], [&c]);
            let g = dot([&self.x.factor()], [&d]);
            let h = e.plus(f).minus::<6>(g.shifted::<1>()).settle();
            let difference = g.minus::<2>(h).settle().factor();
            let minus_e = e.negated::<3>().settle().factor();
            self.x = dot([&lambda_factor], [&h.factor()]);
            self.y = dot([&theta_factor, &minus_e], [&difference, &self.y.factor()]);
            self.z = dot([&z], [&e.factor()]);
            line
        }
    }
}

// === impl Affine ===

/// # Safety
///
/// Every function: the instructions of this back end.
impl<E: Tower<L, N>, const L: usize, const N: usize> Affine<E, L, N> {
    #[inline(always)]
    pub(super) unsafe fn negated(&self) -> Self {
        Self {
            x: self.x,
            // SAFETY: as the caller promises.
            y: unsafe { self.y.negated::<3>().settle() },
        }
    }

    /// The Frobenius endomorphism of the curve, on the twist: conjugates, times constants.
    #[inline(always)]
    pub(super) unsafe fn frobenius(&self, constants: &[Factor<E, L, N>; 2]) -> Self {
        // SAFETY: as the caller promises.
        unsafe {
            Self {
                x: dot([&self.x.conjugated().factor()], [&constants[0]]),
                y: dot([&self.y.conjugated().factor()], [&constants[1]]),
            }
        }
    }
}
