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

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ark_ff::{FftField, Field};
use rayon::prelude::*;

use super::arithmetic::{Columns, Constants, Factor};
use super::lane_views::{
    CanonicalSink, Contiguous, FromBuffer, FromView, LaneView, ScaledSink, Strided, ToBuffer,
    Twisted, WORDS,
};
use super::network::Network;
use super::tables::{Chain, Twist, network, scale};
use crate::ntt::Transforms;
use crate::x86_64_avx512ifma::modulus::Scalar;

/// The smallest number of points: eight lanes, and as many points in each.
pub(crate) const SMALLEST: usize = 64;
/// Elements between the end of a row of the scratch and the next: rows a power of two of bytes apart
/// would share few sets of a cache.
const PADDING: usize = 8;
/// The smallest size whose work is divided among threads.
const PARALLEL: usize = 1 << 11;

/// Transforms by powers of ω, and on the coset by `shift`; tables of O(√n) are made when first
/// needed, one set for each kind of transform (about 500·√n bytes each).
pub(crate) struct NttPlan<P: Constants> {
    rows: usize,
    columns: usize,
    root: Scalar<P, 4>,
    shift: Scalar<P, 4>,
    forward: OnceLock<Transform>,
    inverse: OnceLock<Transform>,
    coset_forward: OnceLock<Transform>,
    coset_inverse: OnceLock<Transform>,
    extend: OnceLock<Extension>,
    /// Scratch of n elements, kept between transforms.
    scratch: Mutex<Option<Vec<u64>>>,
}

/// A transform from natural to natural order.
struct Transform {
    columns: Arc<Network>,
    chains: Vec<Chain>,
    rows: Arc<Network>,
    /// The factor of output k₁ + n₁·k₂, for each k₂; empty if outputs are not scaled.
    scales: Vec<Factor>,
}

/// A transform of evaluations on the subgroup to evaluations on the coset.
struct Extension {
    columns_inverse: Network,
    chains_inverse: Vec<Chain>,
    rows_inverse: Network,
    rows_forward: Network,
    chains_forward: Vec<Chain>,
    columns_forward: Network,
}

/// Pointer to a matrix of elements, whose blocks are divided among threads.
#[derive(Clone, Copy)]
struct Matrix {
    words: *mut u64,
    /// Elements from a row to the next.
    pitch: usize,
}

// SAFETY: what is behind the pointer is only used block by block, and blocks do not overlap.
unsafe impl Send for Matrix {}
// SAFETY: as above.
unsafe impl Sync for Matrix {}

impl Matrix {
    /// The same elements as rows of `pitch` of them, by the same pointer: a second one taken from the
    /// slice would end this one's right to it.
    fn with_rows_of(self, pitch: usize) -> Self {
        Self { pitch, ..self }
    }

    /// Eight columns.
    fn columns(self, block: usize) -> Contiguous {
        Contiguous::new(self.words.wrapping_add(WORDS * 8 * block), self.pitch)
    }

    /// Eight rows.
    fn rows(self, block: usize) -> Strided {
        let words = self.words.wrapping_add(WORDS * 8 * block * self.pitch);
        Strided::new(words, self.pitch)
    }
}

// === impl NttPlan ===

impl<P: Constants> NttPlan<P> {
    /// The transforms over `points` points, a power of two of at least [`SMALLEST`], with a `root` of that order.
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

    fn matrix(&self, values: &mut [Scalar<P, 4>], pitch: usize) -> Matrix {
        const { assert!(size_of::<Scalar<P, 4>>() == 8 * WORDS) };
        assert_eq!(values.len(), self.rows * self.columns);
        // An element is its four Montgomery words and a marker of no size.
        Matrix {
            words: values.as_mut_ptr().cast(),
            pitch,
        }
    }

