//! A transform of n points as transforms of n₁ and n₂ ≈ √n points in the lanes of vectors.
//!
//! With values as n₁ rows of n₂ = n/n₁ columns: output k₁ + n₁·k₂ is
//! Σ over j₂ of ω^(n₁·j₂·k₂) · ω^(j₂·k₁) · Σ over j₁ of ω^(n₂·j₁·k₁) · value(j₁·n₂ + j₂).
//! The first step takes eight columns at a time through a buffer of n₁ vectors, multiplies by
//! ω^(j₂·k₁) and stores rows; the second takes eight rows through a buffer of n₂ vectors and stores
//! them as columns. Each step reads and writes the whole once, in pieces of 256 contiguous bytes; a
//! buffer (320 bytes a vector: 320 KiB for 2²⁰ points, 1.3 MiB for 2²⁴) stays in the second-level
//! cache.
//!
//! Between the steps values are below 2.2·p, not canonical, and in 256 bits.
//!
//! Instructions for eight values at 2²⁰ points: 4 passes of 106 and a first one of 35 in each step
//! (918 in all), 260 for the powers between the steps and for storing, 90 for the canonical form,
//! 60 for loads: about 1,330, at best two a cycle.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ark_ff::{FftField, Field};
use rayon::prelude::*;

use super::arithmetic::{
    Columns, Constant, Constants, Factor, canonical, carry, load, multiply, multiply_montgomery,
    normalize, reduce, zero,
};
use super::network::{Network, Sink, Source, write_4};
use super::tables::{Chain, Twist, network, scale};
use crate::ntt::Transforms;
use crate::x86_64_avx512ifma::field::Fp;
use crate::x86_64_avx512ifma::modulus::Scalar;
use crate::x86_64_avx512ifma::transpose::{load_8x4, store_8x4};

/// The smallest number of points: eight lanes, and as many points in each.
pub(crate) const SMALLEST: usize = 64;
/// Words of an element.
const WORDS: usize = 4;
/// Elements between the end of a row of the scratch and the next: rows a power of two of bytes apart
/// would share few sets of a cache.
const PADDING: usize = 8;
/// From this size on the work is divided among threads.
const PARALLEL: usize = 1 << 11;

/// Transforms by powers of ω, and on the coset by `shift`; tables of O(√n) are made when first
/// needed, one set for each kind of transform (about 500·√n bytes each).
pub(crate) struct Plan<P: Constants> {
    rows: usize,
    columns: usize,
    root: Scalar<P, 4>,
    shift: Scalar<P, 4>,
    forward: OnceLock<Transform>,
    inverse: OnceLock<Transform>,
    coset_forward: OnceLock<Transform>,
    coset_inverse: OnceLock<Transform>,
    extend: OnceLock<Extension>,
    /// Of n elements, kept between transforms.
    scratch: Mutex<Option<Vec<u64>>>,
}

/// From natural to natural order.
struct Transform {
    columns: Arc<Network>,
    chains: Vec<Chain>,
    rows: Arc<Network>,
    /// What output k₁ + n₁·k₂ is multiplied by, for each k₂; nothing if empty.
    scales: Vec<Factor>,
}

/// From evaluations on the subgroup to those on the coset.
struct Extension {
    columns_inverse: Network,
    chains_inverse: Vec<Chain>,
    rows_inverse: Network,
    rows_forward: Network,
    chains_forward: Vec<Chain>,
    columns_forward: Network,
}

/// Elements in memory: of lane l and index i at `base + 4·(l·lane + i·index)` words.
#[derive(Clone, Copy)]
struct View {
    base: *mut u64,
    lane: usize,
    index: usize,
}

// SAFETY: a view is moved to the one thread that handles its block; blocks do not overlap.
unsafe impl Send for View {}
// SAFETY: as above.
unsafe impl Sync for View {}

// === impl Plan ===

