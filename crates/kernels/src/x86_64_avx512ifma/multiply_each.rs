//! Multiples of points by numbers of 128 bits, each point by a different number.
//!
//! Eight points at a time in Jacobian coordinates (x = X/Z², y = Y/Z³), with signed digits of four
//! bits and a table of the multiples 1 to 8 of each point.

use ark_ec::AffineRepr;
use ark_ec::short_weierstrass::{Affine, SWCurveConfig};

use super::vector_field::VectorField;
use crate::InstructionSet;
use crate::instruction_set::checked;
use crate::portable::inversion::{Invertible, invert_all};

/// Digits of a number: one more than it has groups of four bits, for the last carry.
const DIGITS: usize = 33;
/// Multiples in a table.
const MULTIPLES: usize = 8;

/// Eight points.
pub(super) struct Point<V> {
    pub(super) x: V,
    pub(super) y: V,
    pub(super) z: V,
}

/// Eight points of a table, with powers of their Z.
pub(super) struct Entry<V> {
    pub(super) point: Point<V>,
    pub(super) z2: V,
    pub(super) z3: V,
}

/// `numbers[i]·points[i]`, on this thread. Points are in the subgroup of prime order or infinite.
///
/// # Panics
///
/// If this machine lacks the instructions.
pub(crate) fn multiply_each<P, V>(points: &[Affine<P>], numbers: &[u128]) -> Vec<Affine<P>>
where
    P: SWCurveConfig<BaseField: Invertible>,
    V: VectorField<Ark = P::BaseField>,
{
    checked(InstructionSet::Avx512Ifma);
    let mut coordinates = Vec::with_capacity(points.len());
    for (points, numbers) in points.chunks(8).zip(numbers.chunks(8)) {
        // SAFETY: the instructions are there.
        let [x, y, z] = unsafe { multiply_eight::<P, V>(points, numbers) };
        for (lane, (point, number)) in points.iter().zip(numbers).enumerate() {
            let is_zero = point.is_zero() || *number == 0;
            let zero = V::Ark::default();
            coordinates.push((x[lane], y[lane], if is_zero { zero } else { z[lane] }));
        }
    }
    to_affine(&coordinates)
}

/// Converts Jacobian coordinates to affine points; Z is zero at infinity.
pub(super) fn to_affine<P, F>(coordinates: &[(F, F, F)]) -> Vec<Affine<P>>
where
    P: SWCurveConfig<BaseField = F>,
    F: Invertible,
{
    let mut inverses: Vec<F> = coordinates.iter().map(|(_, _, z)| *z).collect();
    invert_all(&mut inverses, &mut Vec::with_capacity(coordinates.len()));
    coordinates
        .iter()
        .zip(inverses)
        .map(|((x, y, _), inverse)| {
            if inverse == F::default() {
                return Affine::identity();
            }
            let square = inverse * inverse;
            Affine::new_unchecked(*x * square, *y * square * inverse)
        })
        .collect()
}

/// Signed digits of four bits, the lowest first: each in −7..=8.
fn digits(number: u128) -> [i8; DIGITS] {
    let mut digits = [0; DIGITS];
    let mut carry = 0;
    for (i, digit) in digits.iter_mut().enumerate() {
        let bits = number.checked_shr(4 * i as u32).unwrap_or(0) as i8 & 15;
        *digit = bits + carry;
        carry = i8::from(*digit > MULTIPLES as i8);
        *digit -= carry << 4;
    }
    digits
}

/// The multiples of one to eight points; the coordinates of infinity are unspecified.
///
/// No addition meets two equal or opposite points: a multiple is at least 16 times the point when a
/// multiple of at most 8 is added, and far below the order.
///
/// # Safety
///
/// The instructions of this back end.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
unsafe fn multiply_eight<P, V>(points: &[Affine<P>], numbers: &[u128]) -> [[V::Ark; 8]; 3]
where
    P: SWCurveConfig,
    V: VectorField<Ark = P::BaseField>,
{
    let mut recoded = [[0; DIGITS]; 8];
    for (recoded, number) in recoded.iter_mut().zip(numbers) {
        *recoded = digits(*number);
    }
    let point = |lane: usize| &points[if lane < points.len() { lane } else { 0 }];
    // SAFETY: as the caller promises; the places are coordinates of points.
    unsafe {
        let base = Point {
            x: V::load_ark(std::array::from_fn(|lane| &raw const point(lane).x)),
            y: V::load_ark(std::array::from_fn(|lane| &raw const point(lane).y)),
            z: V::one(),
        };
        let table = multiples(base);
        let mut sum = Point {
            x: V::one(),
            y: V::one(),
            z: V::zero(),
        };
        let mut infinite = 0xff;
        for i in (0..DIGITS).rev() {
            if infinite != 0xff {
                for _ in 0..4 {
                    sum = sum.double();
                }
            }
            let (mut zero, mut negative) = (0, 0);
            let mut of_multiple = [0; MULTIPLES];
            for (lane, digits) in recoded.iter().enumerate() {
                let (digit, bit) = (digits[i], 1 << lane);
                match digit.unsigned_abs() {
                    0 => zero |= bit,
                    multiple => of_multiple[usize::from(multiple) - 1] |= bit,
                }
                negative |= if digit < 0 { bit } else { 0 };
            }
            if zero != 0xff {
                let entry = Entry::select(&table, &of_multiple, negative);
                let added = sum.add(&entry);
                // What was infinite is the table's point now, unless that is infinite, too.
                let with_entry = added.replaced(infinite, &entry.point);
                sum = with_entry.replaced(zero, &sum);
                infinite &= zero;
            }
        }
        [sum.x.to_ark(), sum.y.to_ark(), sum.z.to_ark()]
    }
}

