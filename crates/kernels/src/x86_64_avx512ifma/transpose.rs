//! Transposition of eight rows of words in memory to words across lanes, and back.

// Macros, not closures, where intrinsics repeat: into a closure they are not inlined.
use std::arch::x86_64::*;

/// Transposes 8 × 8 words: lane j of row i becomes lane i of row j. 24 shuffles.
///
/// # Safety
///
/// AVX-512F.
#[inline(always)]
pub(crate) unsafe fn transpose_8x8(rows: [__m512i; 8]) -> [__m512i; 8] {
    // SAFETY: register operations only.
    unsafe {
        let [r0, r1, r2, r3, r4, r5, r6, r7] = rows;
        // Pairs of rows, word by word: [a0 b0 a2 b2 …] and [a1 b1 a3 b3 …].
        let (e01, o01) = (_mm512_unpacklo_epi64(r0, r1), _mm512_unpackhi_epi64(r0, r1));
        let (e23, o23) = (_mm512_unpacklo_epi64(r2, r3), _mm512_unpackhi_epi64(r2, r3));
        let (e45, o45) = (_mm512_unpacklo_epi64(r4, r5), _mm512_unpackhi_epi64(r4, r5));
        let (e67, o67) = (_mm512_unpacklo_epi64(r6, r7), _mm512_unpackhi_epi64(r6, r7));
        // 128-bit quarters q of two such pairs: quarters (0, 2) and (1, 3) of each.
        macro_rules! quarters {
            ($a:expr, $b:expr) => {
                (
                    _mm512_shuffle_i64x2::<0b10_00_10_00>($a, $b),
                    _mm512_shuffle_i64x2::<0b11_01_11_01>($a, $b),
                )
            };
        }
        let (a02, a13) = quarters!(e01, e23);
        let (b02, b13) = quarters!(e45, e67);
        let (c02, c13) = quarters!(o01, o23);
        let (d02, d13) = quarters!(o45, o67);
        let (t0, t4) = quarters!(a02, b02);
        let (t2, t6) = quarters!(a13, b13);
        let (t1, t5) = quarters!(c02, d02);
        let (t3, t7) = quarters!(c13, d13);
        [t0, t1, t2, t3, t4, t5, t6, t7]
    }
}

/// Four words from each of eight places: word j of place i becomes lane i of result j.
/// 8 loads and 8 shuffles.
///
/// # Safety
///
/// AVX-512F; each pointer is good for reading 4 words.
#[inline(always)]
pub(crate) unsafe fn load_8x4(places: [*const u64; 8]) -> [__m512i; 4] {
    // SAFETY: reads of 32 bytes at each place; any alignment.
    unsafe {
        // Places i and i + 4 in the two halves of a register.
        macro_rules! pair {
            ($i:expr) => {
                _mm512_inserti64x4::<1>(
                    _mm512_castsi256_si512(_mm256_loadu_si256(places[$i].cast())),
                    _mm256_loadu_si256(places[$i + 4].cast()),
                )
            };
        }
        let (p0, p1, p2, p3) = (pair!(0), pair!(1), pair!(2), pair!(3));
        // [a0 b0 a2 b2 | …] and [a1 b1 a3 b3 | …].
        let (e01, o01) = (_mm512_unpacklo_epi64(p0, p1), _mm512_unpackhi_epi64(p0, p1));
        let (e23, o23) = (_mm512_unpacklo_epi64(p2, p3), _mm512_unpackhi_epi64(p2, p3));
        let low = _mm512_set_epi64(13, 12, 5, 4, 9, 8, 1, 0);
        let high = _mm512_set_epi64(15, 14, 7, 6, 11, 10, 3, 2);
        [
            _mm512_permutex2var_epi64(e01, low, e23),
            _mm512_permutex2var_epi64(o01, low, o23),
            _mm512_permutex2var_epi64(e01, high, e23),
            _mm512_permutex2var_epi64(o01, high, o23),
        ]
    }
}

/// The inverse of [`load_8x4`].
///
/// # Safety
///
/// AVX-512F; each pointer is good for writing 4 words.
#[inline(always)]
pub(crate) unsafe fn store_8x4(words: [__m512i; 4], places: [*mut u64; 8]) {
    // SAFETY: writes of 32 bytes at each place; any alignment.
    unsafe {
        let [w0, w1, w2, w3] = words;
        // [0:w0 w1 | 2:w0 w1 | 4:… | 6:…] and the odd places; the same for words 2 and 3.
        let (e01, o01) = (_mm512_unpacklo_epi64(w0, w1), _mm512_unpackhi_epi64(w0, w1));
        let (e23, o23) = (_mm512_unpacklo_epi64(w2, w3), _mm512_unpackhi_epi64(w2, w3));
        macro_rules! join {
            ($a:expr, $b:expr) => {
                (
                    _mm512_permutex2var_epi64($a, _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0), $b),
                    _mm512_permutex2var_epi64($a, _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4), $b),
                )
            };
        }
        let (p02, p46) = join!(e01, e23);
        let (p13, p57) = join!(o01, o23);
        macro_rules! put {
            ($pair:expr, $first:expr, $second:expr) => {
                _mm256_storeu_si256(places[$first].cast(), _mm512_castsi512_si256($pair));
                _mm256_storeu_si256(
                    places[$second].cast(),
                    _mm512_extracti64x4_epi64::<1>($pair),
                );
            };
        }
        put!(p02, 0, 2);
        put!(p46, 4, 6);
        put!(p13, 1, 3);
        put!(p57, 5, 7);
    }
}
