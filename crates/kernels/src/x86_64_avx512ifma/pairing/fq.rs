//! Arithmetic of a pairing in its prime field: sums of products that are reduced once.
//!
//! Additions and subtractions are limb by limb and leave *raw* limbs, signed and of at most 2⁵⁸ in
//! magnitude. A factor of a product must be carried; [`Fp::settle`] makes it so.

use std::arch::x86_64::*;
use std::marker::PhantomData;

use super::super::field::Fp;
use super::super::modulus::{LIMB_BITS, Modulus};

/// Limbs of a product of two values of eight limbs; of five limbs' products the first ten count.
const WIDE: usize = 16;

/// Eight sums of products, not reduced: raw limbs.
pub(super) struct Wide<P, const L: usize, const N: usize> {
    limbs: [__m512i; WIDE],
    modulus: PhantomData<P>,
}

/// # Safety
///
/// Every function: the instructions of this back end.
impl<P: Modulus<L, N>, const L: usize, const N: usize> Fp<P, L, N> {
    /// `a + b`, raw.
    #[inline(always)]
    pub(super) unsafe fn plus(self, b: Self) -> Self {
        // SAFETY: as the caller promises.
        unsafe { Self::add_raw(self, b) }
    }

    /// `a + K·p − b`, raw.
    #[inline(always)]
    pub(super) unsafe fn minus<const K: u64>(self, b: Self) -> Self {
        const { assert!(K < 32) };
        let mut limbs = self.limbs;
        for (i, limb) in limbs.iter_mut().enumerate() {
            // SAFETY: register operations only.
            unsafe {
                let shifted = _mm512_add_epi64(*limb, _mm512_set1_epi64((K * P::P[i]) as i64));
                *limb = _mm512_sub_epi64(shifted, b.limbs[i]);
            }
        }
        Self::from_limbs(limbs)
    }

    /// `2^SHIFT` times the value, raw.
    #[inline(always)]
    pub(super) unsafe fn shifted<const SHIFT: u32>(self) -> Self {
        let mut limbs = self.limbs;
        for limb in &mut limbs {
            // SAFETY: register operations only.
            *limb = unsafe { _mm512_slli_epi64::<SHIFT>(*limb) };
        }
        Self::from_limbs(limbs)
    }

    /// Reduces raw limbs of a value in `0..32·p` to a carried value below `1.4·p`, equal mod p. With
    /// eight limbs, any value that they hold is allowed.
    ///
    /// For values below `8·p` [`reduce`](Self::reduce) is cheaper. The top limb, minus the most that the limbs
    /// below may borrow from it, estimates the quotient by p from below: with five limbs at most a fraction of
    /// 1/84 of it is lost, and one by rounding down.
    #[inline(always)]
    pub(super) unsafe fn settle(self) -> Self {
        // SAFETY: register operations only.
        unsafe {
            let zero = _mm512_setzero_si512();
            let factor = _mm512_set1_epi64(P::QUOTIENT_FACTOR as i64);
            let top = _mm512_sub_epi64(self.limbs[L - 1], _mm512_set1_epi64(64));
            let top = _mm512_max_epi64(top, zero);
            let quotient = _mm512_madd52hi_epu64(zero, top, factor);
            let mut limbs = self.limbs;
            for i in 0..L {
                let p = _mm512_set1_epi64(P::P[i] as i64);
                let low = _mm512_madd52lo_epu64(zero, quotient, p);
                limbs[i] = _mm512_sub_epi64(limbs[i], low);
                if i + 1 < L {
                    let high = _mm512_madd52hi_epu64(zero, quotient, p);
                    limbs[i + 1] = _mm512_sub_epi64(limbs[i + 1], high);
                }
            }
            Self::from_limbs(limbs).carry()
        }
    }

    /// Permutes the lanes: lane i of the result is lane `from[i]` of the input.
    #[inline(always)]
    pub(super) unsafe fn permuted(self, from: __m512i) -> Self {
        let mut limbs = self.limbs;
        for limb in &mut limbs {
            // SAFETY: register operations only.
            *limb = unsafe { _mm512_permutexvar_epi64(from, *limb) };
        }
        Self::from_limbs(limbs)
    }

    /// Lane i is lane `from[i]` of `self`, or lane `from[i] − 8` of `other`.
    #[inline(always)]
    pub(super) unsafe fn permuted_with(self, other: Self, from: __m512i) -> Self {
        let mut limbs = self.limbs;
        for (limb, other) in limbs.iter_mut().zip(other.limbs) {
            // SAFETY: register operations only.
            *limb = unsafe { _mm512_permutex2var_epi64(*limb, from, other) };
        }
        Self::from_limbs(limbs)
    }
}

// === impl Wide ===

impl<P, const L: usize, const N: usize> Clone for Wide<P, L, N> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<P, const L: usize, const N: usize> Copy for Wide<P, L, N> {}

/// # Safety
///
/// Every function: the instructions of this back end.
impl<P: Modulus<L, N>, const L: usize, const N: usize> Wide<P, L, N> {
    #[inline(always)]
    pub(super) unsafe fn zero() -> Self {
        Self {
            // SAFETY: register operations only.
            limbs: [unsafe { _mm512_setzero_si512() }; WIDE],
            modulus: PhantomData,
        }
    }

