//! Points folded by one scalar, eight at a time.
//!
//! The scalar's digits are the same for all lanes, so that nothing is selected by lane: its two halves
//! by the curve's endomorphism, each as signed odd digits below eight (Solinas' non-adjacent form of
//! width four), share the doublings.

use ark_ec::AffineRepr;
use ark_ec::CurveGroup;
use ark_ec::short_weierstrass::{Affine, SWCurveConfig};
use ark_ff::PrimeField;

use super::multiply_each::{Entry, Point, to_affine};
use super::vector_field::VectorField;
use crate::InstructionSet;
use crate::instruction_set::checked;
use crate::msm::endomorphism::{Endomorphism, Signed};
use crate::msm::fold::portable;
use crate::portable::inversion::Invertible;

/// Odd multiples in a table: 1, 3, 5 and 7.
const MULTIPLES: usize = 4;

/// `left[i] + scalar·right[i]`, on this thread. Points are in the subgroup of prime order or infinite.
///
/// # Panics
///
/// If this machine lacks the instructions.
pub(crate) fn fold<P, V>(
    left: &[Affine<P>],
    right: &[Affine<P>],
    scalar: P::ScalarField,
) -> Vec<Affine<P>>
where
    P: SWCurveConfig<BaseField: Invertible>,
    V: VectorField<Ark = P::BaseField>,
{
    checked(InstructionSet::Avx512Ifma);
    let Some(map) = Endomorphism::<P>::of_curve() else {
        return portable(left, right, scalar);
    };
    let number = scalar.into_bigint();
    let digits = map.split(number.as_ref()).map(digits);
    if digits.iter().all(Vec::is_empty) {
        return left.to_vec();
    }
    let mut coordinates = Vec::with_capacity(left.len());
    for (left, right) in left.chunks(8).zip(right.chunks(8)) {
        // SAFETY: the instructions are there; there are as many points on either side, at least one.
        let [x, y, z] = unsafe { fold_eight::<P, V>(left, right, &digits, &map.beta) };
        coordinates.extend((0..left.len()).map(|lane| (x[lane], y[lane], z[lane])));
    }
    let mut folded = to_affine(&coordinates);
    let pairs = left.iter().zip(right);
    for ((left, right), folded) in pairs.zip(&mut folded) {
        // An addition of equal or opposite points left Z zero, and so did whatever followed.
        if folded.is_zero() || left.is_zero() || right.is_zero() {
            *folded = (P::mul_affine(right, number.as_ref()) + left).into_affine();
        }
    }
    folded
}

/// Digits of a number, the lowest first: zero, or odd and below eight in magnitude.
fn digits(number: Signed) -> Vec<i8> {
    let mut digits = Vec::with_capacity(129);
    // A half has 127 bits: there is room for a carry.
    let mut rest = number.magnitude;
    while rest != 0 {
        let mut digit = 0;
        if rest & 1 == 1 {
            digit = (rest & 15) as i8;
            if digit > 8 {
                digit -= 16;
            }
            rest = rest.wrapping_sub_signed(digit.into());
        }
        digits.push(if number.negative { -digit } else { digit });
        rest >>= 1;
    }
    digits
}

