//! The Miller loop of many pairs: one product of all their lines, squared once for all.

use ark_ec::short_weierstrass::Affine;
use ark_ff::Field;

use super::affine::AffineWalk;
use super::curve::{Curve, Family};
use super::fq2::{self, Fq, Fq2};
use super::line_product::{LineProduct, MonicArguments};
use super::prepared::{FixedPair, FixedWalk};
use super::projective::ProjectiveWalk;
use super::tower::{ArkFq12, Fq12};
use crate::portable::inversion::invert_all;

/// A pair, of which neither point is infinite.
pub(crate) type Pair<C, const N: usize> =
    (Affine<<C as Curve<N>>::G1>, Affine<<C as Curve<N>>::G2>);

/// Pairs from which on one inversion for all of them at each step costs less than the products that
/// homogeneous coordinates take to do without.
const PAIRS_FOR_AFFINE: usize = 9;

/// A point of the twist that is not infinite.
pub(super) struct TwistPoint<C: Curve<N>, const N: usize> {
    pub(super) x: Fq2<C, N>,
    pub(super) y: Fq2<C, N>,
}

/// The image of a pair's point Q that is added to its multiple.
#[derive(Clone, Copy, Debug)]
pub(super) enum Addend {
    /// Q.
    Point,
    /// −Q.
    Minus,
    /// π(Q), π being the Frobenius endomorphism, on the twist.
    Frobenius,
    /// −π²(Q).
    MinusSecondFrobenius,
}

/// Pairs whose points are multiplied step by step. Each step multiplies its lines into a product, and returns
/// `None` if it cannot compute a line: the product is then invalid.
pub(super) trait Walk<C: Curve<N>, const N: usize> {
    fn double(&mut self, product: &mut LineProduct<C, N>) -> Option<()>;
    fn add(&mut self, addend: Addend, product: &mut LineProduct<C, N>) -> Option<()>;
}

/// The product of the pairs' Miller loops, up to a factor that the final exponentiation takes to one.
pub(crate) fn miller_loop<C: Curve<N>, const N: usize>(
    pairs: &[Pair<C, N>],
    fixed: &[FixedPair<'_, C, N>],
) -> ArkFq12<C, N> {
    if pairs.len() >= PAIRS_FOR_AFFINE
        && let Some(walk) = AffineWalk::new(pairs)
        && let Some(product) = product_of_lines(walk, fixed)
    {
        return product.to_arkworks();
    }
    // There are few pairs, or one has a point of small order, so that one of its lines is vertical.
    product_of_lines(ProjectiveWalk::new(pairs), fixed)
        .expect("homogeneous coordinates have all lines")
        .to_arkworks()
}

fn product_of_lines<C: Curve<N>, const N: usize>(
    mut walk: impl Walk<C, N>,
    fixed: &[FixedPair<'_, C, N>],
) -> Option<Fq12<C, N>> {
    let mut fixed = FixedWalk::new(fixed)?;
    let mut product = LineProduct::one();
    for (i, digit) in C::loop_digits().into_iter().enumerate() {
        if i > 0 {
            product.square();
        }
        walk.double(&mut product)?;
        fixed.next_lines(&mut product);
        if digit != 0 {
            let addend = if digit > 0 {
                Addend::Point
            } else {
                Addend::Minus
            };
            walk.add(addend, &mut product)?;
            fixed.next_lines(&mut product);
        }
    }
    if let Family::Bn(_) = C::FAMILY {
        for addend in [Addend::Frobenius, Addend::MinusSecondFrobenius] {
            walk.add(addend, &mut product)?;
            fixed.next_lines(&mut product);
        }
    }
    Some(product.value())
}

/// The arguments of monic lines at each of the points; `None` if one has y = 0.
pub(super) fn monic_arguments<'a, C: Curve<N>, const N: usize>(
    points: impl Iterator<Item = &'a Affine<C::G1>> + Clone,
) -> Option<Vec<MonicArguments<C, N>>> {
    let mut inverses: Vec<Fq<C, N>> = points.clone().map(|point| point.y).collect();
    if inverses.iter().any(|y| *y == Fq::<C, N>::default()) {
        return None;
    }
    let count = inverses.len();
    invert_all(&mut inverses, &mut Vec::with_capacity(count));
    let arguments = points.zip(inverses).map(|(point, inverse)| MonicArguments {
        x_by_y: point.x * inverse,
        inverse_of_y: inverse,
    });
    Some(arguments.collect())
}

// === impl TwistPoint ===

impl<C: Curve<N>, const N: usize> TwistPoint<C, N> {
    #[inline(always)]
    pub(super) fn of(point: &Affine<C::G2>) -> Self {
        Self {
            x: Fq2(point.x),
            y: Fq2(point.y),
        }
    }

    pub(super) fn image(self, addend: Addend) -> Self {
        match addend {
            Addend::Point => self,
            Addend::Minus => self.negated(),
            Addend::Frobenius => self.frobenius(),
            Addend::MinusSecondFrobenius => self.frobenius().frobenius().negated(),
        }
    }

    fn negated(self) -> Self {
        Self {
            x: self.x,
            y: -self.y,
        }
    }

    fn frobenius(mut self) -> Self {
        let Family::Bn([by_x, by_y]) = C::FAMILY else {
            unreachable!("only loops of BN curves end with images by it");
        };
        self.x.0.frobenius_map_in_place(1);
        self.y.0.frobenius_map_in_place(1);
        Self {
            x: fq2::product::<C, N>(&self.x, &by_x),
            y: fq2::product::<C, N>(&self.y, &by_y),
        }
    }
}
