//! Arithmetic modulo p on *columns*: five signed 64-bit numbers a lane, of weights 2^(52·i).
//!
//! Columns represent a number modulo 2²⁶⁰; that number is in `0..2²⁶⁰`, and its residue modulo p is the value.
//! IFMA reads the low 52 bits of a factor's lanes, so a factor must be carried from column to column, but
//! neither masked nor reduced; terms of sums and differences need not even be carried. With p below
//! 2²⁶⁰/35 there is room to add up several values between reductions.
//!
//! Products are by constants, with a quotient computed beforehand (Shoup; Harvey, "Faster arithmetic
//! for number-theoretic transforms", 2014): with w' = ⌊w·2²⁶⁰/p⌋ the product x·w mod p is
//! x·w − ⌊x·w'/2²⁶⁰⌋·p. Only the upper half of x·w' and the lower halves of the other two products
//! are needed: 75 multiply-adds where Montgomery's method takes 105. The factor w is a plain integer,
//! so x may be in any Montgomery form, arkworks' with its radix of 2²⁵⁶ too: nothing is converted.

use std::arch::x86_64::*;

use crate::x86_64_avx512ifma::modulus::{LIMB_BITS, LIMB_MASK, Modulus, limbs};

/// The limbs of a number below 2²⁶⁰.
pub(crate) type Limbs = [u64; 5];
/// Columns, or carried limbs, of eight numbers.
pub(super) type Columns = [__m512i; 5];

/// Constants of a modulus, beside [`Modulus`]'s.
pub(crate) trait Constants: Modulus<5, 4> {
    /// 2²⁶⁰ − p.
    const MINUS_P: Limbs = minus_multiple(&Self::P, 1);
    /// 2²⁶⁰ − 5·p.
    const MINUS_5P: Limbs = minus_multiple(&Self::P, 5);
    /// 16·p, by columns.
    const P_16: Limbs = [
        Self::P[0] * 16,
        Self::P[1] * 16,
        Self::P[2] * 16,
        Self::P[3] * 16,
        Self::P[4] * 16,
    ];
    /// ⌊2²⁶⁰ / p⌋.
    const QUOTIENT: u64 = power_of_two_over(&Self::MODULUS.0, 260);
    /// ⌊2³⁰⁰ / p⌋.
    const FINE_QUOTIENT: u64 = power_of_two_over(&Self::MODULUS.0, 300);
    /// −p⁻¹ mod 2²⁶⁰.
    const MINUS_P_INVERSE: Limbs = minus_inverse(&Self::P);
}

impl<P: Modulus<5, 4>> Constants for P {}

/// A factor w < p with w' = ⌊w·2²⁶⁰/p⌋, the same in every lane.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Factor {
    pub(super) value: Limbs,
    pub(super) quotient: Limbs,
}

/// A factor for each lane.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct LaneFactors {
    pub(super) value: [[u64; 8]; 5],
    pub(super) quotient: [[u64; 8]; 5],
}

/// A factor in registers.
#[derive(Clone, Copy)]
pub(super) struct Constant {
    value: Columns,
    quotient: Columns,
}

/// An array of five from an expression in the constant `$i`: unrolled, whatever the optimiser thinks
/// of loops over arrays of vectors.
macro_rules! columns {
    ($i:ident => $value:expr) => {
        [
            {
                const $i: usize = 0;
                $value
            },
            {
                const $i: usize = 1;
                $value
            },
            {
                const $i: usize = 2;
                $value
            },
            {
                const $i: usize = 3;
                $value
            },
            {
                const $i: usize = 4;
                $value
            },
        ]
    };
}

/// `column += the low halves of x·y`, for one or more triples; likewise the high halves.
macro_rules! low {
    ($($column:expr, $x:expr, $y:expr;)+) => {
        $($column = _mm512_madd52lo_epu64($column, $x, $y);)+
    };
}
macro_rules! high {
    ($($column:expr, $x:expr, $y:expr;)+) => {
        $($column = _mm512_madd52hi_epu64($column, $x, $y);)+
    };
}

