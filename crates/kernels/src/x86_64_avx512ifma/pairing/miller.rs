//! The Miller loop of many pairs: each lane multiplies the lines of its pairs into one value, which
//! is squared once for all of them.

use std::arch::x86_64::__mmask8;

use ark_ec::short_weierstrass::{Affine as ArkAffine, SWCurveConfig};
use ark_ff::{Field, Fp2};

use super::super::field::Fp;
use super::super::field2::Quadratic;
use super::super::modulus::Scalar;
use super::super::vector_field::{Layout, VectorField};
use super::accumulator::Accumulator;
use super::fixed::{FixedGroup, FixedPair, InLanes, in_lanes, present};
use super::fq2::Factor;
use super::lanes::{Element, Lanes};
use super::line_product::LineProduct;
use super::lines::{Affine, Arguments, Line, Point};
use super::tower::{Family, Tower};

/// A pair, of which neither point is infinite.
pub(crate) type Pair<E, const L: usize, const N: usize> = (
    ArkAffine<<E as Tower<L, N>>::G1>,
    ArkAffine<<E as Tower<L, N>>::G2>,
);

/// Up to eight pairs, one in each lane; lanes without a pair repeat the first.
pub(super) struct Group<E: Tower<L, N>, const L: usize, const N: usize> {
    at: Arguments<E, L, N>,
    point: Affine<E, L, N>,
    minus_point: Affine<E, L, N>,
    multiple: Point<E, L, N>,
    /// The lanes that have a pair.
    lanes: __mmask8,
}

/// Constants of a curve that all its groups share.
struct Constants<E: Tower<L, N>, const L: usize, const N: usize> {
    three_b: Factor<E, L, N>,
    twist_frobenius: [Factor<E, L, N>; 2],
}

/// The fewest groups of eight for which eight products, one in each lane, are faster than one, although
/// each of them is squared.
const GROUPS_FOR_ACCUMULATOR: usize = 3;

