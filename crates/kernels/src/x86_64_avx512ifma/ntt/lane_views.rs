//! Sources and destinations of the values of a block.

use std::arch::x86_64::*;
use std::marker::PhantomData;

use super::arithmetic::{
    Columns, Constant, Constants, Factor, canonical, carry, load, multiply, multiply_montgomery,
    normalize, reduce, zero,
};
use super::network::{Sink, Source, write_4};
use super::tables::{Chain, LANE_ORDER};
use crate::x86_64_avx512ifma::field::Fp;
use crate::x86_64_avx512ifma::transpose::{load_8x4, store_8x4};

/// Words of an element.
pub(super) const WORDS: usize = 4;

/// Eight elements side by side, as columns of a matrix have them.
#[derive(Clone, Copy)]
pub(super) struct Contiguous {
    words: *mut u64,
    /// Elements from an index to the next.
    pitch: usize,
}

/// Eight elements at equal distances, such as one column of eight rows of a matrix.
#[derive(Clone, Copy)]
pub(super) struct Strided {
    words: *mut u64,
    /// Elements from a lane to the next.
    pitch: usize,
}

/// A view of memory from which eight elements are loaded, and to which they are stored.
pub(super) trait LaneView: Copy {
    /// # Safety
    ///
    /// The instructions of this back end; an index that the view has.
    unsafe fn load(&self, index: usize) -> [__m512i; 4];
    /// # Safety
    ///
    /// As for `load`; no other thread uses these elements.
    unsafe fn store(&self, index: usize, words: [__m512i; 4]);
    /// Prefetches the elements of an index, which may lie outside the view.
    fn prefetch<const HINT: i32>(&self, index: usize);
}

impl Contiguous {
    pub(super) fn new(words: *mut u64, pitch: usize) -> Self {
        Self { words, pitch }
    }

    #[inline(always)]
    fn at(&self, index: usize) -> *mut u64 {
        self.words.wrapping_add(WORDS * index * self.pitch)
    }
}

impl Strided {
    pub(super) fn new(words: *mut u64, pitch: usize) -> Self {
        Self { words, pitch }
    }

    /// Lane by lane.
    #[inline(always)]
    fn at(&self, index: usize) -> [*mut u64; 8] {
        let start = self.words.wrapping_add(WORDS * index);
        LANE_ORDER.map(|lane| start.wrapping_add(WORDS * lane * self.pitch))
    }
}

impl LaneView for Contiguous {
    #[inline(always)]
    unsafe fn load(&self, index: usize) -> [__m512i; 4] {
        // SAFETY: as the caller promises.
        unsafe { load_side_by_side(self.at(index)) }
    }

    #[inline(always)]
    unsafe fn store(&self, index: usize, words: [__m512i; 4]) {
        // SAFETY: as the caller promises.
        unsafe { store_side_by_side(words, self.at(index)) }
    }

    #[inline(always)]
    fn prefetch<const HINT: i32>(&self, index: usize) {
        let start: *const i8 = self.at(index).cast();
        // SAFETY: a hint, whatever the address.
        unsafe {
            _mm_prefetch::<HINT>(start);
            _mm_prefetch::<HINT>(start.wrapping_add(64));
            _mm_prefetch::<HINT>(start.wrapping_add(128));
            _mm_prefetch::<HINT>(start.wrapping_add(192));
        }
    }
}

impl LaneView for Strided {
    #[inline(always)]
    unsafe fn load(&self, index: usize) -> [__m512i; 4] {
        // SAFETY: as the caller promises.
        unsafe { load_8x4(self.at(index).map(<*mut u64>::cast_const)) }
    }

    #[inline(always)]
    unsafe fn store(&self, index: usize, words: [__m512i; 4]) {
        // SAFETY: as the caller promises.
        unsafe { store_8x4(words, self.at(index)) }
    }

    #[inline(always)]
    fn prefetch<const HINT: i32>(&self, index: usize) {
        for lane in self.at(index) {
            // SAFETY: a hint, whatever the address.
            unsafe { _mm_prefetch::<HINT>(lane.cast()) };
        }
    }
}