const fn minus_multiple(p: &Limbs, k: i64) -> Limbs {
    let mut out = [0; 5];
    let mut borrow = 0i64;
    let mut i = 0;
    while i < 5 {
        let limb = borrow - k * p[i] as i64;
        out[i] = limb as u64 & LIMB_MASK;
        borrow = limb >> LIMB_BITS;
        i += 1;
    }
    out
}

/// ⌊2^exponent / p⌋, which must be below 2⁶⁴, by long division.
const fn power_of_two_over(p: &[u64; 4], exponent: u32) -> u64 {
    let mut remainder = [1u64, 0, 0, 0];
    let mut quotient = 0u64;
    let mut step = 0;
    while step < exponent {
        assert!(quotient >> 63 == 0, "a quotient of 64 bits");
        quotient <<= 1;
        let mut doubled = [0u64; 4];
        let mut i = 0;
        while i < 4 {
            doubled[i] = remainder[i] << 1;
            if i > 0 {
                doubled[i] |= remainder[i - 1] >> 63;
            }
            i += 1;
        }
        let mut reduced = [0u64; 4];
        let mut borrow = false;
        i = 0;
        while i < 4 {
            let (first, under) = doubled[i].overflowing_sub(p[i]);
            let (second, under_again) = first.overflowing_sub(borrow as u64);
            reduced[i] = second;
            borrow = under || under_again;
            i += 1;
        }
        // p is below 2²⁵⁵, so that nothing is shifted out.
        remainder = if borrow {
            doubled
        } else {
            quotient |= 1;
            reduced
        };
        step += 1;
    }
    quotient
}

/// The lower 260 bits of a product.
pub(super) const fn low_product(a: &Limbs, b: &Limbs) -> Limbs {
    let mut columns = [0u128; 5];
    let mut i = 0;
    while i < 5 {
        let mut j = 0;
        while i + j < 5 {
            columns[i + j] += a[i] as u128 * b[j] as u128;
            j += 1;
        }
        i += 1;
    }
    let mut out = [0; 5];
    let mut carry = 0u128;
    i = 0;
    while i < 5 {
        let column = columns[i] + carry;
        out[i] = column as u64 & LIMB_MASK;
        carry = column >> LIMB_BITS;
        i += 1;
    }
    out
}

/// −p⁻¹ mod 2²⁶⁰ by Newton's iteration x ← x·(2 + p·x), which doubles the bits that are right.
const fn minus_inverse(p: &Limbs) -> Limbs {
    // −p·1 ≡ −1 mod 2 at first: one bit is right.
    let mut x: Limbs = [1, 0, 0, 0, 0];
    let mut step = 0;
    while step < 9 {
        let mut factor = low_product(p, &x);
        factor[0] += 2;
        let mut i = 0;
        while i < 4 {
            factor[i + 1] += factor[i] >> LIMB_BITS;
            factor[i] &= LIMB_MASK;
            i += 1;
        }
        factor[4] &= LIMB_MASK;
        x = low_product(&x, &factor);
        step += 1;
    }
    x
}

impl Factor {
    /// The factor with the words of w and of w·2²⁶⁰ mod p: since w·2²⁶⁰ − (w·2²⁶⁰ mod p) is p·w', the second
    /// times −p⁻¹ is w' modulo 2²⁶⁰.
    pub(super) fn new<P: Constants>(value: &[u64; 4], shifted: &[u64; 4]) -> Self {
        Self {
            value: limbs(value),
            quotient: low_product(&limbs(shifted), &P::MINUS_P_INVERSE),
        }
    }

    /// # Safety
    ///
    /// Here and below: the instructions of this back end.
    #[inline(always)]
    pub(super) unsafe fn splat(&self) -> Constant {
        // SAFETY: register operations only; so below.
        unsafe {
            Constant {
                value: splat(&self.value),
                quotient: splat(&self.quotient),
            }
        }
    }
}

impl LaneFactors {
    #[inline(always)]
    pub(super) unsafe fn load(&self) -> Constant {
        // SAFETY: reads of 64 bytes from arrays of that size.
        unsafe {
            Constant {
                value: load(&self.value),
                quotient: load(&self.quotient),
            }
        }
    }
}

