//! The whole product, from points in a back end's layout and recoded scalars.

use std::sync::{Mutex, PoisonError};

use ark_ff::{AdditiveGroup, Zero};
use rayon::prelude::*;

use super::accumulate::Accumulator;
use super::plan::Plan;
use super::point_kernel::{Job, PointKernel, Projective};
use super::recode::Recoded;

/// Numbers a task reads a window of before it goes on to the next window.
const BLOCK: usize = 1 << 8;

/// `Σ kᵢ·Pᵢ`.
///
/// `points` holds, for each copy, the bases and, if the plan splits scalars, their images:
/// `count` each.
pub(crate) fn pippenger<K: PointKernel>(
    points: &K::Points,
    count: usize,
    plan: &Plan,
    recoded: &Recoded,
) -> Projective<K> {
    let windows = plan.windows.widths.len();
    let parts = 1 + usize::from(plan.split);
    let buckets = 1usize << (plan.windows.widest() - 1);
    let chunk = count.div_ceil(plan.chunks).max(1);
    let tasks: Vec<(usize, usize)> = (0..windows)
        .step_by(plan.group)
        .flat_map(|window| (0..count).step_by(chunk).map(move |start| (window, start)))
        .collect();

    // Buckets are reused by the tasks a thread takes one after the other.
    let idle: Mutex<Vec<Accumulator<K>>> = Mutex::default();
    let sums: Vec<Vec<(usize, Projective<K>)>> = tasks
        .into_par_iter()
        .with_max_len(1)
        .map(|(first, start)| {
            let taken = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let mut accumulator = taken.unwrap_or_else(|| Accumulator::new(plan.group * buckets));
            accumulator.clear();
            let group = first..(first + plan.group).min(windows);
            let range = start..(start + chunk).min(count);
            for copy in 0..plan.windows.copies {
                for part in 0..parts {
                    for block in range.clone().step_by(BLOCK) {
                        for (i, window) in group.clone().enumerate() {
                            let first_bucket = (i * buckets) as u32;
                            for base in block..(block + BLOCK).min(range.end) {
                                let digit =
                                    recoded.digit(part * count + base, copy * windows + window);
                                if digit != 0 {
                                    let point = (copy * parts + part) * count + base;
                                    accumulator.push(
                                        points,
                                        Job {
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
            accumulator.finish(points);
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
