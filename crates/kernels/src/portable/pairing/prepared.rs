//! Lines through points of the second group that are known beforehand.

use ark_ec::short_weierstrass::Affine;
use ark_ff::Fp2;

use super::affine::invert_all;
use super::curve::Curve;
use super::fq2::{self, Fq2};
use super::line_product::{LineProduct, MonicArguments};
use super::miller::monic_arguments;

/// A line divided by its coefficient of y: the coefficient of x, and the constant.
pub(crate) type LineTerms<F> = [Fp2<F>; 2];

/// The three coefficients of a line as arkworks has them: of y, of x, and the constant.
pub(crate) type Coefficients<F> = (Fp2<F>, Fp2<F>, Fp2<F>);

/// A pair of a point of the first group, whose y is not zero, and the lines of one of the second.
pub(crate) struct FixedPair<'a, C: Curve<N>, const N: usize> {
    pub(crate) left: Affine<C::G1>,
    /// Like [`monic_lines`] gave them.
    pub(crate) lines: &'a [LineTerms<C::Two>],
}

/// Pairs, and the place in their lines.
pub(super) struct FixedWalk<'a, C: Curve<N>, const N: usize> {
    pairs: &'a [FixedPair<'a, C, N>],
    arguments: Vec<MonicArguments<C, N>>,
    next: usize,
}

/// A point's lines, of what arkworks computes of it. `None` if one of them has no term in y: the
/// point is not in the subgroup.
pub(crate) fn monic_lines<C: Curve<N>, const N: usize>(
    coefficients: &[Coefficients<C::Two>],
) -> Option<Vec<LineTerms<C::Two>>> {
    let mut inverses: Vec<Fq2<C, N>> = coefficients.iter().map(|line| Fq2(line.0)).collect();
    invert_all::<C, N>(&mut inverses, &mut Vec::with_capacity(coefficients.len()))?;
    let lines = coefficients.iter().zip(&inverses);
    let terms = lines.map(|((_, x, constant), inverse)| {
        [x, constant].map(|term| fq2::product::<C, N>(&Fq2(*term), inverse).0)
    });
    Some(terms.collect())
}

// === impl FixedWalk ===

impl<'a, C: Curve<N>, const N: usize> FixedWalk<'a, C, N> {
    /// `None` if a point of the first group has y = 0.
    pub(super) fn new(pairs: &'a [FixedPair<'a, C, N>]) -> Option<Self> {
        Some(Self {
            pairs,
            arguments: monic_arguments::<C, N>(pairs.iter().map(|pair| &pair.left))?,
            next: 0,
        })
    }

    pub(super) fn next_lines(&mut self, product: &mut LineProduct<C, N>) {
        for (pair, at) in self.pairs.iter().zip(&self.arguments) {
            let [x, constant] = pair.lines[self.next];
            product.multiply_monic(at.line(&Fq2(x), &Fq2(constant)));
        }
        self.next += 1;
    }
}