    fn run(&self, transform: &Transform, values: &mut [Scalar<P, 4>]) {
        let (rows, columns) = (self.rows, self.columns);
        let inputs = self.matrix(values, columns);
        let outputs = inputs.with_rows_of(rows);
        let pitch = columns + PADDING;
        let mut scratch = self.take_scratch(rows * pitch * WORDS);
        let between = Matrix {
            words: scratch.as_mut_ptr(),
            pitch,
        };
        self.each_block(columns / 8, rows, |buffers, block| {
            let (source, target) = (inputs.columns(block), between.columns(block));
            let chain = &transform.chains[block];
            // SAFETY: a plan is made only where the instructions are; blocks are disjoint.
            unsafe { twisted::<P>(&transform.columns, source, buffers[0], chain, target) }
        });
        self.each_block(rows / 8, columns, |buffers, block| {
            let (source, target) = (between.rows(block), outputs.columns(block));
            // SAFETY: as above; the first step has written all that is read.
            unsafe {
                if transform.scales.is_empty() {
                    finished::<P, _>(&transform.rows, source, buffers[0], target);
                } else {
                    let scales = &transform.scales;
                    scaled::<P>(&transform.rows, source, buffers[0], scales, target);
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

impl<P: Constants> Transforms<Scalar<P, 4>> for NttPlan<P> {
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

    /// Works in place in three steps: columns, rows inverse and forward, columns. Coefficient k₁ + n₁·k₂
    /// occurs in row k₁.
    fn coset_extend(&self, values: &mut [Scalar<P, 4>]) {
        let extension = self.extend.get_or_init(|| self.extension());
        let (rows, columns) = (self.rows, self.columns);
        let whole = self.matrix(values, columns);
        self.each_block(columns / 8, rows, |buffers, block| {
            let place = whole.columns(block);
            let chain = &extension.chains_inverse[block];
            // SAFETY: a plan is made only where the instructions are; blocks are disjoint.
            unsafe { twisted::<P>(&extension.columns_inverse, place, buffers[0], chain, place) }
        });
        self.each_block(rows / 8, columns, |buffers, block| {
            let place = whole.rows(block);
            let chain = &extension.chains_forward[block];
            // SAFETY: as above.
            unsafe {
                back_and_forth::<P>(
                    &extension.rows_inverse,
                    &extension.rows_forward,
                    place,
                    buffers,
                    chain,
                );
            }
        });
        self.each_block(columns / 8, rows, |buffers, block| {
            let place = whole.columns(block);
            // SAFETY: as above.
            unsafe { finished::<P, _>(&extension.columns_forward, place, buffers[0], place) }
        });
    }
}

fn invert<F: FftField>(value: F) -> F {
    value
        .inverse()
        .expect("roots, shifts and sizes are not zero")
}

/// # Safety
///
/// Here and below: the instructions of this back end; places and buffers good for the networks' sizes.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
unsafe fn twisted<P: Constants>(
    network: &Network,
    source: Contiguous,
    buffer: *mut Columns,
    chain: &Chain,
    target: Contiguous,
) {
    // SAFETY: as the caller promises; so below.
    unsafe {
        let source = FromView::<P, _>::new(source);
        let mut sink = Twisted::<P, _>::new(target, chain);
        network.transform::<P, _>(&source, buffer, &mut sink);
    }
}

/// # Safety
///
/// As for [`twisted`].
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
unsafe fn finished<P: Constants, V: LaneView>(
    network: &Network,
    source: V,
    buffer: *mut Columns,
    target: Contiguous,
) {
    // SAFETY: see above.
    unsafe {
        let source = FromView::<P, _>::new(source);
        let mut sink = CanonicalSink::<P, _>::new(target);
        network.transform::<P, _>(&source, buffer, &mut sink);
    }
}

/// # Safety
///
/// As for [`twisted`].
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma,avx512vbmi2")]
unsafe fn scaled<P: Constants>(
    network: &Network,
    source: Strided,
    buffer: *mut Columns,
    scales: &[Factor],
    target: Contiguous,
) {
    // SAFETY: see above.
    unsafe {
        let source = FromView::<P, _>::new(source);
        let mut sink = ScaledSink::<P, _>::new(target, scales);
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
    place: Strided,
    buffers: [*mut Columns; 2],
    chain: &Chain,
) {
    // SAFETY: see above.
    unsafe {
        let source = FromView::<P, _>::new(place);
        back.transform::<P, _>(&source, buffers[0], &mut ToBuffer(buffers[1]));
        let mut sink = Twisted::<P, _>::new(place, chain);
        forth.transform::<P, _>(&FromBuffer(buffers[1]), buffers[0], &mut sink);
    }
}
