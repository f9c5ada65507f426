//! The whole product, from points in a back end's layout and recoded scalars.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use ark_ff::{AdditiveGroup, Zero};
use rayon::prelude::*;

use super::accumulate::Accumulator;
use super::plan::MsmPlan;
use super::point_kernel::{PointAddition, PointKernel, Projective};
use super::recode::Recoded;

/// Numbers a task reads a window of before it goes on to the next window.
const BLOCK: usize = 1 << 8;

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
        for copy in 0..plan.windows.copies {
            for part in 0..parts {
                for block in bases.clone().step_by(BLOCK) {
                    for (i, window) in group.clone().enumerate() {
                        let first_bucket = (i * buckets) as u32;
                        for base in block..(block + BLOCK).min(bases.end) {
                            let number = part * self.count + base;
                            let digit = self.recoded.digit(number, copy * windows + window);
                            if digit != 0 {
                                let point = (copy * parts + part) * self.count + base;
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