#[inline(always)]
pub(super) unsafe fn load(lanes: &[[u64; 8]; 5]) -> Columns {
    // SAFETY: reads of 64 bytes from arrays of that size.
    unsafe { columns!(I => _mm512_loadu_si512(lanes[I].as_ptr().cast())) }
}

#[inline(always)]
pub(super) unsafe fn splat(limbs: &Limbs) -> Columns {
    // SAFETY: register operations only.
    unsafe { columns!(I => _mm512_set1_epi64(limbs[I] as i64)) }
}

#[inline(always)]
pub(super) unsafe fn zero() -> Columns {
    // SAFETY: register operations only.
    unsafe { [_mm512_setzero_si512(); 5] }
}

#[inline(always)]
pub(super) unsafe fn add(a: Columns, b: Columns) -> Columns {
    // SAFETY: register operations only.
    unsafe { columns!(I => _mm512_add_epi64(a[I], b[I])) }
}

#[inline(always)]
pub(super) unsafe fn sub(a: Columns, b: Columns) -> Columns {
    // SAFETY: register operations only.
    unsafe { columns!(I => _mm512_sub_epi64(a[I], b[I])) }
}

/// `a + 16·p`.
#[inline(always)]
pub(super) unsafe fn add_16p<P: Constants>(a: Columns) -> Columns {
    // SAFETY: register operations only.
    unsafe { add(a, splat(&P::P_16)) }
}

/// The number in a form that IFMA takes as a factor: the low 52 bits of each column are the number's limb,
/// and the bits above them are arbitrary.
#[inline(always)]
pub(super) unsafe fn carry(a: Columns) -> Columns {
    // SAFETY: register operations only.
    unsafe {
        let a1 = _mm512_add_epi64(a[1], _mm512_srai_epi64::<LIMB_BITS>(a[0]));
        let a2 = _mm512_add_epi64(a[2], _mm512_srai_epi64::<LIMB_BITS>(a1));
        let a3 = _mm512_add_epi64(a[3], _mm512_srai_epi64::<LIMB_BITS>(a2));
        let a4 = _mm512_add_epi64(a[4], _mm512_srai_epi64::<LIMB_BITS>(a3));
        [a[0], a1, a2, a3, a4]
    }
}

/// The limbs of the number: carried and masked.
#[inline(always)]
pub(super) unsafe fn normalize(a: Columns) -> Columns {
    // SAFETY: register operations only.
    unsafe { mask(carry(a)) }
}

#[inline(always)]
unsafe fn mask(a: Columns) -> Columns {
    // SAFETY: register operations only.
    unsafe {
        let mask = _mm512_set1_epi64(LIMB_MASK as i64);
        columns!(I => _mm512_and_si512(a[I], mask))
    }
}

/// The product of a carried number and a factor, in columns, plus `start`.
///
/// Takes any number below 2²⁶⁰; the product is in `0..10·p`. Of the quotient nine units at most are
/// lost with the columns that are not computed, and less than one in w'.
///
/// 75 multiply-adds and 8 other instructions. The columns of the product are chains of up to 18
/// dependent multiply-adds of 4 cycles; the processor looks far enough ahead to do another product
/// at the same time.
#[inline(always)]
pub(super) unsafe fn multiply<P: Constants>(x: Columns, w: &Constant, start: Columns) -> Columns {
    // SAFETY: register operations only.
    unsafe {
        let quotient = carry_unsigned(high_product(x, w.quotient));
        let product = add_low_product(start, x, w.value);
        add_low_product(product, quotient, splat(&P::MINUS_P))
    }
}

/// [`multiply`], less 5·p: in `−5·p..5·p`, for adding to and subtracting from something.
#[inline(always)]
pub(super) unsafe fn multiply_centred<P: Constants>(x: Columns, w: &Constant) -> Columns {
    // SAFETY: register operations only.
    unsafe { multiply::<P>(x, w, splat(&P::MINUS_5P)) }
}

