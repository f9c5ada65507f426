//! Measurement of the cost model's parameters.

use std::fmt;
use std::time::Instant;

use ark_ff::PrimeField;

use super::accumulate::Accumulator;
use super::endomorphism::Endomorphism;
use super::plan::Costs;
use super::point_kernel::{Affine, PointAddition, PointKernel, Scalar};
use crate::{InstructionSet, MsmGroup};

/// Bases of a measurement; it makes four times as many additions.
const POINTS: usize = 1 << 15;
/// Buckets of a window of 16 bits.
const BUCKETS: usize = 1 << 15;

/// Measured costs of the steps of a product on this machine, on one thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration(pub(crate) Costs);

/// Measures a back end's costs for a group, in about a second. The model's built-in figures are such
/// measurements; they affect widths of windows, never results.
///
/// # Panics
///
/// If this machine lacks the instructions, or `bases` holds fewer than 2¹⁵ points.
pub fn calibrate<G: MsmGroup>(set: InstructionSet, bases: &[G::Affine]) -> Calibration {
    assert!(
        bases.len() >= POINTS,
        "{} bases: {POINTS} are measured",
        bases.len()
    );
    Calibration(G::calibrate(set, &bases[..POINTS]))
}

pub(crate) fn measure<K: PointKernel>(bases: &[Affine<K>]) -> Costs {
    let best_of = |step: &mut dyn FnMut() -> f64| (0..5).map(|_| step()).fold(f64::MAX, f64::min);
    let load = best_of(&mut || {
        let start = Instant::now();
        std::hint::black_box(K::load(bases, bases.len()));
        nanoseconds(start) / bases.len() as f64
    });
    let split = Endomorphism::<K::Curve>::of_curve().map_or(0.0, |map| {
        let mut points = K::load(bases, 2 * bases.len());
        // Full size, as −x² of a word x is.
        let word = Scalar::<K>::from(0x1234_5678_9abc_def1_u64);
        let scalar = (-(word * word)).into_bigint();
        best_of(&mut || {
            let start = Instant::now();
            K::map_endomorphism(&mut points, bases.len(), &map.beta);
            for _ in bases {
                std::hint::black_box(map.split(std::hint::black_box(scalar.as_ref())));
            }
            nanoseconds(start) / bases.len() as f64
        })
    });

    let points = K::load(bases, bases.len());
    // Numbers without a pattern that caches could follow.
    let mut state = 1u64;
    let jobs: Vec<PointAddition> = (0..4 * bases.len())
        .map(|i| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            PointAddition {
                source: ((i % bases.len()) as u32) << 1 | (state >> 40 & 1) as u32,
                target: (state >> 48) as u32 % BUCKETS as u32,
            }
        })
        .collect();
    let mut accumulator = Accumulator::<K>::new(BUCKETS);
    let addition = best_of(&mut || {
        accumulator.clear();
        let start = Instant::now();
        for job in &jobs {
            accumulator.push(&points, *job);
        }
        accumulator.finish(&points);
        nanoseconds(start) / (jobs.len() - BUCKETS) as f64
    });
    let bucket = best_of(&mut || {
        accumulator.clear();
        for job in &jobs {
            accumulator.push(&points, *job);
        }
        accumulator.finish(&points);
        let start = Instant::now();
        std::hint::black_box(accumulator.weighted_sums(1));
        nanoseconds(start) / BUCKETS as f64
    });
    let mut targets = K::load(&bases[..8], 8);
    let few: Vec<PointAddition> = (0..8u32)
        .map(|i| PointAddition {
            source: (100 + i) << 1,
            target: i,
        })
        .collect();
    let mut scratch = K::Scratch::default();
    let inversion = best_of(&mut || {
        let start = Instant::now();
        std::hint::black_box(K::add(&mut targets, Some(&points), &few, &mut scratch));
        nanoseconds(start)
    });
    Costs {
        addition,
        bucket,
        load,
        split,
        inversion,
    }
}

fn nanoseconds(start: Instant) -> f64 {
    start.elapsed().as_nanos() as f64
}

impl fmt::Display for Calibration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Costs {
            addition,
            bucket,
            load,
            split,
            inversion,
        } = self.0;
        write!(
            f,
            "addition {addition:.0} ns, bucket {bucket:.0} ns, load {load:.0} ns, \
             split {split:.0} ns, inversion {inversion:.0} ns"
        )
    }
}