/// The multiples 1 to 8 of eight points.
///
/// # Safety
///
/// The instructions of this back end.
#[inline(always)]
unsafe fn multiples<V: VectorField>(base: Point<V>) -> [Entry<V>; MULTIPLES] {
    // SAFETY: as the caller promises.
    unsafe {
        let p1 = Entry::new(base);
        let p2 = Entry::new(p1.point.double());
        let p3 = Entry::new(p2.point.add(&p1));
        let p4 = Entry::new(p2.point.double());
        let p5 = Entry::new(p4.point.add(&p1));
        let p6 = Entry::new(p3.point.double());
        let p7 = Entry::new(p6.point.add(&p1));
        let p8 = Entry::new(p4.point.double());
        [p1, p2, p3, p4, p5, p6, p7, p8]
    }
}

// === impl Point ===

/// # Safety
///
/// Every function: the instructions of this back end.
impl<V: VectorField> Point<V> {
    /// "dbl-2009-l" of the Explicit-Formulas Database, a = 0. All values are tight.
    #[inline(always)]
    pub(super) unsafe fn double(&self) -> Self {
        // SAFETY: as the caller promises.
        unsafe {
            let square = |x: V| V::mul_by_call(x, x);
            let a = square(self.x);
            let b = square(self.y);
            let c = square(b);
            let half = V::sub_two_reduced(square(V::add_reduced(self.x, b)), a, c);
            let d = V::add_reduced(half, half);
            let e = V::add_reduced(V::add_reduced(a, a), a);
            let yz = V::mul_by_call(self.y, self.z);
            let x = V::sub_two_reduced(square(e), d, d);
            let c2 = V::add_reduced(c, c);
            let c4 = V::add_reduced(c2, c2);
            let c8 = V::add_reduced(c4, c4);
            Self {
                x,
                y: V::sub_signed_reduced(V::mul_by_call(e, V::sub(d, x)), c8, 0),
                z: V::add_reduced(yz, yz),
            }
        }
    }

    /// "add-1998-cmo-2" of the Explicit-Formulas Database. All values are tight.
    #[inline(always)]
    pub(super) unsafe fn add(&self, other: &Entry<V>) -> Self {
        // SAFETY: as the caller promises.
        unsafe {
            let z2 = V::mul_by_call(self.z, self.z);
            let u = V::mul_by_call(self.x, other.z2);
            let s = V::mul_by_call(self.y, other.z3);
            let h = V::sub_signed_reduced(V::mul_by_call(other.point.x, z2), u, 0);
            let z3 = V::mul_by_call(self.z, z2);
            let r = V::sub_signed_reduced(V::mul_by_call(other.point.y, z3), s, 0);
            let h2 = V::mul_by_call(h, h);
            let h3 = V::mul_by_call(h, h2);
            let v = V::mul_by_call(u, h2);
            let x = V::sub_two_reduced(V::mul_by_call(r, r), h3, V::add_reduced(v, v));
            let y = V::mul_by_call(r, V::sub(v, x));
            Self {
                x,
                y: V::sub_signed_reduced(y, V::mul_by_call(s, h3), 0),
                z: V::mul_by_call(V::mul_by_call(self.z, other.point.z), h),
            }
        }
    }

    /// `other` in `lanes`, else `self`.
    #[inline(always)]
    unsafe fn replaced(&self, lanes: u8, other: &Self) -> Self {
        // SAFETY: as the caller promises.
        unsafe {
            Self {
                x: V::select(lanes, self.x, other.x),
                y: V::select(lanes, self.y, other.y),
                z: V::select(lanes, self.z, other.z),
            }
        }
    }
}

// === impl Entry ===

/// # Safety
///
/// Every function: the instructions of this back end.
impl<V: VectorField> Entry<V> {
    #[inline(always)]
    pub(super) unsafe fn new(point: Point<V>) -> Self {
        // SAFETY: as the caller promises.
        unsafe {
            let z2 = V::mul_by_call(point.z, point.z);
            Self {
                z2,
                z3: V::mul_by_call(z2, point.z),
                point,
            }
        }
    }

    /// Each lane's multiple, negated in the lanes of `negative`.
    #[inline(always)]
    unsafe fn select(
        table: &[Self; MULTIPLES],
        of_multiple: &[u8; MULTIPLES],
        negative: u8,
    ) -> Self {
        // SAFETY: as the caller promises.
        unsafe {
            let first = &table[0];
            let (mut z2, mut z3) = (first.z2, first.z3);
            let mut point = first.point.replaced(0, &first.point);
            for (entry, lanes) in table.iter().zip(of_multiple).skip(1) {
                point = point.replaced(*lanes, &entry.point);
                z2 = V::select(*lanes, z2, entry.z2);
                z3 = V::select(*lanes, z3, entry.z3);
            }
            point.y = V::sub_signed_reduced(V::zero(), point.y, !negative);
            Self { point, z2, z3 }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_sum_up() {
        for number in [
            0,
            1,
            8,
            9,
            0x88,
            0x99,
            u128::MAX,
            u128::MAX / 15 * 8,
            1 << 127,
        ] {
            let digits = digits(number);
            assert!(digits.iter().all(|digit| (-7..=8).contains(digit)));
            let sum = digits.iter().rev().fold(0_u128, |sum, digit| {
                sum.wrapping_mul(16).wrapping_add_signed((*digit).into())
            });
            assert_eq!(sum, number);
        }
    }
}
