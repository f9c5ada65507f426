//! Multiples of many points in affine coordinates, and the lines through them: the denominators of
//! all slopes share one inversion at each step.

use super::curve::Curve;
use super::fq2::{self, Fq2};
use super::line_product::{LineProduct, MonicArguments};
use super::miller::{Addend, Pair, TwistPoint, Walk, monic_arguments};

/// Pairs with the multiple of each one's second point.
pub(super) struct AffineWalk<'a, C: Curve<N>, const N: usize> {
    pairs: &'a [Pair<C, N>],
    arguments: Vec<MonicArguments<C, N>>,
    multiples: Vec<TwistPoint<C, N>>,
    /// Numerators of the slopes of this step.
    numerators: Vec<Fq2<C, N>>,
    denominators: Vec<Fq2<C, N>>,
    /// For each slope, the product of the denominators before it.
    products: Vec<Fq2<C, N>>,
}

// === impl AffineWalk ===

impl<'a, C: Curve<N>, const N: usize> AffineWalk<'a, C, N> {
    /// `None` if a point of the first group has y = 0.
    pub(super) fn new(pairs: &'a [Pair<C, N>]) -> Option<Self> {
        let points = pairs.iter().map(|pair| &pair.0);
        Some(Self {
            pairs,
            arguments: monic_arguments::<C, N>(points)?,
            multiples: pairs.iter().map(|pair| TwistPoint::of(&pair.1)).collect(),
            numerators: Vec::with_capacity(pairs.len()),
            denominators: Vec::with_capacity(pairs.len()),
            products: Vec::with_capacity(pairs.len()),
        })
    }

    /// Adds to each multiple a point, whose x is given by the multiple's index, or the multiple itself, by the
    /// pending slopes; multiplies the lines into `product`. `None` if one of the lines is vertical, or a point is
    /// added to itself.
    fn step(
        &mut self,
        x_of_other: impl Fn(usize, &Fq2<C, N>) -> Fq2<C, N>,
        product: &mut LineProduct<C, N>,
    ) -> Option<()> {
        invert_all::<C, N>(&mut self.denominators, &mut self.products)?;
        let slopes = self.numerators.iter().zip(&self.denominators);
        let places = self.multiples.iter_mut().zip(&self.arguments);
        for (i, ((multiple, at), (numerator, inverse))) in places.zip(slopes).enumerate() {
            let slope = fq2::product::<C, N>(numerator, inverse);
            let TwistPoint { x, y } = *multiple;
            // y_P − slope·x_P + (slope·x − y), divided by y_P.
            let constant = fq2::product::<C, N>(&slope, &x) - y;
            product.multiply_monic(at.line(&-slope, &constant));
            let new_x = fq2::square::<C, N>(&slope) - x - x_of_other(i, &x);
            let new_y = constant - fq2::product::<C, N>(&slope, &new_x);
            *multiple = TwistPoint { x: new_x, y: new_y };
        }
        Some(())
    }
}

impl<C: Curve<N>, const N: usize> Walk<C, N> for AffineWalk<'_, C, N> {
    fn double(&mut self, product: &mut LineProduct<C, N>) -> Option<()> {
        self.numerators.clear();
        self.denominators.clear();
        for multiple in &self.multiples {
            let square = fq2::square::<C, N>(&multiple.x);
            self.numerators.push(square.double() + square);
            self.denominators.push(multiple.y.double());
        }
        self.step(|_, x| *x, product)
    }

    fn add(&mut self, addend: Addend, product: &mut LineProduct<C, N>) -> Option<()> {
        self.numerators.clear();
        self.denominators.clear();
        let others = self.pairs.iter();
        let others: Vec<TwistPoint<C, N>> = others
            .map(|pair| TwistPoint::<C, N>::of(&pair.1).image(addend))
            .collect();
        for (multiple, other) in self.multiples.iter().zip(&others) {
            self.numerators.push(multiple.y - other.y);
            self.denominators.push(multiple.x - other.x);
        }
        self.step(|i, _| others[i].x, product)
    }
}

/// Inverts all elements in place; `None` if one is zero. Montgomery's trick: three products an
/// element and one inversion for all.
pub(super) fn invert_all<C: Curve<N>, const N: usize>(
    elements: &mut [Fq2<C, N>],
    products: &mut Vec<Fq2<C, N>>,
) -> Option<()> {
    products.clear();
    let mut product = Fq2::<C, N>::ONE;
    for element in &*elements {
        products.push(product);
        product = fq2::product::<C, N>(&product, element);
    }
    let mut rest = product.inverted()?;
    for (element, before) in elements.iter_mut().zip(products).rev() {
        let inverse = fq2::product::<C, N>(&rest, before);
        rest = fq2::product::<C, N>(&rest, element);
        *element = inverse;
    }
    Some(())
}
