//! The field operations that the arithmetic of points needs, and the layout of elements in memory.

use std::arch::x86_64::*;

use super::field::Fp;
use super::modulus::{LIMB_MASK, Modulus, Scalar, words};
use super::transpose::{load_8x4, store_8x4, transpose_8x8};
use crate::msm::words::subtract;
use crate::portable::inversion::Invertible;

/// Eight elements of a prime field or of a quadratic extension.
///
/// Three ranges, in multiples of p and for each coordinate of an extension: *tight*, below 1.3;
/// *stored*, at most 2; *loose*, below 6. Everything is carried.
///
/// # Safety
///
/// Every function: the instructions of this back end.
pub(crate) trait VectorField: Copy + Send + Sync + 'static {
    /// One element in arkworks' representation.
    type Ark: Invertible;
    /// 64-bit words of a stored element.
    const WORDS: usize;

    unsafe fn zero() -> Self;
    unsafe fn one() -> Self;
    unsafe fn splat(value: &Self::Ark) -> Self;
    /// Tight, of canonical elements as arkworks keeps them.
    unsafe fn load_ark(places: [*const Self::Ark; 8]) -> Self;
    /// Converts a loose value.
    unsafe fn to_ark(self) -> [Self::Ark; 8];
    /// Loads `WORDS` words from each place: stored.
    unsafe fn load(places: [*const u64; 8]) -> Self;
    /// Stores `WORDS` words at each place, of a stored value.
    unsafe fn store(self, places: [*mut u64; 8]);
    /// Replaces one stored element by its negative: stored.
    fn negate_stored(words: &mut [u64]);

    /// The product of loose values, one of which is tight or both below 3.4: tight.
    unsafe fn mul(a: Self, b: Self) -> Self;
    /// Like [`mul`](Self::mul), compiled once and called.
    unsafe fn mul_by_call(a: Self, b: Self) -> Self;
    /// The square of a tight value: tight.
    unsafe fn square(a: Self) -> Self;
    /// `a + b` of stored values: tight.
    unsafe fn add_reduced(a: Self, b: Self) -> Self;
    /// `a − b` of tight or stored values: loose; below 3.4 if `a` is tight.
    unsafe fn sub(a: Self, b: Self) -> Self;
    /// `a − b − c`, `a` below 4, `b` and `c` stored: tight.
    unsafe fn sub_two_reduced(a: Self, b: Self, c: Self) -> Self;
    /// `a − b`, `a + b` in `lanes`, of stored values: loose.
    unsafe fn sub_signed(a: Self, b: Self, lanes: __mmask8) -> Self;
    /// `a − b`, `a + b` in `lanes`, of stored values: tight.
    unsafe fn sub_signed_reduced(a: Self, b: Self, lanes: __mmask8) -> Self;
    /// The lanes where a loose value is zero.
    unsafe fn zero_lanes(self) -> __mmask8;
    /// `b` in `lanes`, else `a`.
    unsafe fn select(lanes: __mmask8, a: Self, b: Self) -> Self;
}

/// Loads and stores that differ between moduli of five and of eight limbs.
pub(crate) trait Layout<P, const N: usize>: Copy {
    const WORDS: usize;
    /// # Safety
    ///
    /// The instructions of this back end; each place is good for reading `WORDS` words.
    unsafe fn load_words(places: [*const u64; 8]) -> Self;
    /// # Safety
    ///
    /// The instructions of this back end; each place is good for writing `WORDS` words.
    unsafe fn store_words(self, places: [*mut u64; 8]);
    /// Reads N words at each place and cuts them into limbs.
    ///
    /// # Safety
    ///
    /// The instructions of this back end; each place is good for reading `N` words.
    unsafe fn load_cut(places: [*const u64; 8]) -> Self;
    /// Replaces a stored element by `2·p` less it.
    fn negate_words(words: &mut [u64]);
}

/// Eight limbs are stored unchanged: one cache line.
impl<P: Modulus<8, 6>> Layout<P, 6> for Fp<P, 8, 6> {
    const WORDS: usize = 8;

    #[inline(always)]
    unsafe fn load_words(places: [*const u64; 8]) -> Self {
        // SAFETY: 64 bytes at each place, as the caller promises; any alignment.
        unsafe {
            let mut rows = [_mm512_setzero_si512(); 8];
            for (row, place) in rows.iter_mut().zip(places) {
                *row = _mm512_loadu_si512(place.cast());
            }
            Self::from_limbs(transpose_8x8(rows))
        }
    }

