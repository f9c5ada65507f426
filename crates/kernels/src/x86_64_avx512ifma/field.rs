//! Eight elements of a prime field, in Montgomery form with radix `R = 2^(52·L)`.
//!
//! A value is *carried* when every limb is below 2⁵²; the value itself may exceed p. Each operation
//! says what it takes and what it gives in multiples of p. What IFMA multiplies must be carried: it
//! reads the low 52 bits of a lane.

use std::arch::x86_64::*;
use std::marker::PhantomData;

use super::modulus::{LIMB_BITS, LIMB_MASK, Modulus, Scalar, limbs, words};
use super::transpose::{load_8x4, store_8x4, transpose_8x8};

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
    pub(crate) unsafe fn splat(limbs: &[u64; L]) -> Self {
        // SAFETY: register operations only.
        Self::from_limbs(std::array::from_fn(|i| unsafe {
            _mm512_set1_epi64(limbs[i] as i64)
        }))
    }

    #[inline(always)]
    pub(crate) unsafe fn zero() -> Self {
        // SAFETY: register operations only.
        Self::from_limbs([unsafe { _mm512_setzero_si512() }; L])
    }

    #[inline(always)]
    pub(crate) unsafe fn one() -> Self {
        // SAFETY: as the caller promises.
        unsafe { Self::splat(&P::ONE) }
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
    pub(crate) unsafe fn mul(a: Self, b: Self) -> Self {
        // SAFETY: register operations only.
        unsafe {
            let zero = _mm512_setzero_si512();
            let inverse = _mm512_set1_epi64(P::P_INVERSE as i64);
            let mut t = [zero; L];
            for i in 0..L {
                let digit = a.limbs[i];
                for (t, b) in t.iter_mut().zip(&b.limbs) {
                    *t = _mm512_madd52lo_epu64(*t, digit, *b);
                }
                let quotient = _mm512_madd52lo_epu64(zero, t[0], inverse);
                for (j, t) in t.iter_mut().enumerate() {
                    *t = _mm512_madd52lo_epu64(*t, quotient, Self::multiple(1, j));
                }
                // The lowest limb is now 0 mod 2^52: drop it, keep what it carries.
                let carry = _mm512_srli_epi64::<LIMB_BITS>(t[0]);
                for j in 1..L {
                    t[j - 1] = t[j];
                }
                t[L - 1] = zero;
                t[0] = _mm512_add_epi64(t[0], carry);
                for (t, b) in t.iter_mut().zip(&b.limbs) {
                    *t = _mm512_madd52hi_epu64(*t, digit, *b);
                }
                for (j, t) in t.iter_mut().enumerate() {
                    *t = _mm512_madd52hi_epu64(*t, quotient, Self::multiple(1, j));
                }
            }
            // A limb gathered at most 4·L terms below 2^52: no lane overflowed.
            Self::from_limbs(t).carry()
        }
    }

    /// As `mul(a, a)`.
    #[inline(always)]
    pub(crate) unsafe fn square(a: Self) -> Self {
        // SAFETY: as the caller promises.
        unsafe { Self::mul(a, a) }
    }

    /// Carries signed limbs; the value must be in `0..2^(52·L)`.
    #[inline(always)]
    unsafe fn carry(self) -> Self {
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

    /// `a + b`, carried, unreduced.
    #[inline(always)]
    pub(crate) unsafe fn add(a: Self, b: Self) -> Self {
        // SAFETY: as the caller promises.
        unsafe { Self::add_raw(a, b).carry() }
    }

    /// `a + b` limb by limb.
    #[inline(always)]
    unsafe fn add_raw(a: Self, b: Self) -> Self {
        // SAFETY: register operations only.
        Self::from_limbs(std::array::from_fn(|i| unsafe {
            _mm512_add_epi64(a.limbs[i], b.limbs[i])
        }))
    }

    /// `a + K·p − b` limb by limb, for `b ≤ K·p`, K < 8.
    #[inline(always)]
    unsafe fn sub_raw<const K: usize>(a: Self, b: Self) -> Self {
        // SAFETY: register operations only.
        Self::from_limbs(std::array::from_fn(|i| unsafe {
            _mm512_sub_epi64(
                _mm512_add_epi64(a.limbs[i], Self::multiple(K, i)),
                b.limbs[i],
            )
        }))
    }

    /// `a + K·p − b`, carried, unreduced, for `b ≤ K·p`, K < 8.
    #[inline(always)]
    pub(crate) unsafe fn sub<const K: usize>(a: Self, b: Self) -> Self {
        // SAFETY: as the caller promises.
        unsafe { Self::sub_raw::<K>(a, b).carry() }
    }

    /// `K·p − a` where `lanes` says so, else `a`; carried, for carried `a ≤ K·p`, K < 8.
    #[inline(always)]
    pub(crate) unsafe fn negate_where<const K: usize>(a: Self, lanes: __mmask8) -> Self {
        // SAFETY: register operations only.
        unsafe {
            Self::from_limbs(std::array::from_fn(|i| {
                _mm512_mask_sub_epi64(a.limbs[i], lanes, Self::multiple(K, i), a.limbs[i])
            }))
            .carry()
        }
    }

    /// `a + b`, carried and less than `1.1·p`, for a sum below `8·p`.
    #[inline(always)]
    pub(crate) unsafe fn add_reduced(a: Self, b: Self) -> Self {
        // SAFETY: as the caller promises.
        unsafe { Self::add_raw(a, b).reduce() }
    }

    /// `a + K·p − b`, carried and less than `1.1·p`, for `b ≤ K·p` and `a + K·p < 8·p`.
    #[inline(always)]
    pub(crate) unsafe fn sub_reduced<const K: usize>(a: Self, b: Self) -> Self {
        // SAFETY: as the caller promises.
        unsafe { Self::sub_raw::<K>(a, b).reduce() }
    }

    /// `a + K·p − b − c`, carried and less than `1.1·p`, for `b + c ≤ K·p` and `a + K·p < 8·p`.
    #[inline(always)]
    pub(crate) unsafe fn sub_two_reduced<const K: usize>(a: Self, b: Self, c: Self) -> Self {
        // SAFETY: as the caller promises.
        unsafe { Self::sub_raw::<K>(a, Self::add_raw(b, c)).reduce() }
    }

    /// From signed limbs of a value below `8·p` to a carried value below `1.1·p`, equal mod p.
    ///
    /// The top limb, short of a carry of a few units, estimates the quotient by p from below: a
    /// fraction of 1/64 of it at most is lost with five limbs, 2⁻¹² with eight. The multiple comes
    /// from a table by a shuffle of lanes.
    #[inline(always)]
    pub(crate) unsafe fn reduce(self) -> Self {
        // SAFETY: register operations, and reads of constants.
        unsafe {
            let factor = _mm512_set1_epi64(P::QUOTIENT_FACTOR as i64);
            // A top limb that awaits a borrow may be −1: as 0.
            let top = _mm512_max_epi64(self.limbs[L - 1], _mm512_setzero_si512());
            let quotient = _mm512_madd52hi_epu64(_mm512_setzero_si512(), top, factor);
            Self::from_limbs(std::array::from_fn(|i| {
                let multiples = _mm512_loadu_si512(P::MULTIPLES[i].as_ptr().cast());
                _mm512_sub_epi64(self.limbs[i], _mm512_permutexvar_epi64(quotient, multiples))
            }))
            .carry()
        }
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
            Self::from_limbs(std::array::from_fn(|i| {
                _mm512_mask_blend_epi64(below, difference[i], self.limbs[i])
            }))
        }
    }

    /// Lanes whose canonical value is zero.
    #[inline(always)]
    pub(crate) unsafe fn is_zero(self) -> __mmask8 {
        // SAFETY: register operations only.
        unsafe {
            let any = self
                .limbs
                .into_iter()
                .reduce(|a, b| _mm512_or_si512(a, b))
                .unwrap_or_else(|| _mm512_setzero_si512());
            _mm512_testn_epi64_mask(any, any)
        }
    }

    /// `b` where `lanes` says so, else `a`.
    #[inline(always)]
    pub(crate) unsafe fn select(lanes: __mmask8, a: Self, b: Self) -> Self {
        // SAFETY: register operations only.
        Self::from_limbs(std::array::from_fn(|i| unsafe {
            _mm512_mask_blend_epi64(lanes, a.limbs[i], b.limbs[i])
        }))
    }

    /// Eight elements of arkworks into this form, below `1.1·p`.
    #[inline(always)]
    pub(crate) unsafe fn from_ark(values: [&Scalar<P, N>; 8]) -> Self {
        let cut: [[u64; L]; 8] = values.map(|value| limbs(&value.0.0));
        // SAFETY: as the caller promises.
        unsafe {
            let raw = Self::from_limbs(std::array::from_fn(|i| {
                let lanes: [u64; 8] = std::array::from_fn(|lane| cut[lane][i]);
                _mm512_loadu_si512(lanes.as_ptr().cast())
            }));
            Self::mul(raw, Self::splat(&P::FROM_ARK))
        }
    }

    /// The eight elements as arkworks', of a carried value below `8·p`.
    #[inline(always)]
    pub(crate) unsafe fn to_ark(self) -> [Scalar<P, N>; 8] {
        // SAFETY: as the caller promises.
        unsafe {
            let value = Self::mul(self, Self::splat(&P::TO_ARK)).canonical();
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

/// How a field's elements lie in memory: `WORDS` 64-bit words each, eight from eight places.
pub(crate) trait Stored: Copy {
    const WORDS: usize;

    /// # Safety
    ///
    /// The instructions of this back end; each place is good for reading `WORDS` words.
    unsafe fn load(places: [*const u64; 8]) -> Self;

    /// Stores a carried value below `2·p`.
    ///
    /// # Safety
    ///
    /// The instructions of this back end; each place is good for writing `WORDS` words.
    unsafe fn store(self, places: [*mut u64; 8]);
}

/// Eight limbs lie as they are: a cache line.
impl<P: Modulus<8, 6>> Stored for Fp<P, 8, 6> {
    const WORDS: usize = 8;

    #[inline(always)]
    unsafe fn load(places: [*const u64; 8]) -> Self {
        // SAFETY: 64 bytes at each place, as the caller promises; any alignment.
        unsafe { Self::from_limbs(transpose_8x8(places.map(|p| _mm512_loadu_si512(p.cast())))) }
    }

    #[inline(always)]
    unsafe fn store(self, places: [*mut u64; 8]) {
        // SAFETY: 64 bytes at each place, as the caller promises; any alignment.
        unsafe {
            for (row, place) in transpose_8x8(self.limbs).into_iter().zip(places) {
                _mm512_storeu_si512(place.cast(), row);
            }
        }
    }
}

/// Five limbs are packed to 256 bits, so that a point of two coordinates is one cache line. What is
/// packed is below `2·p < 2²⁵⁶`.
impl<P: Modulus<5, 4>> Stored for Fp<P, 5, 4> {
    const WORDS: usize = 4;

    #[inline(always)]
    unsafe fn load(places: [*const u64; 8]) -> Self {
        // SAFETY: as the caller promises.
        unsafe { Self::from_words(load_8x4(places)) }
    }

    #[inline(always)]
    unsafe fn store(self, places: [*mut u64; 8]) {
        // SAFETY: as the caller promises.
        unsafe { store_8x4(self.to_words(), places) }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InstructionSet;
    use ark_ff::{AdditiveGroup, Field, UniformRand};
    use ark_std::test_rng;

    /// Edge values first, then random ones.
    fn samples<P: Modulus<L, N>, const L: usize, const N: usize>() -> Vec<Scalar<P, N>> {
        let mut rng = test_rng();
        let mut values = vec![
            Scalar::<P, N>::ZERO,
            Scalar::<P, N>::ONE,
            -Scalar::<P, N>::ONE,
            Scalar::<P, N>::from(2u64).pow([52]),
            Scalar::<P, N>::from(2u64).pow([255]),
            -Scalar::<P, N>::from(2u64),
        ];
        values.extend((0..1018).map(|_| Scalar::<P, N>::rand(&mut rng)));
        values
    }

    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
    fn check<P: Modulus<L, N>, const L: usize, const N: usize>()
    where
        Fp<P, L, N>: Stored,
    {
        let values = samples::<P, L, N>();
        let mut shifted = values.clone();
        shifted.rotate_left(3);
        for (a, b) in values.chunks_exact(8).zip(shifted.chunks_exact(8)) {
            let (a, b): ([_; 8], [_; 8]) =
                (std::array::from_fn(|i| a[i]), std::array::from_fn(|i| b[i]));
            let each = |f: &dyn Fn(Scalar<P, N>, Scalar<P, N>) -> Scalar<P, N>| {
                std::array::from_fn::<_, 8, _>(|i| f(a[i], b[i]))
            };
            // SAFETY: the features are enabled on this function.
            unsafe {
                let (x, y) = (
                    Fp::<P, L, N>::from_ark(a.each_ref()),
                    Fp::<P, L, N>::from_ark(b.each_ref()),
                );
                assert_eq!(x.to_ark(), a);
                assert_eq!(Fp::mul(x, y).to_ark(), each(&|a, b| a * b));
                assert_eq!(Fp::square(x).to_ark(), each(&|a, _| a.square()));
                assert_eq!(Fp::add(x, y).to_ark(), each(&|a, b| a + b));
                assert_eq!(Fp::sub::<2>(x, y).to_ark(), each(&|a, b| a - b));
                assert_eq!(
                    Fp::add_reduced(x, y).canonical().to_ark(),
                    each(&|a, b| a + b)
                );
                // The widest ranges: 4p − 2.2p, and 5p + 1.1p.
                assert_eq!(
                    Fp::sub_two_reduced::<4>(x, y, y).to_ark(),
                    each(&|a, b| a - b - b)
                );
                assert_eq!(Fp::sub_reduced::<6>(x, y).to_ark(), each(&|a, b| a - b));
                for value in [
                    Fp::sub_reduced::<6>(x, y),
                    Fp::sub_two_reduced::<4>(x, y, y),
                ] {
                    assert_eq!(
                        value.canonical().is_zero(),
                        value
                            .to_ark()
                            .iter()
                            .enumerate()
                            .fold(0, |mask, (i, v)| mask
                                | (u8::from(*v == Scalar::<P, N>::ZERO) << i))
                    );
                    assert_eq!(value.canonical().canonical().to_ark(), value.to_ark());
                }
                assert_eq!(
                    Fp::<P, L, N>::negate_where::<2>(x, 0b1010_0101).to_ark(),
                    std::array::from_fn(|i| if 0b1010_0101 >> i & 1 == 1 {
                        -a[i]
                    } else {
                        a[i]
                    })
                );
                assert_eq!(
                    Fp::select(0xf0, x, y).to_ark(),
                    std::array::from_fn(|i| if i < 4 { a[i] } else { b[i] })
                );

                let mut memory = [[u64::MAX; 9]; 8];
                let places = memory.each_mut().map(|row| row.as_mut_ptr());
                x.store(places);
                let back = Fp::<P, L, N>::load(places.map(|p| p.cast_const()));
                assert_eq!(back.to_ark(), a);
                assert!(
                    memory
                        .iter()
                        .all(|row| row[Fp::<P, L, N>::WORDS] == u64::MAX)
                );
            }
        }
    }

    #[test]
    fn arithmetic_is_that_of_arkworks() {
        if !InstructionSet::Avx512Ifma.is_available() {
            eprintln!("skipped: this machine has no AVX-512 IFMA");
            return;
        }
        // SAFETY: availability was checked.
        unsafe {
            check::<ark_bls12_381::FqConfig, 8, 6>();
            check::<ark_bls12_377::FqConfig, 8, 6>();
            check::<ark_bls12_381::FrConfig, 5, 4>();
            check::<ark_bls12_377::FrConfig, 5, 4>();
            check::<ark_bn254::FqConfig, 5, 4>();
            check::<ark_bn254::FrConfig, 5, 4>();
        }
    }
}
