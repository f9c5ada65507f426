//! Lines through points of the second group that are known beforehand.
//!
//! A line is kept divided by its coefficient of y: constant and coefficient of x. At a point (x, y)
//! of the first group it is divided by y as well, so that one of its three terms is one.

use std::arch::x86_64::__mmask8;

use ark_ec::short_weierstrass::Affine;
use ark_ff::Fp2;

use super::super::field::Fp;
use super::super::field2::Quadratic;
use super::super::modulus::Scalar;
use super::super::vector_field::{Layout, VectorField};
use super::lines::MonicLine;
use super::tower::{Tower, Twist};
use crate::portable::inversion::invert_all;

/// A pair of a point of the first group, whose y is not zero, and the lines of one of the second.
pub(crate) struct FixedPair<'a, E: Tower<L, N>, const L: usize, const N: usize> {
    pub(crate) left: Affine<E::G1>,
    /// Like [`lines`] gave them.
    pub(crate) lines: &'a [u64],
}

/// The three coefficients of a line as arkworks has them.
pub(crate) type Coefficients<E> = (Fp2<E>, Fp2<E>, Fp2<E>);

/// A point's lines in vectors' layout, of what arkworks computes of it. `None` if one of them has
/// no term in y: the point is not in the subgroup.
///
/// # Safety
///
/// The instructions of this back end.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
pub(crate) unsafe fn lines<E: Tower<L, N>, const L: usize, const N: usize>(
    coefficients: &[Coefficients<E>],
) -> Option<Vec<u64>>
where
    Fp<E::Base, L, N>: Layout<E::Base, N>,
{
    let mut inverses: Vec<Fp2<E>> = coefficients
        .iter()
        .map(|line| match E::TWIST {
            Twist::Multiplied => line.2,
            Twist::Divided => line.0,
        })
        .collect();
    invert_all(&mut inverses, &mut Vec::with_capacity(coefficients.len()));
    let mut terms = Vec::with_capacity(2 * coefficients.len() + 8);
    for (line, inverse) in coefficients.iter().zip(&inverses) {
        if *inverse == Fp2::<E>::default() {
            return None;
        }
        let constant = match E::TWIST {
            Twist::Multiplied => line.0,
            Twist::Divided => line.2,
        };
        terms.extend([constant * inverse, line.1 * inverse]);
    }
    let count = terms.len();
    terms.resize(count.next_multiple_of(8), Fp2::<E>::default());
    let stride = Quadratic::<E, L, N>::WORDS;
    let mut words = vec![0; terms.len() * stride];
    for (terms, words) in terms
        .chunks_exact(8)
        .zip(words.chunks_exact_mut(8 * stride))
    {
        // SAFETY: as the caller promises; the places are eight elements of one array, and eight
        // times an element's words of the other.
        unsafe {
            let places = std::array::from_fn(|lane| &raw const terms[lane]);
            let start = words.as_mut_ptr();
            Quadratic::<E, L, N>::load_ark(places)
                .store(std::array::from_fn(|lane| start.add(lane * stride)));
        }
    }
    words.truncate(count * stride);
    Some(words)
}

/// Eight pairs, or as many as there are. The lanes that have none have lines with no term but that
/// in y: a power of w³, which the final exponentiation takes to one.
pub(super) struct FixedGroup<'a, E: Tower<L, N>, const L: usize, const N: usize> {
    x_by_y: Fp<E::Base, L, N>,
    inverse_of_y: Fp<E::Base, L, N>,
    lines: [&'a [u64]; 8],
    /// The lanes that have a pair.
    lanes: __mmask8,
    /// Offset of the next line of each lane, in words.
    next: usize,
}

/// The optional item of each lane.
pub(super) type InLanes<'a, T> = [Option<&'a T>; 8];

/// Items by eight in lanes, those of the last from the first lane on.
pub(super) fn in_lanes<T>(items: &[T]) -> Vec<InLanes<'_, T>> {
    let eight = items.chunks(8);
    eight
        .map(|items| std::array::from_fn(|lane| items.get(lane)))
        .collect()
}

/// An item of any lane, and the mask of the lanes that have one.
///
/// # Panics
///
/// If no lane has an item.
pub(super) fn present<'a, T>(items: &InLanes<'a, T>) -> (&'a T, __mmask8) {
    let lanes = items.iter().rev();
    let lanes = lanes.fold(0, |lanes, item| lanes << 1 | u8::from(item.is_some()));
    let any = items.iter().flatten().next();
    (any.expect("a lane that has something"), lanes)
}

// === impl FixedGroup ===

/// # Safety
///
/// Every function: the instructions of this back end.
impl<'a, E: Tower<L, N>, const L: usize, const N: usize> FixedGroup<'a, E, L, N>
where
    Fp<E::Base, L, N>: Layout<E::Base, N>,
{
    /// The groups of pairs, given by the pair of each lane. Each group must have at least one pair.
    #[inline(always)]
    pub(super) unsafe fn groups(in_lanes: &[InLanes<'_, FixedPair<'a, E, L, N>>]) -> Vec<Self> {
        let pairs = in_lanes.iter().flatten().flatten();
        let mut inverses: Vec<Scalar<E::Base, N>> = pairs.map(|pair| pair.left.y).collect();
        let count = inverses.len();
        invert_all(&mut inverses, &mut Vec::with_capacity(count));
        let mut inverses = inverses.into_iter();
        let mut groups = Vec::with_capacity(in_lanes.len());
        for pairs in in_lanes {
            let mut x_by_y = [Scalar::<E::Base, N>::default(); 8];
            let mut inverse_of_y = x_by_y;
            let (any, lanes) = present(pairs);
            for (lane, pair) in pairs.iter().enumerate() {
                if let Some(pair) = pair {
                    inverse_of_y[lane] = inverses.next().expect("an inverse for each pair");
                    x_by_y[lane] = pair.left.x * inverse_of_y[lane];
                }
            }
            // SAFETY: as the caller promises; the places are elements of arrays.
            unsafe {
                groups.push(Self {
                    x_by_y: Fp::load_ark(x_by_y.each_ref().map(std::ptr::from_ref)),
                    inverse_of_y: Fp::load_ark(inverse_of_y.each_ref().map(std::ptr::from_ref)),
                    lines: pairs.map(|pair| pair.unwrap_or(any).lines),
                    lanes,
                    next: 0,
                });
            }
        }
        groups
    }

    /// The lanes that have a pair.
    pub(super) const fn lanes(&self) -> __mmask8 {
        self.lanes
    }

    #[inline(always)]
    pub(super) unsafe fn next_line(&mut self) -> MonicLine<E, L, N> {
        let stride = Quadratic::<E, L, N>::WORDS;
        let places = self
            .lines
            .map(|lines| lines[self.next..self.next + 2 * stride].as_ptr());
        self.next += 2 * stride;
        // SAFETY: as the caller promises; at each place there are the words of two elements.
        unsafe {
            MonicLine {
                constant: Quadratic::load(places).scaled(&self.inverse_of_y),
                x: Quadratic::load(places.map(|p| p.add(stride))).scaled(&self.x_by_y),
            }
        }
    }
}