impl<P: Constants> Plan<P> {
    /// For `points` points, a power of two from [`SMALLEST`] on, and `root` of that order.
    pub(crate) fn new(points: usize, root: Scalar<P, 4>, shift: Scalar<P, 4>) -> Self {
        assert!(points.is_power_of_two() && points >= SMALLEST);
        let rows = 1 << (points.trailing_zeros() / 2);
        Self {
            rows,
            columns: points / rows,
            root,
            shift,
            forward: OnceLock::new(),
            inverse: OnceLock::new(),
            coset_forward: OnceLock::new(),
            coset_inverse: OnceLock::new(),
            extend: OnceLock::new(),
            scratch: Mutex::new(None),
        }
    }

    /// Powers of `root` only.
    fn twist(root: Scalar<P, 4>) -> Twist<P> {
        let one = Scalar::<P, 4>::ONE;
        Twist {
            factor: one,
            lane_base: one,
            step_base: root,
            step: one,
        }
    }

    fn size_inverse(&self) -> Scalar<P, 4> {
        invert(Scalar::<P, 4>::from((self.rows * self.columns) as u64))
    }

    fn transform(
        &self,
        root: Scalar<P, 4>,
        columns_scale: Scalar<P, 4>,
        twist: Twist<P>,
        output_scale: Scalar<P, 4>,
    ) -> Transform {
        let one = Scalar::<P, 4>::ONE;
        let columns = Arc::new(network::<P>(
            self.rows,
            root.pow([self.columns as u64]),
            columns_scale,
        ));
        let rows = if self.rows == self.columns && columns_scale == one {
            Arc::clone(&columns)
        } else {
            Arc::new(network::<P>(
                self.columns,
                root.pow([self.rows as u64]),
                one,
            ))
        };
        Transform {
            columns,
            chains: twist.chains(self.columns, self.rows),
            rows,
            scales: if output_scale == one {
                Vec::new()
            } else {
                scale::<P>(output_scale, self.columns)
            },
        }
    }

    fn extension(&self) -> Extension {
        let one = Scalar::<P, 4>::ONE;
        let (n1, n2) = (self.rows as u64, self.columns as u64);
        let (root, inverse) = (self.root, invert(self.root));
        let back = Twist {
            factor: self.size_inverse(),
            step: self.shift,
            ..Self::twist(inverse)
        };
        Extension {
            columns_inverse: network::<P>(self.rows, inverse.pow([n2]), one),
            chains_inverse: back.chains(self.columns, self.rows),
            rows_inverse: network::<P>(self.columns, inverse.pow([n1]), one),
            rows_forward: network::<P>(self.columns, root.pow([n1]), self.shift.pow([n1])),
            chains_forward: Self::twist(root).chains(self.rows, self.columns),
            columns_forward: network::<P>(self.rows, root.pow([n2]), one),
        }
    }

    fn view(&self, values: &mut [Scalar<P, 4>]) -> View {
        const { assert!(size_of::<Scalar<P, 4>>() == 8 * WORDS) };
        assert_eq!(values.len(), self.rows * self.columns);
        // An element is its four Montgomery words and a marker of no size.
        View {
            base: values.as_mut_ptr().cast(),
            lane: 1,
            index: 1,
        }
    }

    fn run(&self, transform: &Transform, values: &mut [Scalar<P, 4>]) {
        let values = self.view(values);
        let (rows, columns) = (self.rows, self.columns);
        let pitch = columns + PADDING;
        let mut scratch = self.take_scratch(rows * pitch * WORDS);
        let between = View {
            base: scratch.as_mut_ptr(),
            lane: 1,
            index: 1,
        };
        self.each_block(columns / 8, rows, |buffers, block| {
            let source = View {
                base: values.word(8 * block),
                lane: 1,
                index: columns,
            };
            let target = View {
                base: between.word(8 * block),
                lane: 1,
                index: pitch,
            };
            let chain = &transform.chains[block];
            // SAFETY: a plan is made only where the instructions are; blocks are disjoint.
            unsafe { twisted::<P>(&transform.columns, source, buffers[0], chain, target) }
        });
        self.each_block(rows / 8, columns, |buffers, block| {
            let source = View {
                base: between.word(8 * block * pitch),
                lane: pitch,
                index: 1,
            };
            let target = View {
                base: values.word(8 * block),
                lane: 1,
                index: rows,
            };
            // SAFETY: as above; the first step has written all that is read.
            unsafe {
                if transform.scales.is_empty() {
                    finished::<P>(&transform.rows, source, buffers[0], target);
                } else {
                    scaled::<P>(
                        &transform.rows,
                        source,
                        buffers[0],
                        &transform.scales,
                        target,
                    );
                }
            }
        });
        *self.scratch.lock().unwrap_or_else(PoisonError::into_inner) = Some(scratch);
    }

