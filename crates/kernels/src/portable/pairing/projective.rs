//! Multiples of points in homogeneous coordinates, and the lines through them: no inversion, any point.
//!
//! x = X/Z, y = Y/Z. The formulas are those of Aranha, Barreto, Longa, Ricardini, "The Realm of the
//! Pairings" (SAC 2013), without the halves: points and lines come out scaled by factors in Fq2,
//! which the final exponentiation takes to one.

use ark_ec::short_weierstrass::SWCurveConfig;

use super::curve::Curve;
use super::fq2::{self, Fq2};
use super::line_product::{Line, LineProduct};
use super::miller::{Addend, Pair, TwistPoint, Walk};

/// Pairs with the multiple of each one's second point.
pub(super) struct ProjectiveWalk<C: Curve<N>, const N: usize> {
    pairs: Vec<PairAt<C, N>>,
    /// 3·b of the twist's equation.
    three_b: Fq2<C, N>,
}

struct PairAt<C: Curve<N>, const N: usize> {
    pair: Pair<C, N>,
    multiple: Multiple<C, N>,
}

struct Multiple<C: Curve<N>, const N: usize> {
    x: Fq2<C, N>,
    y: Fq2<C, N>,
    z: Fq2<C, N>,
}

/// The coefficients of y, of x, and the constant.
type Coefficients<C, const N: usize> = [Fq2<C, N>; 3];

// === impl ProjectiveWalk ===

impl<C: Curve<N>, const N: usize> ProjectiveWalk<C, N> {
    pub(super) fn new(pairs: &[Pair<C, N>]) -> Self {
        let b = Fq2(C::G2::COEFF_B);
        let at = |pair: &Pair<C, N>| PairAt {
            pair: *pair,
            multiple: Multiple {
                x: Fq2(pair.1.x),
                y: Fq2(pair.1.y),
                z: Fq2::<C, N>::ONE,
            },
        };
        Self {
            pairs: pairs.iter().map(at).collect(),
            three_b: b.double() + b,
        }
    }
}

impl<C: Curve<N>, const N: usize> Walk<C, N> for ProjectiveWalk<C, N> {
    fn double(&mut self, product: &mut LineProduct<C, N>) -> Option<()> {
        for at in &mut self.pairs {
            let coefficients = at.multiple.double(&self.three_b);
            product.multiply(line::<C, N>(&at.pair, coefficients));
        }
        Some(())
    }

    fn add(&mut self, addend: Addend, product: &mut LineProduct<C, N>) -> Option<()> {
        for at in &mut self.pairs {
            let other = TwistPoint::<C, N>::of(&at.pair.1).image(addend);
            let coefficients = at.multiple.add(&other);
            product.multiply(line::<C, N>(&at.pair, coefficients));
        }
        Some(())
    }
}

#[inline(always)]
fn line<C: Curve<N>, const N: usize>(
    pair: &Pair<C, N>,
    [y, x, constant]: Coefficients<C, N>,
) -> Line<C, N> {
    Line {
        y: fq2::scaled::<C, N>(&y, &pair.0.y),
        x: fq2::scaled::<C, N>(&x, &pair.0.x),
        constant,
    }
}

// === impl Multiple ===

impl<C: Curve<N>, const N: usize> Multiple<C, N> {
    /// Doubles the point; the line is its tangent.
    ///
    /// With B = Y², C = Z², E = 3bC, F = 3E, H = 2YZ, four times
    /// `(XY(B − F)/2 : (B + F)²/4 − 3E² : BH)`. The tangent is `(E − B) + 3X²·x − H·y`.
    fn double(&mut self, three_b: &Fq2<C, N>) -> Coefficients<C, N> {
        let (product, square) = (fq2::product::<C, N>, fq2::square::<C, N>);
        let xy = product(&self.x, &self.y);
        let b = square(&self.y);
        let c = square(&self.z);
        let e = product(three_b, &c);
        let f = e.double() + e;
        let h = square(&(self.y + self.z)) - b - c;
        let xx = square(&self.x);
        let line = [-h, xx.double() + xx, e - b];

        // Twelve times E².
        let four_ee = square(&e.double());
        self.x = product(&xy.double(), &(b - f));
        self.y = square(&(b + f)) - (four_ee.double() + four_ee);
        self.z = product(&b.double().double(), &h);
        line
    }

    /// Adds a point; the line is the chord. With θ = Y − yZ and λ = X − xZ it is
    /// `(θx − λy) − θ·x + λ·y`.
    fn add(&mut self, other: &TwistPoint<C, N>) -> Coefficients<C, N> {
        let (product, square) = (fq2::product::<C, N>, fq2::square::<C, N>);
        let theta = self.y - product(&other.y, &self.z);
        let lambda = self.x - product(&other.x, &self.z);
        let constant = product(&theta, &other.x) - product(&lambda, &other.y);
        let d = square(&lambda);
        let e = product(&lambda, &d);
        let f = product(&self.z, &square(&theta));
        let g = product(&self.x, &d);
        let h = e + f - g.double();
        self.x = product(&lambda, &h);
        self.y = product(&theta, &(g - h)) - product(&e, &self.y);
        self.z = product(&self.z, &e);
        [lambda, -theta, constant]
    }
}
