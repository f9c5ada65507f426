//! Tests for the subgroup of prime order, of eight points side by side.

use ark_ec::AffineRepr;
use ark_ec::short_weierstrass::{Affine, Projective, SWCurveConfig};

use super::multiply_each::{Entry, Point};
use super::vector_field::VectorField;
use crate::InstructionSet;
use crate::instruction_set::checked;
use crate::subgroup::{Criterion, is_in_subgroup, portable};

/// Below this number, points are faster one by one with arkworks' arithmetic: eight side by side take twice the time
/// of one there.
const FEW: usize = 3;

/// Whether each point is in the subgroup, on this thread.
///
/// # Panics
///
/// If this machine lacks the instructions.
pub(crate) fn in_subgroup_each<P, V>(points: &[Affine<P>], criterion: Criterion) -> Vec<bool>
where
    P: SWCurveConfig,
    V: VectorField<Ark = P::BaseField>,
{
    checked(InstructionSet::Avx512Ifma);
    let number = match criterion {
        Criterion::WholeCurve => return vec![true; points.len()],
        Criterion::Multiple(number) => number,
        Criterion::BnTwist(u) => u.into(),
    };
    if points.len() < FEW {
        return portable(criterion, points);
    }
    let endomorphism = criterion.endomorphism::<P>();
    let mut verdicts = Vec::with_capacity(points.len());
    for points in points.chunks(8) {
        // SAFETY: the instructions are there; there is at least one point.
        let [x, y, z] = unsafe { multiply_eight::<P, V>(points, number) };
        for (lane, point) in points.iter().enumerate() {
            let multiple = [x[lane], y[lane], z[lane]];
            // An addition of equal or opposite points left Z zero, and so did whatever followed.
            verdicts.push(if point.is_zero() || z[lane] == V::Ark::default() {
                is_in_subgroup(point)
            } else if let Criterion::BnTwist(_) = criterion {
                let [x, y, z] = multiple;
                endomorphism.is_on_twist_subgroup(point, Projective::new_unchecked(x, y, z))
            } else {
                endomorphism.maps(point, multiple)
            });
        }
    }
    verdicts
}

/// The number's digits 1, 0 and −1, the lowest first, no two neighbours other than zero.
fn digits(number: u128) -> Vec<i8> {
    let mut digits = Vec::with_capacity(129);
    let mut rest = number;
    while rest != 0 {
        let digit = match rest & 3 {
            1 => 1,
            3 => -1,
            _ => 0,
        };
        digits.push(digit);
        // (rest − digit)/2, without an overflow.
        rest = (rest >> 1) + u128::from(digit < 0);
    }
    digits
}

/// `number` times each of one to eight points, in Jacobian coordinates. What infinity gives is not
/// specified. If an addition met equal or opposite points, Z is zero: both Z₁·(X₂ − X₁) and what
/// doubling or adding makes of a Z that is zero are.
///
/// # Safety
///
/// The instructions of this back end.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
unsafe fn multiply_eight<P, V>(points: &[Affine<P>], number: u128) -> [[V::Ark; 8]; 3]
where
    P: SWCurveConfig,
    V: VectorField<Ark = P::BaseField>,
{
    let point = |lane: usize| &points[if lane < points.len() { lane } else { 0 }];
    let digits = digits(number);
    // SAFETY: as the caller promises; the places are coordinates of points.
    unsafe {
        let base = || Point {
            x: V::load_ark(std::array::from_fn(|lane| &raw const point(lane).x)),
            y: V::load_ark(std::array::from_fn(|lane| &raw const point(lane).y)),
            z: V::one(),
        };
        let (added, mut subtracted) = (Entry::new(base()), Entry::new(base()));
        subtracted.point.y = V::sub_signed_reduced(V::zero(), subtracted.point.y, 0);
        let mut sum = base();
        for digit in digits.iter().rev().skip(1) {
            sum = sum.double();
            match digit {
                1 => sum = sum.add(&added),
                -1 => sum = sum.add(&subtracted),
                _ => {}
            }
        }
        [sum.x.to_ark(), sum.y.to_ark(), sum.z.to_ark()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_make_up_the_number() {
        for number in [1, 2, 3, 7, 0xd201_0000_0001_0000, u128::MAX / 3, u128::MAX] {
            let digits = digits(number);
            let sum = digits.iter().rev().fold(0_u128, |sum, digit| {
                sum.wrapping_mul(2).wrapping_add_signed((*digit).into())
            });
            assert_eq!(sum, number);
            assert_eq!(digits.last(), Some(&1), "the point itself is the first sum");
            assert!(digits.windows(2).all(|pair| pair[0] == 0 || pair[1] == 0));
        }
    }
}