    /// Uninitialised capacity of `words`.
    fn take_scratch(&self, words: usize) -> Vec<u64> {
        let kept = self
            .scratch
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        kept.unwrap_or_else(|| Vec::with_capacity(words))
    }

    /// Calls `work` for each block with two buffers of `size` vectors, on the current threads.
    fn each_block(
        &self,
        blocks: usize,
        size: usize,
        work: impl Fn([*mut Columns; 2], usize) + Sync,
    ) {
        let threads = if self.rows * self.columns < PARALLEL {
            1
        } else {
            rayon::current_num_threads().min(blocks)
        };
        let next = AtomicUsize::new(0);
        let worker = || {
            let mut buffers: [Vec<Columns>; 2] =
                [Vec::with_capacity(size), Vec::with_capacity(size)];
            let buffers = buffers.each_mut().map(Vec::as_mut_ptr);
            loop {
                let block = next.fetch_add(1, Ordering::Relaxed);
                if block >= blocks {
                    break;
                }
                work(buffers, block);
            }
        };
        if threads == 1 {
            worker();
        } else {
            (0..threads)
                .into_par_iter()
                .with_max_len(1)
                .for_each(|_| worker());
        }
    }
}

impl<P: Constants> Transforms<Scalar<P, 4>> for Plan<P> {
    fn forward(&self, values: &mut [Scalar<P, 4>]) {
        let transform = self.forward.get_or_init(|| {
            let one = Scalar::<P, 4>::ONE;
            self.transform(self.root, one, Self::twist(self.root), one)
        });
        self.run(transform, values);
    }

    fn inverse(&self, values: &mut [Scalar<P, 4>]) {
        let transform = self.inverse.get_or_init(|| {
            let one = Scalar::<P, 4>::ONE;
            let root = invert(self.root);
            let twist = Twist {
                factor: self.size_inverse(),
                ..Self::twist(root)
            };
            self.transform(root, one, twist, one)
        });
        self.run(transform, values);
    }

    fn coset_forward(&self, values: &mut [Scalar<P, 4>]) {
        // Input j₁·n₂ + j₂ is scaled by shift^(n₂·j₁), and by shift^j₂ between the steps.
        let transform = self.coset_forward.get_or_init(|| {
            let twist = Twist {
                lane_base: self.shift,
                ..Self::twist(self.root)
            };
            let columns_scale = self.shift.pow([self.columns as u64]);
            self.transform(self.root, columns_scale, twist, Scalar::<P, 4>::ONE)
        });
        self.run(transform, values);
    }

    fn coset_inverse(&self, values: &mut [Scalar<P, 4>]) {
        // Output k₁ + n₁·k₂ is scaled by shift^−k₁ between the steps, and by shift^(−n₁·k₂).
        let transform = self.coset_inverse.get_or_init(|| {
            let (root, shift) = (invert(self.root), invert(self.shift));
            let twist = Twist {
                factor: self.size_inverse(),
                step: shift,
                ..Self::twist(root)
            };
            let output_scale = shift.pow([self.rows as u64]);
            self.transform(root, Scalar::<P, 4>::ONE, twist, output_scale)
        });
        self.run(transform, values);
    }