    /// Adds `a·b`, both carried: 2·L² multiply-adds.
    ///
    /// A limb gathers at most 2·L terms below 2⁵², so eight products stay below 2⁵⁹.
    #[inline(always)]
    pub(super) unsafe fn add_product(mut self, a: &Fp<P, L, N>, b: &Fp<P, L, N>) -> Self {
        const { assert!(L == 5 || L == 8) };
        // SAFETY: as the caller promises. Written out: rolled up, the rows would pass their sums
        // through memory.
        unsafe {
            self.limbs = Self::row::<0>(self.limbs, a.limbs[0], b);
            self.limbs = Self::row::<1>(self.limbs, a.limbs[1], b);
            self.limbs = Self::row::<2>(self.limbs, a.limbs[2], b);
            self.limbs = Self::row::<3>(self.limbs, a.limbs[3], b);
            self.limbs = Self::row::<4>(self.limbs, a.limbs[4], b);
            if L == 8 {
                self.limbs = Self::row::<5>(self.limbs, a.limbs[5], b);
                self.limbs = Self::row::<6>(self.limbs, a.limbs[6], b);
                self.limbs = Self::row::<7>(self.limbs, a.limbs[7], b);
            }
        }
        self
    }

    /// Adds `digit·b·2^(52·I)`.
    #[inline(always)]
    unsafe fn row<const I: usize>(
        mut t: [__m512i; WIDE],
        digit: __m512i,
        b: &Fp<P, L, N>,
    ) -> [__m512i; WIDE] {
        // SAFETY: register operations only. All low halves before all high ones: a limb's next
        // term comes when its last one is there.
        unsafe {
            for j in 0..L {
                t[I + j] = _mm512_madd52lo_epu64(t[I + j], digit, b.limbs[j]);
            }
            for j in 0..L {
                t[I + j + 1] = _mm512_madd52hi_epu64(t[I + j + 1], digit, b.limbs[j]);
            }
        }
        t
    }

    #[inline(always)]
    pub(super) unsafe fn plus(mut self, b: &Self) -> Self {
        for i in 0..2 * L {
            // SAFETY: register operations only.
            self.limbs[i] = unsafe { _mm512_add_epi64(self.limbs[i], b.limbs[i]) };
        }
        self
    }

    #[inline(always)]
    pub(super) unsafe fn minus(mut self, b: &Self) -> Self {
        for i in 0..2 * L {
            // SAFETY: register operations only.
            self.limbs[i] = unsafe { _mm512_sub_epi64(self.limbs[i], b.limbs[i]) };
        }
        self
    }

    /// The Montgomery forms `t/R + K·p` and `s/R` of two sums, carried; they must not be negative.
    ///
    /// Less than `(K + 1)·p + t/R` and `p + s/R`. Twice 2·L² + L multiply-adds, limb by limb in
    /// turn: a core that waits for the one goes on with the other.
    #[inline(always)]
    pub(super) unsafe fn reduced_two<const K: u64>(t: Self, s: Self) -> [Fp<P, L, N>; 2] {
        // SAFETY: as the caller promises.
        unsafe {
            let (mut t, mut s) = (t.limbs, s.limbs);
            macro_rules! fold {
                ($($i:literal)*) => {$(
                    t = Self::fold::<$i>(t);
                    s = Self::fold::<$i>(s);
                )*};
            }
            fold!(0 1 2 3 4);
            if L == 8 {
                fold!(5 6 7);
            }
            let mut first = [_mm512_setzero_si512(); L];
            let mut second = first;
            for i in 0..L {
                first[i] = _mm512_add_epi64(t[L + i], _mm512_set1_epi64((K * P::P[i]) as i64));
                second[i] = s[L + i];
            }
            [
                Fp::from_limbs(first).carry(),
                Fp::from_limbs(second).carry(),
            ]
        }
    }

    /// Makes limb I zero mod 2⁵² by a multiple of p, and carries it to the next.
    #[inline(always)]
    unsafe fn fold<const I: usize>(mut t: [__m512i; WIDE]) -> [__m512i; WIDE] {
        // SAFETY: register operations only.
        unsafe {
            let zero = _mm512_setzero_si512();
            let inverse = _mm512_set1_epi64(P::P_INVERSE as i64);
            // The low 52 bits of a signed limb are its value mod 2⁵², too.
            let quotient = _mm512_madd52lo_epu64(zero, t[I], inverse);
            for j in 0..L {
                let p = _mm512_set1_epi64(P::P[j] as i64);
                t[I + j] = _mm512_madd52lo_epu64(t[I + j], quotient, p);
            }
            for j in 0..L {
                let p = _mm512_set1_epi64(P::P[j] as i64);
                t[I + j + 1] = _mm512_madd52hi_epu64(t[I + j + 1], quotient, p);
            }
            t[I + 1] = _mm512_add_epi64(t[I + 1], _mm512_srai_epi64::<LIMB_BITS>(t[I]));
        }
        t
    }
}