    #[inline(always)]
    unsafe fn store_words(self, places: [*mut u64; 8]) {
        // SAFETY: 64 bytes at each place, as the caller promises; any alignment.
        unsafe {
            for (row, place) in transpose_8x8(self.limbs).into_iter().zip(places) {
                _mm512_storeu_si512(place.cast(), row);
            }
        }
    }

    #[inline(always)]
    unsafe fn load_cut(places: [*const u64; 8]) -> Self {
        // SAFETY: the mask keeps the loads within 6 words at each place; any alignment.
        unsafe {
            let mut rows = [_mm512_setzero_si512(); 8];
            for (row, place) in rows.iter_mut().zip(places) {
                *row = _mm512_maskz_loadu_epi64(0b0011_1111, place.cast());
            }
            let [w0, w1, w2, w3, w4, w5, ..] = transpose_8x8(rows);
            let mask = _mm512_set1_epi64(LIMB_MASK as i64);
            Self::from_limbs([
                _mm512_and_si512(w0, mask),
                _mm512_and_si512(_mm512_shrdi_epi64::<52>(w0, w1), mask),
                _mm512_and_si512(_mm512_shrdi_epi64::<40>(w1, w2), mask),
                _mm512_and_si512(_mm512_shrdi_epi64::<28>(w2, w3), mask),
                _mm512_and_si512(_mm512_shrdi_epi64::<16>(w3, w4), mask),
                _mm512_and_si512(_mm512_srli_epi64::<4>(w4), mask),
                _mm512_and_si512(_mm512_shrdi_epi64::<56>(w4, w5), mask),
                _mm512_srli_epi64::<44>(w5),
            ])
        }
    }

    fn negate_words(words: &mut [u64]) {
        let mut borrow = 0i64;
        for (word, multiples) in words.iter_mut().zip(P::MULTIPLES) {
            let limb = multiples[2] as i64 - *word as i64 + borrow;
            *word = limb as u64 & LIMB_MASK;
            borrow = limb >> 52;
        }
    }
}

/// Five limbs are packed to 256 bits, so that a point of two coordinates is one cache line. What is
/// packed is at most `2·p < 2²⁵⁶`.
impl<P: Modulus<5, 4>> Layout<P, 4> for Fp<P, 5, 4> {
    const WORDS: usize = 4;

    #[inline(always)]
    unsafe fn load_words(places: [*const u64; 8]) -> Self {
        // SAFETY: as the caller promises.
        unsafe { Self::from_words(load_8x4(places)) }
    }

    #[inline(always)]
    unsafe fn store_words(self, places: [*mut u64; 8]) {
        // SAFETY: as the caller promises.
        unsafe { store_8x4(self.to_words(), places) }
    }

    #[inline(always)]
    unsafe fn load_cut(places: [*const u64; 8]) -> Self {
        // SAFETY: as the caller promises.
        unsafe { Self::load_words(places) }
    }

    fn negate_words(out: &mut [u64]) {
        let mut negated: [u64; 4] = words(&std::array::from_fn::<_, 5, _>(|i| P::MULTIPLES[i][2]));
        subtract(&mut negated, out);
        out.copy_from_slice(&negated);
    }
}

/// # Safety
///
/// Every function: the instructions of this back end.
impl<P: Modulus<5, 4>> Fp<P, 5, 4> {
    /// Cuts 256-bit numbers, word i of all eight in `words[i]`.
    #[inline(always)]
    pub(crate) unsafe fn from_words(words: [__m512i; 4]) -> Self {
        // SAFETY: register operations only.
        unsafe {
            let mask = _mm512_set1_epi64(LIMB_MASK as i64);
            let [w0, w1, w2, w3] = words;
            Self::from_limbs([
                _mm512_and_si512(w0, mask),
                _mm512_and_si512(_mm512_shrdi_epi64::<52>(w0, w1), mask),
                _mm512_and_si512(_mm512_shrdi_epi64::<40>(w1, w2), mask),
                _mm512_and_si512(_mm512_shrdi_epi64::<28>(w2, w3), mask),
                _mm512_srli_epi64::<16>(w3),
            ])
        }
    }