    /// In place in three steps: columns, rows back and forth, columns. Coefficient k₁ + n₁·k₂ passes
    /// by in row k₁.
    fn coset_extend(&self, values: &mut [Scalar<P, 4>]) {
        let extension = self.extend.get_or_init(|| self.extension());
        let whole = self.view(values);
        let (rows, columns) = (self.rows, self.columns);
        let by_columns = |block: usize| View {
            base: whole.word(8 * block),
            lane: 1,
            index: columns,
        };
        let by_rows = |block: usize| View {
            base: whole.word(8 * block * columns),
            lane: columns,
            index: 1,
        };
        self.each_block(columns / 8, rows, |buffers, block| {
            let view = by_columns(block);
            let chain = &extension.chains_inverse[block];
            // SAFETY: a plan is made only where the instructions are; blocks are disjoint.
            unsafe { twisted::<P>(&extension.columns_inverse, view, buffers[0], chain, view) }
        });
        self.each_block(rows / 8, columns, |buffers, block| {
            let view = by_rows(block);
            let chain = &extension.chains_forward[block];
            // SAFETY: as above.
            unsafe {
                back_and_forth::<P>(
                    &extension.rows_inverse,
                    &extension.rows_forward,
                    view,
                    buffers,
                    chain,
                );
            }
        });
        self.each_block(columns / 8, rows, |buffers, block| {
            let view = by_columns(block);
            // SAFETY: as above.
            unsafe { finished::<P>(&extension.columns_forward, view, buffers[0], view) }
        });
    }
}

fn invert<F: FftField>(value: F) -> F {
    value
        .inverse()
        .expect("roots, shifts and sizes are not zero")
}

// === impl View ===

impl View {
    /// The address of an element.
    fn word(&self, element: usize) -> *mut u64 {
        self.base.wrapping_add(WORDS * element)
    }

    #[inline(always)]
    fn lanes(&self, index: usize) -> [*mut u64; 8] {
        let start = self.word(index * self.index);
        [0, 1, 2, 3, 4, 5, 6, 7].map(|lane| start.wrapping_add(WORDS * lane * self.lane))
    }

    /// Writes limbs of numbers below 2²⁵⁶.
    #[inline(always)]
    unsafe fn store<P: Constants>(&self, index: usize, limbs: Columns) {
        // SAFETY: as the caller promises of the view and its indices.
        unsafe {
            store_8x4(
                Fp::<P, 5, 4>::from_limbs(limbs).to_words(),
                self.lanes(index),
            )
        }
    }
}

/// A view whose elements are below 2.2·p.
struct FromView<P>(View, PhantomData<P>);

impl<P: Constants> Source for FromView<P> {
    const WIDE: bool = false;

    #[inline(always)]
    unsafe fn load(&self, index: usize) -> Columns {
        // SAFETY: as the caller promises of the view and its indices.
        unsafe {
            let words = load_8x4(self.0.lanes(index).map(<*mut u64>::cast_const));
            Fp::<P, 5, 4>::from_words(words).limbs
        }
    }
}

struct FromBuffer(*const Columns);

impl Source for FromBuffer {
    const WIDE: bool = true;

    #[inline(always)]
    unsafe fn load(&self, index: usize) -> Columns {
        // SAFETY: as the caller promises of the index.
        unsafe { *self.0.add(index) }
    }
}

/// Multiplies by the factors of a chain; below 2·p.
struct Twisted<P> {
    view: View,
    factors: [Columns; 4],
    step: Constant,
    modulus: PhantomData<P>,
}

