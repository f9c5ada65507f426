//! Eight elements of a prime field, in Montgomery form with radix `R = 2^(52·L)`.
//!
//! A value is *carried* when every limb is below 2⁵²; the value itself may exceed p. Each operation states
//! the ranges of its inputs and outputs in multiples of p. Factors of IFMA must be carried: it reads the
//! low 52 bits of a lane.

use std::arch::x86_64::*;
use std::marker::PhantomData;

use super::modulus::{LIMB_BITS, LIMB_MASK, Modulus, Scalar, words};

/// An array of `L` limbs from an expression of their index.
///
/// A loop, not `std::array::from_fn`: an intrinsic is not inlined into a closure, which does not
/// have the instructions enabled.
macro_rules! each_limb {
    ($i:ident => $limb:expr) => {{
        let mut limbs = [_mm512_setzero_si512(); L];
        for $i in 0..L {
            limbs[$i] = $limb;
        }
        limbs
    }};
}

/// Eight elements of the field with modulus `P`: limb i of all eight in `limbs[i]`.
#[repr(transparent)]
pub(crate) struct Fp<P, const L: usize, const N: usize> {
    pub(crate) limbs: [__m512i; L],
    modulus: PhantomData<P>,
}

// === impl Fp ===

impl<P, const L: usize, const N: usize> Clone for Fp<P, L, N> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<P, const L: usize, const N: usize> Copy for Fp<P, L, N> {}

/// # Safety
///
/// Every function: the instructions of this back end.
impl<P: Modulus<L, N>, const L: usize, const N: usize> Fp<P, L, N> {
    #[inline(always)]
    pub(crate) const fn from_limbs(limbs: [__m512i; L]) -> Self {
        Self {
            limbs,
            modulus: PhantomData,
        }
    }

    /// The same carried limbs in every lane.
    #[inline(always)]
    pub(crate) unsafe fn splat_limbs(limbs: &[u64; L]) -> Self {
        // SAFETY: register operations only.
        unsafe { Self::from_limbs(each_limb!(i => _mm512_set1_epi64(limbs[i] as i64))) }
    }

    #[inline(always)]
    pub(crate) unsafe fn zero_limbs() -> Self {
        // SAFETY: register operations only.
        Self::from_limbs([unsafe { _mm512_setzero_si512() }; L])
    }

    /// Limb i of `k·p` in every lane.
    #[inline(always)]
    unsafe fn multiple(k: usize, i: usize) -> __m512i {
        // SAFETY: register operations only.
        unsafe { _mm512_set1_epi64(P::MULTIPLES[i][k] as i64) }
    }

    /// The Montgomery product `a·b/R`, carried.
    ///
    /// Takes carried `a < α·p`, `b < β·p`; gives less than `(1 + αβ·p/R)·p`. p/R is below 1/35 for
    /// all moduli of five limbs and below 2⁻³⁵ for those of eight.
    ///
    /// 4·L² + L multiply-adds (105 or 264), of which a core starts one or two a cycle. A row's
    /// quotient digit depends on the row before it, so one product alone is bound by latency:
    /// callers keep two or more in flight.
    #[inline(always)]
    pub(crate) unsafe fn multiply(a: Self, b: Self) -> Self {
        // SAFETY: as the caller promises.
        unsafe {
            // Written out: rolled up, the rows would pass their sums through memory.
            let t = [_mm512_setzero_si512(); L];
            let t = Self::row(t, a.limbs[0], &b);
            let t = Self::row(t, a.limbs[1], &b);
            let t = Self::row(t, a.limbs[2], &b);
            let t = Self::row(t, a.limbs[3], &b);
            let mut t = Self::row(t, a.limbs[4], &b);
            if L == 8 {
                t = Self::row(t, a.limbs[5], &b);
                t = Self::row(t, a.limbs[6], &b);
                t = Self::row(t, a.limbs[7], &b);
            }
            // A limb gathered at most 4·L terms below 2^52: no lane overflowed.
            Self::from_limbs(t).carry()
        }
    }