/// 32 words as word i of eight elements in result i, the elements in [`LANE_ORDER`]. 4 loads and
/// 8 shuffles.
///
/// # Safety
///
/// The instructions of this back end; 256 bytes good for reading.
#[inline(always)]
unsafe fn load_side_by_side(place: *const u64) -> [__m512i; 4] {
    // SAFETY: as the caller promises; any alignment.
    unsafe {
        let e01 = _mm512_loadu_si512(place.cast());
        let e23 = _mm512_loadu_si512(place.add(8).cast());
        let e45 = _mm512_loadu_si512(place.add(16).cast());
        let e67 = _mm512_loadu_si512(place.add(24).cast());
        // [0:w0 2:w0 | 0:w2 2:w2 | 1:w0 3:w0 | 1:w2 3:w2], and the odd words.
        let (a02, a13) = (
            _mm512_unpacklo_epi64(e01, e23),
            _mm512_unpackhi_epi64(e01, e23),
        );
        let (b02, b13) = (
            _mm512_unpacklo_epi64(e45, e67),
            _mm512_unpackhi_epi64(e45, e67),
        );
        [
            _mm512_shuffle_i64x2::<0b10_00_10_00>(a02, b02),
            _mm512_shuffle_i64x2::<0b10_00_10_00>(a13, b13),
            _mm512_shuffle_i64x2::<0b11_01_11_01>(a02, b02),
            _mm512_shuffle_i64x2::<0b11_01_11_01>(a13, b13),
        ]
    }
}

/// The inverse of [`load_side_by_side`].
///
/// # Safety
///
/// The instructions of this back end; 256 bytes good for writing.
#[inline(always)]
unsafe fn store_side_by_side([w0, w1, w2, w3]: [__m512i; 4], place: *mut u64) {
    // SAFETY: as the caller promises; any alignment.
    unsafe {
        let first = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0);
        let second = _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4);
        let a02 = _mm512_permutex2var_epi64(w0, first, w2);
        let b02 = _mm512_permutex2var_epi64(w0, second, w2);
        let a13 = _mm512_permutex2var_epi64(w1, first, w3);
        let b13 = _mm512_permutex2var_epi64(w1, second, w3);
        _mm512_storeu_si512(place.cast(), _mm512_unpacklo_epi64(a02, a13));
        _mm512_storeu_si512(place.add(8).cast(), _mm512_unpackhi_epi64(a02, a13));
        _mm512_storeu_si512(place.add(16).cast(), _mm512_unpacklo_epi64(b02, b13));
        _mm512_storeu_si512(place.add(24).cast(), _mm512_unpackhi_epi64(b02, b13));
    }
}

/// Elements below 2.2·p in memory.
pub(super) struct FromView<P, V> {
    view: V,
    modulus: PhantomData<P>,
}

impl<P, V> FromView<P, V> {
    pub(super) fn new(view: V) -> Self {
        Self {
            view,
            modulus: PhantomData,
        }
    }
}

impl<P: Constants, V: LaneView> Source for FromView<P, V> {
    const WIDE: bool = false;

    #[inline(always)]
    unsafe fn load(&self, index: usize) -> Columns {
        // SAFETY: as the caller promises.
        unsafe { Fp::<P, 5, 4>::from_words(self.view.load(index)).limbs }
    }

    #[inline(always)]
    unsafe fn prefetch(&self, index: usize) {
        self.view.prefetch::<_MM_HINT_T0>(index);
    }
}

pub(super) struct FromBuffer(pub(super) *const Columns);

impl Source for FromBuffer {
    const WIDE: bool = true;

    #[inline(always)]
    unsafe fn load(&self, index: usize) -> Columns {
        // SAFETY: as the caller promises of the index.
        unsafe { *self.0.add(index) }
    }

    #[inline(always)]
    unsafe fn prefetch(&self, _index: usize) {}
}

/// Prefetch distance for stores, in indices.
const AHEAD: usize = 2;

/// Writes limbs of numbers below 2²⁵⁶.
///
/// # Safety
///
/// As for [`LaneView::store`].
#[inline(always)]
unsafe fn put<P: Constants>(view: &impl LaneView, index: usize, limbs: Columns) {
    view.prefetch::<_MM_HINT_ET0>(index + AHEAD);
    // SAFETY: as the caller promises.
    unsafe { view.store(index, Fp::<P, 5, 4>::from_limbs(limbs).to_words()) }
}