    /// Joins carried limbs of a value below 2²⁵⁶.
    #[inline(always)]
    pub(crate) unsafe fn to_words(self) -> [__m512i; 4] {
        // SAFETY: register operations only.
        unsafe {
            let [l0, l1, l2, l3, l4] = self.limbs;
            [
                _mm512_or_si512(l0, _mm512_slli_epi64::<52>(l1)),
                _mm512_or_si512(_mm512_srli_epi64::<12>(l1), _mm512_slli_epi64::<40>(l2)),
                _mm512_or_si512(_mm512_srli_epi64::<24>(l2), _mm512_slli_epi64::<28>(l3)),
                _mm512_or_si512(_mm512_srli_epi64::<36>(l3), _mm512_slli_epi64::<16>(l4)),
            ]
        }
    }
}

impl<P: Modulus<L, N>, const L: usize, const N: usize> VectorField for Fp<P, L, N>
where
    Self: Layout<P, N>,
{
    type Ark = Scalar<P, N>;
    const WORDS: usize = <Self as Layout<P, N>>::WORDS;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: as the caller promises; so below.
        unsafe { Self::zero_limbs() }
    }

    #[inline(always)]
    unsafe fn one() -> Self {
        // SAFETY: see above.
        unsafe { Self::splat_limbs(&P::ONE) }
    }

    #[inline(always)]
    unsafe fn splat(value: &Self::Ark) -> Self {
        // SAFETY: see above; the places are one and the same element.
        unsafe { Self::load_ark([value; 8]) }
    }

    #[inline(always)]
    unsafe fn load_ark(places: [*const Self::Ark; 8]) -> Self {
        // SAFETY: see above. An arkworks element is N words, `Fp(BigInt([u64; N]), PhantomData)`;
        // the pointer is taken field by field, so no layout is assumed.
        unsafe {
            let raw = Self::load_cut(places.map(|p| (&raw const (*p).0.0).cast()));
            Self::multiply_by_call(&raw, &Self::splat_limbs(&P::FROM_ARK))
        }
    }

    #[inline(always)]
    unsafe fn to_ark(self) -> [Self::Ark; 8] {
        // SAFETY: see above.
        unsafe { self.to_ark_lanes() }
    }

    #[inline(always)]
    unsafe fn load(places: [*const u64; 8]) -> Self {
        // SAFETY: see above.
        unsafe { Self::load_words(places) }
    }

    #[inline(always)]
    unsafe fn store(self, places: [*mut u64; 8]) {
        // SAFETY: see above.
        unsafe { self.store_words(places) }
    }

    fn negate_stored(words: &mut [u64]) {
        Self::negate_words(words);
    }

    #[inline(always)]
    unsafe fn mul(a: Self, b: Self) -> Self {
        // SAFETY: see above.
        unsafe { Self::multiply(a, b) }
    }

    #[inline(always)]
    unsafe fn mul_by_call(a: Self, b: Self) -> Self {
        // SAFETY: see above.
        unsafe { Self::multiply_by_call(&a, &b) }
    }

    #[inline(always)]
    unsafe fn square(a: Self) -> Self {
        // SAFETY: see above.
        unsafe { Self::multiply(a, a) }
    }

    #[inline(always)]
    unsafe fn add_reduced(a: Self, b: Self) -> Self {
        // SAFETY: see above.
        unsafe { Self::reduce_by_call(&Self::add_raw(a, b)) }
    }

    #[inline(always)]
    unsafe fn sub(a: Self, b: Self) -> Self {
        // SAFETY: see above.
        unsafe { Self::sub_raw::<2>(a, b).carry() }
    }

    #[inline(always)]
    unsafe fn sub_two_reduced(a: Self, b: Self, c: Self) -> Self {
        // SAFETY: see above.
        unsafe { Self::sub_raw::<4>(a, Self::add_raw(b, c)).reduce() }
    }

    #[inline(always)]
    unsafe fn sub_signed(a: Self, b: Self, lanes: __mmask8) -> Self {
        // SAFETY: see above.
        unsafe { Self::sub_signed_raw::<2>(a, b, lanes).carry() }
    }

    #[inline(always)]
    unsafe fn sub_signed_reduced(a: Self, b: Self, lanes: __mmask8) -> Self {
        // SAFETY: see above.
        unsafe { Self::sub_signed_raw::<2>(a, b, lanes).reduce() }
    }

    #[inline(always)]
    unsafe fn zero_lanes(self) -> __mmask8 {
        // SAFETY: see above.
        unsafe { Self::reduce_by_call(&self).canonical().all_limbs_zero() }
    }

    #[inline(always)]
    unsafe fn select(lanes: __mmask8, a: Self, b: Self) -> Self {
        // SAFETY: see above.
        unsafe { Self::select_limbs(lanes, a, b) }
    }
}