/// The sums in Jacobian coordinates. Where a point is infinite they are not specified; where an
/// addition met equal or opposite points, Z is zero.
///
/// # Safety
///
/// The instructions of this back end. One to eight points on either side, as many; a digit that is
/// not zero.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
unsafe fn fold_eight<P, V>(
    left: &[Affine<P>],
    right: &[Affine<P>],
    digits: &[Vec<i8>; 2],
    beta: &P::BaseField,
) -> [[V::Ark; 8]; 3]
where
    P: SWCurveConfig,
    V: VectorField<Ark = P::BaseField>,
{
    // SAFETY: as the caller promises.
    unsafe {
        let table = odd_multiples(load::<P, V>(right));
        let beta = V::splat(beta);
        let images = [
            table[0].image(beta),
            table[1].image(beta),
            table[2].image(beta),
            table[3].image(beta),
        ];
        let tables = [&table, &images];
        let mut sum: Option<Point<V>> = None;
        for place in (0..digits[0].len().max(digits[1].len())).rev() {
            if let Some(sum) = &mut sum {
                *sum = sum.double();
            }
            for (digits, table) in digits.iter().zip(tables) {
                let digit = digits.get(place).copied().unwrap_or(0);
                if digit == 0 {
                    continue;
                }
                let entry = &table[usize::from(digit.unsigned_abs()) / 2];
                let entry = if digit < 0 {
                    entry.negated()
                } else {
                    entry.copied()
                };
                sum = Some(match sum {
                    Some(sum) => sum.add(&entry),
                    None => entry.point,
                });
            }
        }
        let left = Entry::new(load::<P, V>(left));
        let sum = match sum {
            Some(sum) => sum.add(&left),
            None => left.point,
        };
        [sum.x.to_ark(), sum.y.to_ark(), sum.z.to_ark()]
    }
}

/// Loads one to eight points; free lanes repeat the first.
///
/// # Safety
///
/// The instructions of this back end; so below.
#[inline(always)]
unsafe fn load<P, V>(points: &[Affine<P>]) -> Point<V>
where
    P: SWCurveConfig,
    V: VectorField<Ark = P::BaseField>,
{
    let point = |lane: usize| &points[if lane < points.len() { lane } else { 0 }];
    // SAFETY: as the caller promises; the places are coordinates of points.
    unsafe {
        Point {
            x: V::load_ark(std::array::from_fn(|lane| &raw const point(lane).x)),
            y: V::load_ark(std::array::from_fn(|lane| &raw const point(lane).y)),
            z: V::one(),
        }
    }
}

/// # Safety
///
/// See [`load`].
#[inline(always)]
unsafe fn odd_multiples<V: VectorField>(base: Point<V>) -> [Entry<V>; MULTIPLES] {
    // SAFETY: as the caller promises.
    unsafe {
        let twice = Entry::new(base.double());
        let p1 = Entry::new(base);
        let p3 = Entry::new(p1.point.add(&twice));
        let p5 = Entry::new(p3.point.add(&twice));
        let p7 = Entry::new(p5.point.add(&twice));
        [p1, p3, p5, p7]
    }
}

// === impl Entry ===

/// # Safety
///
/// Every function: the instructions of this back end.
impl<V: VectorField> Entry<V> {
    #[inline(always)]
    unsafe fn copied(&self) -> Self {
        let Point { x, y, z } = self.point;
        Self {
            point: Point { x, y, z },
            z2: self.z2,
            z3: self.z3,
        }
    }

    #[inline(always)]
    unsafe fn negated(&self) -> Self {
        // SAFETY: as the caller promises; so below.
        unsafe {
            let mut negated = self.copied();
            negated.point.y = V::sub_signed_reduced(V::zero(), negated.point.y, 0);
            negated
        }
    }

    /// (β·x, y): the same in Jacobian coordinates, where x = X/Z².
    #[inline(always)]
    unsafe fn image(&self, beta: V) -> Self {
        // SAFETY: see above.
        unsafe {
            let mut image = self.copied();
            image.point.x = V::mul_by_call(image.point.x, beta);
            image
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_make_up_the_number() {
        for magnitude in [0, 1, 7, 8, 9, 15, 16, 0xffff, u128::MAX >> 1, 1 << 126] {
            for negative in [false, true] {
                let digits = digits(Signed {
                    magnitude,
                    negative,
                });
                let sum = digits.iter().rev().fold(0_i128, |sum, digit| {
                    sum.wrapping_mul(2).wrapping_add((*digit).into())
                });
                assert_eq!(sum.unsigned_abs(), magnitude);
                assert!(magnitude == 0 || negative == (sum < 0));
                let allowed = |digit: &i8| *digit == 0 || digit % 2 != 0 && digit.abs() < 8;
                assert!(digits.iter().all(allowed));
            }
        }
    }
}