/// Multiplies by the factors of a chain; below 2·p.
pub(super) struct Twisted<P, V> {
    view: V,
    factors: [Columns; 4],
    step: Constant,
    modulus: PhantomData<P>,
}

impl<P: Constants, V: LaneView> Twisted<P, V> {
    #[inline(always)]
    pub(super) unsafe fn new(view: V, chain: &Chain) -> Self {
        // SAFETY: reads from arrays.
        unsafe {
            Self {
                view,
                factors: [
                    load(&chain.starts[0]),
                    load(&chain.starts[1]),
                    load(&chain.starts[2]),
                    load(&chain.starts[3]),
                ],
                step: chain.step.load(),
                modulus: PhantomData,
            }
        }
    }

    #[inline(always)]
    unsafe fn store_one<const R: usize>(&mut self, index: usize, output: Columns) {
        // SAFETY: as the caller promises.
        unsafe {
            let factor = self.factors[R];
            let product = multiply_montgomery::<P>(carry(output), factor);
            put::<P>(&self.view, index, normalize(reduce::<P>(product)));
            self.factors[R] = carry(multiply::<P>(factor, &self.step, zero()));
        }
    }
}

impl<P: Constants, V: LaneView> Sink for Twisted<P, V> {
    #[inline(always)]
    unsafe fn store(&mut self, index: usize, quarter: usize, outputs: [Columns; 4]) {
        // SAFETY: as the caller promises.
        unsafe {
            self.store_one::<0>(index, outputs[0]);
            self.store_one::<1>(index + quarter, outputs[1]);
            self.store_one::<2>(index + 2 * quarter, outputs[2]);
            self.store_one::<3>(index + 3 * quarter, outputs[3]);
        }
    }
}

/// Stores values in canonical form.
pub(super) struct CanonicalSink<P, V> {
    view: V,
    modulus: PhantomData<P>,
}

impl<P, V> CanonicalSink<P, V> {
    pub(super) fn new(view: V) -> Self {
        Self {
            view,
            modulus: PhantomData,
        }
    }
}

impl<P: Constants, V: LaneView> Sink for CanonicalSink<P, V> {
    #[inline(always)]
    unsafe fn store(&mut self, index: usize, quarter: usize, [a, b, c, d]: [Columns; 4]) {
        let view = &self.view;
        // SAFETY: as the caller promises.
        unsafe {
            put::<P>(view, index, canonical::<P>(a));
            put::<P>(view, index + quarter, canonical::<P>(b));
            put::<P>(view, index + 2 * quarter, canonical::<P>(c));
            put::<P>(view, index + 3 * quarter, canonical::<P>(d));
        }
    }
}

/// Multiplied by a factor for each index, in canonical form.
pub(super) struct ScaledSink<'a, P, V> {
    view: V,
    scales: &'a [Factor],
    modulus: PhantomData<P>,
}

impl<'a, P, V> ScaledSink<'a, P, V> {
    pub(super) fn new(view: V, scales: &'a [Factor]) -> Self {
        Self {
            view,
            scales,
            modulus: PhantomData,
        }
    }
}

impl<P: Constants, V: LaneView> Sink for ScaledSink<'_, P, V> {
    #[inline(always)]
    unsafe fn store(&mut self, index: usize, quarter: usize, outputs: [Columns; 4]) {
        for (r, output) in outputs.into_iter().enumerate() {
            let index = index + r * quarter;
            // SAFETY: as the caller promises.
            unsafe {
                let factor = self.scales[index].splat();
                let product = multiply::<P>(carry(output), &factor, zero());
                put::<P>(&self.view, index, canonical::<P>(product));
            }
        }
    }
}

/// Stores columns without reduction.
pub(super) struct ToBuffer(pub(super) *mut Columns);

impl Sink for ToBuffer {
    #[inline(always)]
    unsafe fn store(&mut self, index: usize, quarter: usize, outputs: [Columns; 4]) {
        // SAFETY: as the caller promises of the indices.
        unsafe { write_4(self.0.add(index), quarter, outputs) };
    }
}