    /// Two products, as [`multiply`](Self::multiply) has them, row by row in turn: a core that
    /// waits for the one goes on with the other.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
    pub(crate) unsafe fn multiply_two(a: [&Self; 2], b: [&Self; 2]) -> [Self; 2] {
        // SAFETY: as the caller promises.
        unsafe {
            let mut t = [[_mm512_setzero_si512(); L]; 2];
            macro_rules! rows {
                ($($i:literal)*) => {$(
                    t[0] = Self::row(t[0], a[0].limbs[$i], b[0]);
                    t[1] = Self::row(t[1], a[1].limbs[$i], b[1]);
                )*};
            }
            rows!(0 1 2 3 4);
            if L == 8 {
                let last = L - 3;
                t[0] = Self::row(t[0], a[0].limbs[last], b[0]);
                t[1] = Self::row(t[1], a[1].limbs[last], b[1]);
                t[0] = Self::row(t[0], a[0].limbs[last + 1], b[0]);
                t[1] = Self::row(t[1], a[1].limbs[last + 1], b[1]);
                t[0] = Self::row(t[0], a[0].limbs[last + 2], b[0]);
                t[1] = Self::row(t[1], a[1].limbs[last + 2], b[1]);
            }
            [
                Self::from_limbs(t[0]).carry(),
                Self::from_limbs(t[1]).carry(),
            ]
        }
    }

    /// `(t + digit·b + q·p) / 2^52` with the q that makes it whole.
    #[inline(always)]
    unsafe fn row(mut t: [__m512i; L], digit: __m512i, b: &Self) -> [__m512i; L] {
        const { assert!(L == 5 || L == 8) };
        // SAFETY: register operations only.
        unsafe {
            let zero = _mm512_setzero_si512();
            let inverse = _mm512_set1_epi64(P::P_INVERSE as i64);
            for (t, b) in t.iter_mut().zip(&b.limbs) {
                *t = _mm512_madd52lo_epu64(*t, digit, *b);
            }
            let quotient = _mm512_madd52lo_epu64(zero, t[0], inverse);
            for (j, t) in t.iter_mut().enumerate() {
                *t = _mm512_madd52lo_epu64(*t, quotient, Self::multiple(1, j));
            }
            // The lowest limb is now 0 mod 2^52: it is dropped, except for its carry.
            let carry = _mm512_srli_epi64::<LIMB_BITS>(t[0]);
            let mut next = [zero; L];
            next[..L - 1].copy_from_slice(&t[1..]);
            next[0] = _mm512_add_epi64(next[0], carry);
            for (next, b) in next.iter_mut().zip(&b.limbs) {
                *next = _mm512_madd52hi_epu64(*next, digit, *b);
            }
            for (j, next) in next.iter_mut().enumerate() {
                *next = _mm512_madd52hi_epu64(*next, quotient, Self::multiple(1, j));
            }
            next
        }
    }

    /// Like [`multiply`](Self::multiply), not inlined: for code where a call costs little of the
    /// whole, or the product occurs often.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
    pub(crate) unsafe fn multiply_by_call(a: &Self, b: &Self) -> Self {
        // SAFETY: as the caller promises.
        unsafe { Self::multiply(*a, *b) }
    }

    /// Carries signed limbs; the value must be in `0..2^(52·L)`.
    #[inline(always)]
    pub(crate) unsafe fn carry(self) -> Self {
        // SAFETY: register operations only.
        unsafe {
            let mask = _mm512_set1_epi64(LIMB_MASK as i64);
            let mut out = self.limbs;
            for i in 0..L - 1 {
                let carry = _mm512_srai_epi64::<LIMB_BITS>(out[i]);
                out[i] = _mm512_and_si512(out[i], mask);
                out[i + 1] = _mm512_add_epi64(out[i + 1], carry);
            }
            Self::from_limbs(out)
        }
    }

    /// `a + b` limb by limb.
    #[inline(always)]
    pub(crate) unsafe fn add_raw(a: Self, b: Self) -> Self {
        // SAFETY: register operations only.
        unsafe { Self::from_limbs(each_limb!(i => _mm512_add_epi64(a.limbs[i], b.limbs[i]))) }
    }

    /// `a + K·p − b` limb by limb, for `b ≤ K·p`, K < 8.
    #[inline(always)]
    pub(crate) unsafe fn sub_raw<const K: usize>(a: Self, b: Self) -> Self {
        // SAFETY: register operations only.
        unsafe {
            Self::from_limbs(each_limb!(i => {
                let shifted = _mm512_add_epi64(a.limbs[i], Self::multiple(K, i));
                _mm512_sub_epi64(shifted, b.limbs[i])
            }))
        }
    }