/// Columns 5 to 9 of a product, without what columns 0 to 4 carry: 25 multiply-adds.
#[inline(always)]
unsafe fn high_product(x: Columns, y: Columns) -> Columns {
    // SAFETY: register operations only.
    unsafe {
        let [mut c5, mut c6, mut c7, mut c8, mut c9] = zero();
        high!(c5, x[0], y[4]; c6, x[1], y[4]; c7, x[2], y[4]; c8, x[3], y[4]; c9, x[4], y[4];);
        low!(c5, x[1], y[4]; c6, x[2], y[4]; c7, x[3], y[4]; c8, x[4], y[4];);
        high!(c5, x[1], y[3]; c6, x[2], y[3]; c7, x[3], y[3]; c8, x[4], y[3];);
        low!(c5, x[2], y[3]; c6, x[3], y[3]; c7, x[4], y[3];);
        high!(c5, x[2], y[2]; c6, x[3], y[2]; c7, x[4], y[2];);
        low!(c5, x[3], y[2]; c6, x[4], y[2];);
        high!(c5, x[3], y[1]; c6, x[4], y[1];);
        low!(c5, x[4], y[1];);
        high!(c5, x[4], y[0];);
        [c5, c6, c7, c8, c9]
    }
}

/// Adds columns 0 to 4 of a product: 25 multiply-adds.
#[inline(always)]
unsafe fn add_low_product(start: Columns, x: Columns, y: Columns) -> Columns {
    // SAFETY: register operations only.
    unsafe {
        let [mut c0, mut c1, mut c2, mut c3, mut c4] = start;
        low!(c0, x[0], y[0]; c1, x[0], y[1]; c2, x[0], y[2]; c3, x[0], y[3]; c4, x[0], y[4];);
        high!(c1, x[0], y[0]; c2, x[0], y[1]; c3, x[0], y[2]; c4, x[0], y[3];);
        low!(c1, x[1], y[0]; c2, x[1], y[1]; c3, x[1], y[2]; c4, x[1], y[3];);
        high!(c2, x[1], y[0]; c3, x[1], y[1]; c4, x[1], y[2];);
        low!(c2, x[2], y[0]; c3, x[2], y[1]; c4, x[2], y[2];);
        high!(c3, x[2], y[0]; c4, x[2], y[1];);
        low!(c3, x[3], y[0]; c4, x[3], y[1];);
        high!(c4, x[3], y[0];);
        low!(c4, x[4], y[0];);
        [c0, c1, c2, c3, c4]
    }
}

/// [`carry`] for columns that are not negative.
#[inline(always)]
unsafe fn carry_unsigned(a: Columns) -> Columns {
    // SAFETY: register operations only.
    unsafe {
        let a1 = _mm512_add_epi64(a[1], _mm512_srli_epi64::<LIMB_BITS>(a[0]));
        let a2 = _mm512_add_epi64(a[2], _mm512_srli_epi64::<LIMB_BITS>(a1));
        let a3 = _mm512_add_epi64(a[3], _mm512_srli_epi64::<LIMB_BITS>(a2));
        let a4 = _mm512_add_epi64(a[4], _mm512_srli_epi64::<LIMB_BITS>(a3));
        [a[0], a1, a2, a3, a4]
    }
}

/// The product of carried numbers by 2⁻²⁶⁰, plus p, in columns that are not negative: for x below
/// 2²⁶⁰ and y below 10·p it is in `p..12·p`. Montgomery's method, for factors that are not known
/// beforehand: 105 multiply-adds and 10 other instructions.
#[inline(always)]
pub(super) unsafe fn multiply_montgomery<P: Constants>(x: Columns, y: Columns) -> Columns {
    // SAFETY: register operations only.
    unsafe {
        let p = splat(&P::P);
        // p enters with the columns of weight 2²⁶⁰ and up.
        let t = montgomery_row::<P>(zero(), p[0], x[0], y);
        let t = montgomery_row::<P>(t, p[1], x[1], y);
        let t = montgomery_row::<P>(t, p[2], x[2], y);
        let t = montgomery_row::<P>(t, p[3], x[3], y);
        montgomery_row::<P>(t, p[4], x[4], y)
    }
}

