//! Affine points in vectors' layout: the kernels of multi-scalar multiplication.
//!
//! A point is its x then its y, each as [`VectorField::store`] has it: 64 bytes over BN254's base
//! field, 128 over BLS12-381's.

use std::marker::PhantomData;

use ark_ec::short_weierstrass::{Affine, SWCurveConfig};
use rayon::prelude::*;

use super::batch_add::{self, Scratch};
use super::doubling;
use super::memory::Words;
use super::multiply_each::multiply_each;
use super::vector_field::VectorField;
use crate::msm::plan::Costs;
use crate::msm::point_kernel::{PointAddition, PointKernel};
use crate::portable::inversion::Invertible;

/// Points one task converts or multiplies.
const CHUNK: usize = 1 << 11;

/// The points of a curve whose coordinates are vectors `V`.
pub(crate) struct VectorPoints<P, V>(PhantomData<(P, V)>);

/// Stored points; behind the last there are places that fill up incomplete vectors.
pub(crate) struct Stored<V> {
    words: Words,
    len: usize,
    field: PhantomData<fn() -> V>,
}

/// Words of the largest point: of two coordinates over an extension of a field of eight limbs.
const MAX_STRIDE: usize = 32;
/// Places behind the points: eight targets and one source, which is (0, 0).
const SPARE: usize = 9;

// === impl Stored ===

impl<V: VectorField> Stored<V> {
    /// Words of a point.
    pub(crate) const STRIDE: usize = 2 * V::WORDS;

    fn new(len: usize) -> Self {
        let mut words = Words::new((len + SPARE) * Self::STRIDE);
        // SAFETY: the spares are the last of the words asked for.
        unsafe {
            let spares = words.as_mut_ptr().add(len * Self::STRIDE);
            spares.write_bytes(0, SPARE * Self::STRIDE);
        }
        Self {
            words,
            len,
            field: PhantomData,
        }
    }

    /// The number of points.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The spare source's index.
    pub(crate) fn spare_source(&self) -> usize {
        self.len + SPARE - 1
    }

    /// Pointer to the first point; the points and the spares are `len + SPARE` times `STRIDE` words.
    pub(crate) fn as_ptr(&self) -> *const u64 {
        self.words.as_ptr()
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut u64 {
        self.words.as_mut_ptr()
    }

    fn words(&self, index: usize) -> &[u64] {
        assert!(index < self.len, "point {index} of {}", self.len);
        // SAFETY: within the memory, which holds `len + SPARE` points; it is borrowed by `self`.
        unsafe { std::slice::from_raw_parts(self.as_ptr().add(index * Self::STRIDE), Self::STRIDE) }
    }

    fn words_mut(&mut self, index: usize) -> &mut [u64] {
        assert!(index < self.len, "point {index} of {}", self.len);
        let start = index * Self::STRIDE;
        // SAFETY: within the memory, which holds `len + SPARE` points; it is borrowed by `self`.
        unsafe { std::slice::from_raw_parts_mut(self.as_mut_ptr().add(start), Self::STRIDE) }
    }

    /// Eight points as arkworks', by the x and y of each.
    ///
    /// # Safety
    ///
    /// The instructions of this back end.
    pub(crate) unsafe fn export(&self, indices: [usize; 8]) -> ([V::Ark; 8], [V::Ark; 8]) {
        assert!(indices.iter().all(|i| *i < self.len));
        // SAFETY: as the caller promises; the indices were checked.
        unsafe { export::<V>(self.as_ptr(), indices) }
    }

    /// Stores eight points.
    ///
    /// # Safety
    ///
    /// The instructions of this back end.
    pub(crate) unsafe fn import(&mut self, indices: [usize; 8], x: &[V::Ark; 8], y: &[V::Ark; 8]) {
        assert!(indices.iter().all(|i| *i < self.len));
        // SAFETY: as the caller promises; the indices were checked.
        unsafe { import::<V>(self.as_mut_ptr(), indices, x, y) }
    }
}

#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
unsafe fn export<V: VectorField>(
    base: *const u64,
    indices: [usize; 8],
) -> ([V::Ark; 8], [V::Ark; 8]) {
    // SAFETY: the indices are of points, as the caller promises.
    unsafe {
        let x = indices.map(|i| base.add(i * 2 * V::WORDS));
        let y = x.map(|p| p.add(V::WORDS));
        (V::load(x).to_ark(), V::load(y).to_ark())
    }
}

#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
unsafe fn import<V: VectorField>(
    base: *mut u64,
    indices: [usize; 8],
    x: &[V::Ark; 8],
    y: &[V::Ark; 8],
) {
    // SAFETY: the indices are of points, as the caller promises.
    unsafe {
        let places = indices.map(|i| base.add(i * 2 * V::WORDS));
        V::load_ark(x.each_ref().map(std::ptr::from_ref)).store(places);
        V::load_ark(y.each_ref().map(std::ptr::from_ref)).store(places.map(|p| p.add(V::WORDS)));
    }
}

/// A pointer that tasks share; each accesses a separate range.
#[derive(Clone, Copy)]
struct Shared(*mut u64);

// SAFETY: every use says why the ranges that tasks touch are disjoint.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    fn get(&self) -> *mut u64 {
        self.0
    }
}