    /// `a + K·p − b` limb by limb, `a + K·p + b` in `lanes`.
    #[inline(always)]
    pub(crate) unsafe fn sub_signed_raw<const K: usize>(a: Self, b: Self, lanes: __mmask8) -> Self {
        // SAFETY: register operations only.
        unsafe {
            Self::from_limbs(each_limb!(i => {
                let shifted = _mm512_add_epi64(a.limbs[i], Self::multiple(K, i));
                let difference = _mm512_sub_epi64(shifted, b.limbs[i]);
                _mm512_mask_add_epi64(difference, lanes, shifted, b.limbs[i])
            }))
        }
    }

    /// Reduces signed limbs, of at most 2⁵⁵ in magnitude, of a value below `8·p` to a carried value
    /// below `1.1·p`, equal mod p.
    ///
    /// The top limb, minus the most that the limbs below may borrow from it, estimates the quotient by p from
    /// below: at most a fraction of 1/64 of it is lost with five limbs, 2⁻⁹ with eight. The multiple comes from a
    /// table by a shuffle of lanes.
    #[inline(always)]
    pub(crate) unsafe fn reduce(self) -> Self {
        // SAFETY: register operations, and reads of constants.
        unsafe {
            let factor = _mm512_set1_epi64(P::QUOTIENT_FACTOR as i64);
            let top = _mm512_sub_epi64(self.limbs[L - 1], _mm512_set1_epi64(8));
            let top = _mm512_max_epi64(top, _mm512_setzero_si512());
            let quotient = _mm512_madd52hi_epu64(_mm512_setzero_si512(), top, factor);
            Self::from_limbs(each_limb!(i => {
                let multiples = _mm512_loadu_si512(P::MULTIPLES[i].as_ptr().cast());
                _mm512_sub_epi64(self.limbs[i], _mm512_permutexvar_epi64(quotient, multiples))
            }))
            .carry()
        }
    }

    /// Like [`reduce`](Self::reduce), not inlined.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
    pub(crate) unsafe fn reduce_by_call(value: &Self) -> Self {
        // SAFETY: as the caller promises.
        unsafe { value.reduce() }
    }

    /// The canonical value, below p, of a carried one below `2·p`.
    #[inline(always)]
    pub(crate) unsafe fn canonical(self) -> Self {
        // SAFETY: register operations only.
        unsafe {
            let mask = _mm512_set1_epi64(LIMB_MASK as i64);
            let mut difference = self.limbs;
            let mut borrow = _mm512_setzero_si512();
            for (i, limb) in difference.iter_mut().enumerate() {
                let value = _mm512_add_epi64(_mm512_sub_epi64(*limb, Self::multiple(1, i)), borrow);
                borrow = _mm512_srai_epi64::<LIMB_BITS>(value);
                *limb = _mm512_and_si512(value, mask);
            }
            // A borrow out of the top: the value was below p.
            let below = _mm512_movepi64_mask(borrow);
            Self::from_limbs(each_limb!(i => {
                _mm512_mask_blend_epi64(below, difference[i], self.limbs[i])
            }))
        }
    }

    /// The lanes whose limbs are all zero, in which a canonical value is zero.
    #[inline(always)]
    pub(crate) unsafe fn all_limbs_zero(self) -> __mmask8 {
        // SAFETY: register operations only.
        unsafe {
            let mut any = self.limbs[0];
            for limb in &self.limbs[1..] {
                any = _mm512_or_si512(any, *limb);
            }
            _mm512_testn_epi64_mask(any, any)
        }
    }

    /// `b` in `lanes`, `a` elsewhere.
    #[inline(always)]
    pub(crate) unsafe fn select_limbs(lanes: __mmask8, a: Self, b: Self) -> Self {
        // SAFETY: register operations only.
        unsafe {
            Self::from_limbs(each_limb!(i => {
                _mm512_mask_blend_epi64(lanes, a.limbs[i], b.limbs[i])
            }))
        }
    }

    /// The eight elements as arkworks', of a carried value below `8·p`.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
    pub(crate) unsafe fn to_ark_lanes(self) -> [Scalar<P, N>; 8] {
        // SAFETY: as the caller promises.
        unsafe {
            let value = Self::multiply_by_call(&self, &Self::splat_limbs(&P::TO_ARK)).canonical();
            let mut lanes = [[0u64; 8]; L];
            for (lanes, limb) in lanes.iter_mut().zip(value.limbs) {
                _mm512_storeu_si512(lanes.as_mut_ptr().cast(), limb);
            }
            std::array::from_fn(|lane| {
                let cut: [u64; L] = std::array::from_fn(|i| lanes[i][lane]);
                // Raw Montgomery limbs, canonical.
                Scalar::<P, N>::new_unchecked(ark_ff::BigInt(words(&cut)))
            })
        }
    }
}