/// Adds `digit·y` and the multiple of p that makes the lowest column 0 mod 2⁵², and divides by 2⁵²;
/// `next` is the column that enters at the top.
#[inline(always)]
unsafe fn montgomery_row<P: Constants>(
    t: Columns,
    next: __m512i,
    digit: __m512i,
    y: Columns,
) -> Columns {
    // SAFETY: register operations only.
    unsafe {
        let inverse = _mm512_set1_epi64(P::P_INVERSE as i64);
        let p = splat(&P::P);
        let [mut t0, mut t1, mut t2, mut t3, mut t4] = t;
        let mut t5 = next;
        low!(t0, digit, y[0]; t1, digit, y[1]; t2, digit, y[2]; t3, digit, y[3]; t4, digit, y[4];);
        let quotient = _mm512_madd52lo_epu64(_mm512_setzero_si512(), t0, inverse);
        high!(t1, digit, y[0]; t2, digit, y[1]; t3, digit, y[2]; t4, digit, y[3]; t5, digit, y[4];);
        low!(t0, quotient, p[0]; t1, quotient, p[1]; t2, quotient, p[2]; t3, quotient, p[3];
            t4, quotient, p[4];);
        high!(t1, quotient, p[0]; t2, quotient, p[1]; t3, quotient, p[2]; t4, quotient, p[3];
            t5, quotient, p[4];);
        t1 = _mm512_add_epi64(t1, _mm512_srli_epi64::<LIMB_BITS>(t0));
        [t1, t2, t3, t4, t5]
    }
}

/// `a − q·p` where q estimates the quotient of a by p: for a in `p/2..30·p` the result is in
/// `−p/100..2·p`, and not negative if no column of `a` is.
///
/// The estimate is from the two top columns and ⌊2²⁶⁰/p⌋: up to 30/35 too small by the latter.
/// 12 instructions.
#[inline(always)]
pub(super) unsafe fn reduce<P: Constants>(a: Columns) -> Columns {
    // SAFETY: register operations only.
    unsafe {
        let top = _mm512_add_epi64(a[4], _mm512_srai_epi64::<LIMB_BITS>(a[3]));
        let factor = _mm512_set1_epi64(P::QUOTIENT as i64);
        let quotient = _mm512_madd52hi_epu64(_mm512_setzero_si512(), top, factor);
        subtract_multiple::<P>(a, quotient)
    }
}

/// `a − quotient·p`: 9 multiply-adds.
#[inline(always)]
unsafe fn subtract_multiple<P: Constants>(a: Columns, quotient: __m512i) -> Columns {
    // SAFETY: register operations only.
    unsafe {
        let p = splat(&P::MINUS_P);
        let [mut c0, mut c1, mut c2, mut c3, mut c4] = a;
        low!(c0, quotient, p[0]; c1, quotient, p[1]; c2, quotient, p[2];
            c3, quotient, p[3]; c4, quotient, p[4];);
        high!(c1, quotient, p[0]; c2, quotient, p[1]; c3, quotient, p[2]; c4, quotient, p[3];);
        [c0, c1, c2, c3, c4]
    }
}

/// The canonical limbs of any number below 2²⁶⁰: about 60 instructions.
///
/// The quotient from the top limb and ⌊2³⁰⁰/p⌋ is right or one too small.
#[inline(always)]
pub(super) unsafe fn canonical<P: Constants>(a: Columns) -> Columns {
    // SAFETY: register operations only.
    unsafe {
        let a = mask(carry(a));
        let factor = _mm512_set1_epi64(P::FINE_QUOTIENT as i64);
        let quotient = _mm512_madd52hi_epu64(_mm512_setzero_si512(), a[4], factor);
        let once = subtract_multiple::<P>(a, _mm512_srli_epi64::<40>(quotient));
        let less = normalize(add(once, splat(&P::MINUS_P)));
        let once = normalize(once);
        // `once − p` modulo 2²⁶⁰ has its top bit set where it is negative.
        let negative = _mm512_test_epi64_mask(less[4], _mm512_set1_epi64(1 << 51));
        columns!(I => _mm512_mask_blend_epi64(negative, less[I], once[I]))
    }
}
