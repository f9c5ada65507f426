//! Tests for the subgroup of prime order, of eight points side by side.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use ark_ec::short_weierstrass::{Affine, SWCurveConfig};
use ark_ec::{AffineRepr, CurveGroup};
use ark_ff::Field;

use super::multiply_each::{Entry, Point};
use super::vector_field::VectorField;
use crate::InstructionSet;
use crate::instruction_set::checked;
use crate::subgroup::{is_in_subgroup, portable};

/// Fewer points than this take arkworks' arithmetic less time, one by one: eight side by side take twice what
/// one does there.
const FEW: usize = 3;

/// The endomorphism `(x, y) ↦ (a·x^p, b·y^p)` that multiplies by `number` in the subgroup.
#[derive(Clone, Copy)]
struct Endomorphism<F> {
    a: F,
    b: F,
}

/// Whether each point is in the subgroup, on this thread; `number` as
/// [`numbers`](crate::subgroup::numbers) has it, zero for curves whose points are all in it.
///
/// # Panics
///
/// If this machine has not the instructions.
pub(crate) fn in_subgroup_each<P, V>(points: &[Affine<P>], number: u128) -> Vec<bool>
where
    P: SWCurveConfig,
    V: VectorField<Ark = P::BaseField>,
{
    checked(InstructionSet::Avx512Ifma);
    if P::cofactor_is_one() {
        return vec![true; points.len()];
    }
    if points.len() < FEW {
        return portable(points);
    }
    let endomorphism = Endomorphism::of::<P>(number);
    let mut verdicts = Vec::with_capacity(points.len());
    for points in points.chunks(8) {
        // SAFETY: the instructions are there; there is at least one point.
        let [x, y, z] = unsafe { multiply_eight::<P, V>(points, number) };
        for (lane, point) in points.iter().enumerate() {
            // An addition of equal or opposite points left Z zero, and so did whatever followed.
            verdicts.push(if point.is_zero() || z[lane] == V::Ark::default() {
                is_in_subgroup(point)
            } else {
                endomorphism.maps(point, [x[lane], y[lane], z[lane]])
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

// === impl Endomorphism ===

impl<F: Field> Endomorphism<F> {
    /// Found by what it makes of the generator; computed once for each curve.
    fn of<P: SWCurveConfig<BaseField = F>>(number: u128) -> Self {
        static KNOWN: Mutex<Option<HashMap<TypeId, Box<dyn Any + Send>>>> = Mutex::new(None);
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default();
        let found = known.entry(TypeId::of::<P>()).or_insert_with(|| {
            let generator = P::GENERATOR;
            let words = [number as u64, (number >> 64) as u64];
            let image = generator.mul_bigint(words).into_affine();
            let quotient = |image: F, of: F| {
                let of = of.frobenius_map(1);
                image
                    * of.inverse()
                        .expect("a generator's coordinates are not zero")
            };
            Box::new(Self {
                a: quotient(image.x, generator.x),
                b: quotient(image.y, generator.y),
            })
        });
        *found.downcast_ref().expect("the curve has one base field")
    }

    /// Whether it maps the point to this one in Jacobian coordinates, which is not infinite.
    fn maps<P: SWCurveConfig<BaseField = F>>(&self, point: &Affine<P>, [x, y, z]: [F; 3]) -> bool {
        let square = z.square();
        self.a * point.x.frobenius_map(1) * square == x
            && self.b * point.y.frobenius_map(1) * square * z == y
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