impl<P, V> PointKernel for VectorPoints<P, V>
where
    P: SWCurveConfig<BaseField: Invertible>,
    V: VectorField<Ark = P::BaseField>,
{
    type Curve = P;
    type Points = Stored<V>;
    type Scratch = Scratch<V>;
    /// Sources, targets and scratch of a batch take 400 to 1,100 KB with coordinates in a prime
    /// field: they stay in 2 MB of second-level cache.
    const BATCH: usize = 1 << 11;
    const POINT_BYTES: usize = 16 * V::WORDS;
    const COSTS: Costs = Costs {
        addition: 90.0,
        bucket: 160.0,
        load: 50.0,
        split: 65.0,
        inversion: 6_800.0,
    };

    fn allocate(len: usize) -> Self::Points {
        Stored::new(len)
    }

    fn multiply_each(points: &[Affine<P>], numbers: &[u128]) -> Option<Vec<Affine<P>>> {
        Some(multiply_each::<P, V>(points, numbers))
    }

    fn load(bases: &[Affine<P>], len: usize) -> Self::Points {
        assert!(bases.len() <= len, "{} bases in {len} places", bases.len());
        let mut points = Stored::<V>::new(len);
        let base = Shared(points.as_mut_ptr());
        bases.par_chunks(CHUNK).enumerate().for_each(|(i, bases)| {
            // SAFETY: this back end runs only where its instructions are; each task writes the
            // places of its own bases, which lie within `len`.
            unsafe { load::<P, V>(bases, base.get().add(i * CHUNK * Stored::<V>::STRIDE)) };
        });
        points
    }

    fn map_endomorphism(points: &mut Self::Points, count: usize, beta: &P::BaseField) {
        assert!(2 * count <= points.len(), "{count} points and their images");
        let base = Shared(points.as_mut_ptr());
        (0..count).into_par_iter().step_by(CHUNK).for_each(|start| {
            let end = (start + CHUNK).min(count);
            // SAFETY: as above; each task reads and writes the places of its own range and of
            // their images.
            unsafe { map_endomorphism::<V>(base.get(), start, end, count, beta) };
        });
    }

    fn double(points: &mut Self::Points, from: usize, to: usize, count: usize, doublings: usize) {
        assert!(from + count <= to && to + count <= points.len());
        let base = Shared(points.as_mut_ptr());
        (0..count).into_par_iter().step_by(CHUNK).for_each(|start| {
            let end = (start + CHUNK).min(count);
            // SAFETY: as above; the two ranges do not overlap.
            unsafe {
                doubling::double::<V>(base.get(), from + start, to + start, end - start, doublings);
            }
        });
    }

    fn copy(targets: &mut Self::Points, target: usize, sources: &Self::Points, source: u32) {
        let source_words = sources.words((source >> 1) as usize);
        let words = targets.words_mut(target);
        words.copy_from_slice(source_words);
        if source & 1 == 1 {
            V::negate_stored(&mut words[V::WORDS..]);
        }
    }

    fn copy_within(points: &mut Self::Points, target: usize, source: usize) {
        let mut words = [0; MAX_STRIDE];
        let words = &mut words[..Self::Points::STRIDE];
        words.copy_from_slice(points.words(source));
        points.words_mut(target).copy_from_slice(words);
    }

    fn add(
        targets: &mut Self::Points,
        sources: Option<&Self::Points>,
        jobs: &[PointAddition],
        scratch: &mut Self::Scratch,
    ) -> Vec<u32> {
        batch_add::batch_add::<P, V>(targets, sources, jobs, scratch)
    }

    fn get(points: &Self::Points, index: usize) -> Affine<P> {
        // SAFETY: this back end runs only where its instructions are.
        let (x, y) = unsafe { points.export([index; 8]) };
        Affine::new_unchecked(x[0], y[0])
    }
}

#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
unsafe fn load<P, V>(bases: &[Affine<P>], places: *mut u64)
where
    P: SWCurveConfig,
    V: VectorField<Ark = P::BaseField>,
{
    for (group, bases) in bases.chunks(8).enumerate() {
        // The last vector repeats its first base where there are no more.
        let base = |lane: usize| &bases[if lane < bases.len() { lane } else { 0 }];
        // SAFETY: eight elements to read; of the places only those of bases are written with
        // different values, the others with what is there already.
        unsafe {
            let x = V::load_ark(std::array::from_fn(|lane| &raw const base(lane).x));
            let y = V::load_ark(std::array::from_fn(|lane| &raw const base(lane).y));
            let places = std::array::from_fn(|lane| {
                let lane = if lane < bases.len() { lane } else { 0 };
                places.add((8 * group + lane) * 2 * V::WORDS)
            });
            x.store(places);
            y.store(places.map(|p| p.add(V::WORDS)));
        }
    }
}

#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
unsafe fn map_endomorphism<V: VectorField>(
    base: *mut u64,
    start: usize,
    end: usize,
    count: usize,
    beta: &V::Ark,
) {
    // SAFETY: places of points, as the caller promises; lanes beyond the range repeat its last
    // point, and so write what that lane writes.
    unsafe {
        let beta = V::splat(beta);
        for group in (start..end).step_by(8) {
            let from: [*mut u64; 8] =
                std::array::from_fn(|lane| base.add((group + lane).min(end - 1) * 2 * V::WORDS));
            let to = from.map(|p| p.add(count * 2 * V::WORDS));
            let x = V::load(from.map(|p| p.cast_const()));
            let y = V::load(from.map(|p| p.add(V::WORDS).cast_const()));
            V::mul(x, beta).store(to);
            y.store(to.map(|p| p.add(V::WORDS)));
        }
    }
}
