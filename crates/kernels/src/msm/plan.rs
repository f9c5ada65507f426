//! The plan of a product (windows, buckets and tasks), chosen by a model of costs.

use super::recode::{Windows, bit_length};

/// Costs of the steps of a product on one thread, in nanoseconds. [`calibrate`](fn@crate::calibrate) measures them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// Adding a point to a bucket, scheduling included.
    pub(crate) addition: f64,
    /// Summing up one bucket.
    pub(crate) bucket: f64,
    /// Converting a base to the back end's layout.
    pub(crate) load: f64,
    /// The endomorphism of a base, and splitting its scalar.
    pub(crate) split: f64,
    /// The inversion that a batch shares.
    pub(crate) inversion: f64,
}

/// The plan by which a product is computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MsmPlan {
    /// Whether scalars are split by the endomorphism.
    pub(crate) split: bool,
    /// The digits.
    pub(crate) windows: Windows,
    /// Windows that one task takes together.
    pub(crate) group: usize,
    /// Parts into which the bases are cut; different tasks take them.
    pub(crate) chunks: usize,
}

/// The properties of a product's scalars, and of the thread pool, that a plan depends on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shape {
    /// The number of scalars.
    pub(crate) count: usize,
    /// Bit lengths of at most [`SAMPLE`] of them.
    pub(crate) sample: Vec<usize>,
    /// Threads to keep busy.
    pub(crate) threads: usize,
}

/// The bases of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bases {
    /// In arkworks' layout.
    Unprepared,
    /// In the back end's layout, with multiples that are `copy_bits` bits apart.
    Prepared { copies: usize, copy_bits: usize },
}

/// Scalars sampled for a [`Shape`].
const SAMPLE: usize = 512;
/// Widest windows considered: 2¹⁹ buckets.
const WIDEST: usize = 20;
/// The most buckets of a task's group of windows, unless one window has more: as many as a core's
/// second-level cache holds.
const GROUP_BUCKETS: usize = 3 << 13;

// === impl Shape ===

impl Shape {
    /// The shape of `count` scalars; `magnitude` returns the words of the magnitude of each.
    pub(crate) fn new(count: usize, magnitude: impl Fn(usize) -> [u64; 4]) -> Self {
        // A stride that is prime to any power of two: witnesses have patterns.
        let step = (count / SAMPLE).max(1) | 1;
        let sample = (0..count.min(SAMPLE))
            .map(|i| bit_length(&magnitude(i * step % count)))
            .collect();
        Self {
            count,
            sample,
            threads: rayon::current_num_threads(),
        }
    }

    /// Digits other than zero that a scalar has, on average, with windows of `width` bits.
    fn digits(&self, width: f64, parts: usize, part_bits: usize) -> f64 {
        let mean = |bits: usize| {
            // A half-size scalar has one part, a full-size one has both.
            let parts_used = bits
                .div_ceil(part_bits.max(1))
                .min(parts)
                .max(usize::from(bits > 0));
            let bits_each = (bits as f64 / parts_used.max(1) as f64).min(part_bits as f64);
            parts_used as f64 * (bits_each / width).ceil()
        };
        self.sample.iter().map(|bits| mean(*bits)).sum::<f64>() / self.sample.len().max(1) as f64
    }
}

// === impl Bases ===

impl Bases {
    /// The divisions into windows that may be chosen for numbers up to `largest`. None is of one bit, which would
    /// gain nothing; where copies fix the bits that all windows have, a last one of one bit would overflow.
    pub(crate) fn windows(self, largest: &[u64; 4]) -> Vec<Windows> {
        match self {
            Self::Prepared { copies, copy_bits } if copies > 1 => {
                let counts = copy_bits.div_ceil(WIDEST)..=copy_bits / 2;
                counts
                    .map(|count| Windows::covering(count, copies, copy_bits))
                    .collect()
            }
            Self::Unprepared | Self::Prepared { .. } => {
                let bits = bit_length(largest) + 1;
                let counts = bits.div_ceil(WIDEST)..=bits / 2;
                counts.map(|count| Windows::even(count, largest)).collect()
            }
        }
    }
}

// === impl MsmPlan ===

