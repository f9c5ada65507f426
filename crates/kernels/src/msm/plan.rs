//! Which windows, how many buckets, how many tasks: chosen by a model of costs.

use super::recode::{Windows, bit_length};

/// What steps cost on one thread, in nanoseconds. [`calibrate`](fn@crate::calibrate) measures them.
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

/// How a product is computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Whether scalars are split by the endomorphism.
    pub(crate) split: bool,
    /// The digits.
    pub(crate) windows: Windows,
    /// Windows whose buckets one task fills together.
    pub(crate) group: usize,
    /// Parts of the bases that tasks take apart.
    pub(crate) chunks: usize,
}

/// The scalars of a product, as far as a plan depends on them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shape {
    /// How many there are.
    pub(crate) count: usize,
    /// Bit lengths of some of them.
    pub(crate) sample: Vec<usize>,
    /// Threads to keep busy.
    pub(crate) threads: usize,
}

/// The bases of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bases {
    /// As arkworks has them.
    Unprepared,
    /// In the back end's layout, with multiples that are `copy_bits` bits apart.
    Prepared { copies: usize, copy_bits: usize },
}

/// Scalars a shape samples.
const SAMPLE: usize = 512;
/// Widest windows considered: 2¹⁹ buckets.
const WIDEST: u32 = 20;
/// Buckets of a task's group of windows, as far as one window has not more.
const GROUP_BUCKETS: usize = 1 << 14;

// === impl Shape ===

impl Shape {
    /// Of `count` scalars, whose magnitudes' words `magnitude` gives.
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

// === impl Plan ===

impl Plan {
    /// The cheapest plan. `ways` are the ways scalars may be taken: split or not, and the largest
    /// magnitude of a part.
    pub(crate) fn choose(
        shape: &Shape,
        costs: &Costs,
        bases: Bases,
        ways: &[(bool, [u64; 4])],
    ) -> Self {
        let (copies, loaded) = match bases {
            Bases::Unprepared => (1, false),
            Bases::Prepared { copies, .. } => (copies, true),
        };
        let mut best: Option<(f64, Self)> = None;
        for (split, largest) in ways {
            let part_bits = bit_length(largest);
            let parts = 1 + usize::from(*split);
            let fewest = (part_bits + 1).div_ceil(copies * WIDEST as usize);
            let most = (part_bits + 1).div_ceil(2 * copies);
            for count in fewest..=most {
                let windows = match bases {
                    Bases::Prepared { copies, copy_bits } if copies > 1 => {
                        Windows::covering(count, copies, copy_bits)
                    }
                    _ => Windows::even(count, copies, largest),
                };
                let buckets = 1usize << (windows.widest() - 1);
                let groups = [GROUP_BUCKETS / buckets, count.div_ceil(shape.threads)];
                let group = groups.into_iter().min().unwrap_or(1).clamp(1, count);
                let width = windows.copy_bits() as f64 / count as f64;
                let digits = shape.digits(width, parts, part_bits);
                for chunks in [1, 2, 4, 8, 16].into_iter().filter(|c| *c <= shape.threads) {
                    let tasks = count.div_ceil(group) * chunks;
                    let rounds = tasks.div_ceil(shape.threads) as f64;
                    let additions = shape.count as f64 * digits / tasks as f64;
                    let batch = (group * buckets / 8).clamp(64, 4096) as f64;
                    let per_task = additions * (costs.addition + costs.inversion / batch)
                        + costs.inversion
                        + (group * buckets) as f64 * costs.bucket;
                    let per_base = if loaded { 0.0 } else { costs.load }
                        + if *split && !loaded { costs.split } else { 0.0 };
                    let total =
                        rounds * per_task + shape.count as f64 * per_base / shape.threads as f64;
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