/// The product of the pairs' Miller loops, up to a factor that the final exponentiation takes to one.
///
/// # Safety
///
/// The instructions of this back end.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
pub(crate) unsafe fn miller_loop<E: Tower<L, N>, const L: usize, const N: usize>(
    pairs: &[Pair<E, L, N>],
    fixed: &[FixedPair<'_, E, L, N>],
) -> Element<E, L, N>
where
    Fp<E::Base, L, N>: Layout<E::Base, N>,
{
    // SAFETY: as the caller promises.
    unsafe {
        let mut groups = Vec::with_capacity(pairs.len().div_ceil(8));
        for pairs in in_lanes(pairs) {
            groups.push(Group::new(&pairs));
        }
        let mut fixed = FixedGroup::groups(&in_lanes(fixed));
        let mut value = match groups.len() + fixed.len() {
            0 => return Element::<E, L, N>::ONE,
            GROUPS_FOR_ACCUMULATOR.. => {
                product_of_lines::<E, Accumulator<E, L, N>, L, N>(&mut groups, &mut fixed).value()
            }
            _ => product_of_lines::<E, Lanes<E, L, N>, L, N>(&mut groups, &mut fixed).value(),
        };
        if E::FAMILY == Family::Bls12 && E::PARAMETER_IS_NEGATIVE {
            value.conjugate_in_place();
        }
        value
    }
}

/// The product of all lines of the groups' loops, for each lane or for all of them. (Where the loop's
/// length is negative it is to be conjugated.)
///
/// # Safety
///
/// The instructions of this back end.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
pub(super) unsafe fn product_of_lines<E, A, const L: usize, const N: usize>(
    groups: &mut [Group<E, L, N>],
    fixed: &mut [FixedGroup<'_, E, L, N>],
) -> A
where
    E: Tower<L, N>,
    A: LineProduct<E, L, N>,
    Fp<E::Base, L, N>: Layout<E::Base, N>,
{
    // SAFETY: as the caller promises.
    unsafe {
        let constants = Constants::<E, L, N>::new();
        let mut product = A::one();
        for (i, digit) in E::LOOP.iter().enumerate() {
            if i > 0 {
                product.square();
            }
            for group in &mut *groups {
                let line = group.multiple.double(&group.at, &constants.three_b);
                product.multiply_by_lines(&line, group.lanes);
            }
            for group in &mut *fixed {
                product.multiply_by_monic_lines(&group.next_line(), group.lanes());
            }
            if *digit != 0 {
                for group in &mut *groups {
                    let line = group.add(*digit < 0);
                    product.multiply_by_lines(&line, group.lanes);
                }
                for group in &mut *fixed {
                    product.multiply_by_monic_lines(&group.next_line(), group.lanes());
                }
            }
        }
        if E::FAMILY == Family::Bn {
            for group in groups {
                for line in group.last_lines(&constants) {
                    product.multiply_by_lines(&line, group.lanes);
                }
            }
            for group in fixed {
                for _ in 0..2 {
                    product.multiply_by_monic_lines(&group.next_line(), group.lanes());
                }
            }
        }
        product
    }
}

// === impl Constants ===

/// # Safety
///
/// Every function: the instructions of this back end.
impl<E: Tower<L, N>, const L: usize, const N: usize> Constants<E, L, N>
where
    Fp<E::Base, L, N>: Layout<E::Base, N>,
{
    #[inline(always)]
    unsafe fn new() -> Self {
        let b = E::G2::COEFF_B;
        let [x, y] = E::TWIST_FROBENIUS.unwrap_or([Fp2::ONE; 2]);
        // SAFETY: as the caller promises.
        unsafe {
            Self {
                three_b: Quadratic::splat(&(b + b + b)).factor(),
                twist_frobenius: [Quadratic::splat(&x).factor(), Quadratic::splat(&y).factor()],
            }
        }
    }
}

// === impl Group ===

/// # Safety
///
/// Every function: the instructions of this back end.
impl<E: Tower<L, N>, const L: usize, const N: usize> Group<E, L, N>
where
    Fp<E::Base, L, N>: Layout<E::Base, N>,
{
    /// A group of one to eight pairs.
    #[inline(always)]
    pub(super) unsafe fn new(pairs: &InLanes<'_, Pair<E, L, N>>) -> Self {
        let (any, lanes) = present(pairs);
        let left: [&ArkAffine<E::G1>; 8] = pairs.map(|pair| &pair.unwrap_or(any).0);
        let right: [&ArkAffine<E::G2>; 8] = pairs.map(|pair| &pair.unwrap_or(any).1);
        let place = |y: &Scalar<E::Base, N>| std::ptr::from_ref(y);
        // SAFETY: as the caller promises; the places are coordinates of points.
        unsafe {
            let y = Fp::<E::Base, L, N>::load_ark(left.map(|point| place(&point.y)));
            let point = Affine {
                x: Quadratic::load_ark(right.map(|point| &raw const point.x)),
                y: Quadratic::load_ark(right.map(|point| &raw const point.y)),
            };
            Self {
                at: Arguments {
                    x: Fp::load_ark(left.map(|point| place(&point.x))),
                    minus_y: Fp::zero_limbs().minus::<3>(y).settle(),
                },
                point,
                minus_point: point.negated(),
                multiple: Point::new(&point),
                lanes,
            }
        }
    }

    #[inline(always)]
    unsafe fn add(&mut self, negative: bool) -> Line<E, L, N> {
        let point = if negative {
            &self.minus_point
        } else {
            &self.point
        };
        // SAFETY: as the caller promises.
        unsafe { self.multiple.add(point, &self.at) }
    }

    /// The lines that end the loop of a BN curve: through the multiple and π(Q), and then −π²(Q).
    #[inline(always)]
    unsafe fn last_lines(&mut self, constants: &Constants<E, L, N>) -> [Line<E, L, N>; 2] {
        // SAFETY: as the caller promises.
        unsafe {
            let image = self.point.frobenius(&constants.twist_frobenius);
            let second = image.frobenius(&constants.twist_frobenius).negated();
            [
                self.multiple.add(&image, &self.at),
                self.multiple.add(&second, &self.at),
            ]
        }
    }
}