impl MsmPlan {
    /// The cheapest plan. `ways` are the ways scalars may be taken: split or not, and the largest
    /// magnitude of a part.
    pub(crate) fn choose(
        shape: &Shape,
        costs: &Costs,
        bases: Bases,
        ways: &[(bool, [u64; 4])],
    ) -> Self {
        let loaded = bases != Bases::Unprepared;
        let mut best: Option<(f64, Self)> = None;
        for (split, largest) in ways {
            let part_bits = bit_length(largest);
            let parts = 1 + usize::from(*split);
            for windows in bases.windows(largest) {
                let count = windows.widths.len();
                let buckets = 1usize << (windows.widest() - 1);
                let width = windows.copy_bits() as f64 / count as f64;
                let digits = shape.digits(width, parts, part_bits);
                let per_base = if loaded {
                    0.0
                } else {
                    costs.load + if *split { costs.split } else { 0.0 }
                };
                let conversion = shape.count as f64 * per_base / shape.threads as f64;
                for (group, chunks) in divisions(count, buckets, shape.threads) {
                    // Additions of a task that takes all windows of a group, for each window.
                    let additions = shape.count as f64 * digits / (count * chunks) as f64;
                    let batch = (group * buckets / 8).clamp(64, 4096) as f64;
                    let window = additions * (costs.addition + costs.inversion / batch)
                        + buckets as f64 * costs.bucket;
                    let batches_of_sums = 2.0 * f64::from(buckets.ilog2());
                    let per_task = costs.inversion * (1.0 + batches_of_sums);
                    let task = |windows: usize| per_task + windows as f64 * window;
                    let total = conversion + makespan(count, group, chunks, shape.threads, task);
                    if best.as_ref().is_none_or(|(cost, _)| total < *cost) {
                        best = Some((
                            total,
                            Self {
                                split: *split,
                                windows: windows.clone(),
                                group,
                                chunks,
                            },
                        ));
                    }
                }
            }
        }
        best.expect("there is always a plan").1
    }
}

/// The candidate divisions of a product into tasks: windows of a task, and parts of the bases.
pub(crate) fn divisions(
    windows: usize,
    buckets: usize,
    threads: usize,
) -> impl Iterator<Item = (usize, usize)> {
    let mut last = 0;
    (1..=windows)
        .map(move |groups| windows.div_ceil(groups))
        .filter(move |group| *group != std::mem::replace(&mut last, *group))
        .filter(move |group| *group == 1 || group * buckets <= GROUP_BUCKETS)
        .flat_map(move |group| {
            [1, 2, 4, 8, 16]
                .into_iter()
                .filter(move |chunks| *chunks <= threads)
                .map(move |chunks| (group, chunks))
        })
}

/// The time at which the last thread is done with `chunks` times the windows, taken by groups. `time` is the
/// time of a task with the given number of windows.
fn makespan(
    windows: usize,
    group: usize,
    chunks: usize,
    threads: usize,
    time: impl Fn(usize) -> f64,
) -> f64 {
    let full = windows / group * chunks;
    let rest = windows % group;
    let (rounds, last) = (full / threads, full % threads);
    let full_time = |rounds: usize| rounds as f64 * time(group);
    if rest == 0 {
        return full_time(full.div_ceil(threads));
    }
    // Tasks of fewer windows fill the threads that the last round of full ones leaves idle.
    let small = chunks.div_ceil(threads - last) as f64 * time(rest);
    (full_time(rounds) + small).max(full_time(full.div_ceil(threads)))
}

#[cfg(test)]
mod tests {
    use ark_ec::short_weierstrass::SWCurveConfig;

    use super::super::endomorphism::Endomorphism;
    use super::super::recode::Split;
    use super::*;

    fn check<P: SWCurveConfig>() {
        let map = Endomorphism::<P>::of_curve().expect("the curve has an endomorphism");
        for split in [Split::Whole, Split::Halves(map)] {
            let largest = split.largest();
            let prepared = (2..=bit_length(&largest)).map(|copies| Bases::Prepared {
                copies,
                copy_bits: Windows::copy_bits_for(copies, &largest).max(2),
            });
            for bases in prepared.chain([Bases::Unprepared]) {
                let candidates = bases.windows(&largest);
                assert!(!candidates.is_empty(), "{bases:?}");
                for windows in candidates {
                    assert!(windows.holds(&largest), "{bases:?}, {windows:?}");
                    assert!(windows.widths.iter().all(|width| *width > 1));
                }
            }
        }
    }

    #[test]
    fn all_windows_hold_the_largest_number() {
        on_every_curve!(check);
    }
}