impl<P: Constants> Twisted<P> {
    #[inline(always)]
    unsafe fn new(view: View, chain: &Chain) -> Self {
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
}

impl<P: Constants> Sink for Twisted<P> {
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

impl<P: Constants> Twisted<P> {
    #[inline(always)]
    unsafe fn store_one<const R: usize>(&mut self, index: usize, output: Columns) {
        // SAFETY: as the caller promises.
        unsafe {
            let factor = self.factors[R];
            let product = multiply_montgomery::<P>(carry(output), factor);
            self.view.store::<P>(index, normalize(reduce::<P>(product)));
            self.factors[R] = carry(multiply::<P>(factor, &self.step, zero()));
        }
    }
}

/// In canonical form.
struct Finished<P>(View, PhantomData<P>);

impl<P: Constants> Sink for Finished<P> {
    #[inline(always)]
    unsafe fn store(&mut self, index: usize, quarter: usize, [a, b, c, d]: [Columns; 4]) {
        let Self(view, _) = self;
        // SAFETY: as the caller promises.
        unsafe {
            view.store::<P>(index, canonical::<P>(a));
            view.store::<P>(index + quarter, canonical::<P>(b));
            view.store::<P>(index + 2 * quarter, canonical::<P>(c));
            view.store::<P>(index + 3 * quarter, canonical::<P>(d));
        }
    }
}

/// Multiplied by a factor for each index, in canonical form.
struct Scaled<'a, P> {
    view: View,
    scales: &'a [Factor],
    modulus: PhantomData<P>,
}

impl<P: Constants> Sink for Scaled<'_, P> {
    #[inline(always)]
    unsafe fn store(&mut self, index: usize, quarter: usize, outputs: [Columns; 4]) {
        for (r, output) in outputs.into_iter().enumerate() {
            let index = index + r * quarter;
            // SAFETY: as the caller promises.
            unsafe {
                let factor = self.scales[index].splat();
                let product = multiply::<P>(carry(output), &factor, zero());
                self.view.store::<P>(index, canonical::<P>(product));
            }
        }
    }
}

/// As it is.
struct ToBuffer(*mut Columns);

impl Sink for ToBuffer {
    #[inline(always)]
    unsafe fn store(&mut self, index: usize, quarter: usize, outputs: [Columns; 4]) {
        // SAFETY: as the caller promises of the indices.
        unsafe { write_4(self.0.add(index), quarter, outputs) };
    }
}

/// # Safety
///
/// Here and below: the instructions of this back end; views and buffers good for the networks' sizes.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
unsafe fn twisted<P: Constants>(
    network: &Network,
    source: View,
    buffer: *mut Columns,
    chain: &Chain,
    target: View,
) {
    // SAFETY: as the caller promises; so below.
    unsafe {
        let source = FromView::<P>(source, PhantomData);
        let mut sink = Twisted::<P>::new(target, chain);
        network.transform::<P, _>(&source, buffer, &mut sink);
    }
}

/// # Safety
///
/// As for [`twisted`].
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
unsafe fn finished<P: Constants>(
    network: &Network,
    source: View,
    buffer: *mut Columns,
    target: View,
) {
    // SAFETY: see above.
    unsafe {
        let source = FromView::<P>(source, PhantomData);
        let mut sink = Finished::<P>(target, PhantomData);
        network.transform::<P, _>(&source, buffer, &mut sink);
    }
}

/// # Safety
///
/// As for [`twisted`].
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
unsafe fn scaled<P: Constants>(
    network: &Network,
    source: View,
    buffer: *mut Columns,
    scales: &[Factor],
    target: View,
) {
    // SAFETY: see above.
    unsafe {
        let source = FromView::<P>(source, PhantomData);
        let mut sink = Scaled::<P> {
            view: target,
            scales,
            modulus: PhantomData,
        };
        network.transform::<P, _>(&source, buffer, &mut sink);
    }
}

/// # Safety
///
/// As for [`twisted`].
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
unsafe fn back_and_forth<P: Constants>(
    back: &Network,
    forth: &Network,
    view: View,
    buffers: [*mut Columns; 2],
    chain: &Chain,
) {
    // SAFETY: see above.
    unsafe {
        let source = FromView::<P>(view, PhantomData);
        back.transform::<P, _>(&source, buffers[0], &mut ToBuffer(buffers[1]));
        let mut sink = Twisted::<P>::new(view, chain);
        forth.transform::<P, _>(&FromBuffer(buffers[1]), buffers[0], &mut sink);
    }
}
