//! The whole product, from points in a back end's layout and recoded scalars.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use ark_ff::{AdditiveGroup, Zero};
use rayon::prelude::*;

use super::accumulate::Accumulator;
use super::plan::MsmPlan;
use super::point_kernel::{PointAddition, PointKernel, Projective};
use super::recode::{BLOCK, Recoded};

/// Points and their scalars.
pub(crate) struct Terms<'a, K: PointKernel> {
    /// For each copy, `count` bases and, if the plan splits scalars, their `count` images.
    pub(crate) points: &'a K::Points,
    pub(crate) count: usize,
    /// The scalars, recoded for the plan's windows.
    pub(crate) recoded: &'a Recoded,
}

/// `Σ kᵢ·Pᵢ` over the terms of one or more lists, which share the buckets.
pub(crate) fn pippenger<K: PointKernel>(lists: &[Terms<'_, K>], plan: &MsmPlan) -> Projective<K> {
    let windows = plan.windows.widths.len();
    let buckets = 1usize << (plan.windows.widest() - 1);
    let tasks: Vec<(usize, usize)> = (0..windows)
        .step_by(plan.group)
        .flat_map(|window| (0..plan.chunks).map(move |chunk| (window, chunk)))
        .collect();

    // Buckets are reused by the tasks a thread takes one after the other.
    let idle: Mutex<Vec<Accumulator<K>>> = Mutex::default();
    let sums: Vec<Vec<(usize, Projective<K>)>> = tasks
        .into_par_iter()
        .with_max_len(1)
        .map(|(first, chunk)| {
            let taken = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let mut accumulator = taken.unwrap_or_else(|| Accumulator::new(plan.group * buckets));
            accumulator.clear();
            let group = first..(first + plan.group).min(windows);
            for terms in lists {
                let size = terms.count.div_ceil(plan.chunks);
                let start = (chunk * size).min(terms.count);
                let bases = start..(start + size).min(terms.count);
                terms.push(&mut accumulator, plan, group.clone(), bases);
                accumulator.finish(terms.points);
            }
            let sums = group.zip(accumulator.weighted_sums(plan.group)).collect();
            idle.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(accumulator);
            sums
        })
        .collect();

    let mut by_window = vec![Projective::<K>::zero(); windows];
    for (window, sum) in sums.into_iter().flatten() {
        by_window[window] += sum;
    }
    let mut total = Projective::<K>::zero();
    for (sum, width) in by_window.iter().zip(&plan.windows.widths).rev() {
        for _ in 0..*width {
            total.double_in_place();
        }
        total += sum;
    }
    total
}

// === impl Terms ===

impl<K: PointKernel> Terms<'_, K> {
    /// Adds some bases to the buckets that their digits in a group of windows name.
    fn push(
        &self,
        accumulator: &mut Accumulator<K>,
        plan: &MsmPlan,
        group: Range<usize>,
        bases: Range<usize>,
    ) {
        let windows = plan.windows.widths.len();
        let parts = 1 + usize::from(plan.split);
        let buckets = 1usize << (plan.windows.widest() - 1);
        let mut places = [0; BLOCK];
        for copy in 0..plan.windows.copies {
            for part in 0..parts {
                // A block is read window by window: numbers that are read once more are still in the cache.
                for block in bases.clone().step_by(BLOCK) {
                    let first = part * self.count + block;
                    let numbers = first..first + BLOCK.min(bases.end - block);
                    for (i, window) in group.clone().enumerate() {
                        let first_bucket = (i * buckets) as u32;
                        let window = copy * windows + window;
                        for place in self.recoded.reaching(numbers.clone(), window, &mut places) {
                            let number = first + usize::from(*place);
                            let digit = self.recoded.digit(number, window);
                            if digit != 0 {
                                let point = copy * parts * self.count + number;
                                accumulator.push(
                                    self.points,
                                    PointAddition {
                                        source: (point as u32) << 1 | u32::from(digit < 0),
                                        target: first_bucket + digit.unsigned_abs() - 1,
                                    },
                                );
                            }
                        }
                    }
                }
            }
        }
    }
}
