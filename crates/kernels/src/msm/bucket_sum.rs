//! `Σ (i + 1)·Bᵢ` over the buckets of a window, by affine additions in batches.
//!
//! Folding the upper half of the buckets onto the lower one, `Bᵢ += Bᵢ₊ₕ` for i below h, leaves a window of
//! half the size; the upper half keeps the buckets with the additional weight h. After folding down to one
//! bucket, which is the sum of all, the places `2ᵇ..2ᵇ⁺¹` hold the buckets whose index has bit b set; they
//! are summed up by halving, all those places together. That is two affine additions for each bucket, where a
//! running sum takes two projective ones, and the additions are of adjacent points.

use ark_ff::{AdditiveGroup, Zero};

use super::point_kernel::{PointAddition, PointKernel, Projective};

/// The buckets of several windows, the same number for each.
pub(crate) struct Buckets<'a, K: PointKernel> {
    pub(crate) points: &'a mut K::Points,
    /// For each bucket, whether it holds a point.
    pub(crate) occupied: Vec<bool>,
    pub(crate) scratch: &'a mut K::Scratch,
}

// === impl Buckets ===

impl<K: PointKernel> Buckets<'_, K> {
    /// The weighted sum of each of `windows` windows. Its size is a power of two.
    pub(crate) fn weighted_sums(mut self, windows: usize) -> Vec<Projective<K>> {
        let size = self.occupied.len() / windows;
        debug_assert!(size.is_power_of_two() && size * windows == self.occupied.len());
        let bits = size.ilog2();
        let starts = || (0..windows).map(|window| window * size);
        for bit in (0..bits).rev() {
            self.fold(1 << bit, starts());
        }
        // Regions with more than 2ᵇ places to sum up have 2ᵇ⁺¹ places left.
        for bit in (0..bits.saturating_sub(1)).rev() {
            let regions = (bit + 1..bits).map(|region| 1 << region);
            self.fold(
                1 << bit,
                regions.flat_map(|region| starts().map(move |start| start + region)),
            );
        }
        starts().map(|start| self.combine(start, size)).collect()
    }

    /// `points[start + i] += points[start + half + i]` for i below `half`, for each start.
    fn fold(&mut self, half: usize, starts: impl Iterator<Item = usize>) {
        let mut jobs = Vec::with_capacity(K::BATCH);
        for start in starts {
            for target in start..start + half {
                let source = target + half;
                if !self.occupied[source] {
                    continue;
                }
                if !self.occupied[target] {
                    self.occupied[target] = true;
                    K::copy_within(self.points, target, source);
                    continue;
                }
                jobs.push(PointAddition {
                    source: (source as u32) << 1,
                    target: target as u32,
                });
                if jobs.len() == K::BATCH {
                    self.add(&mut jobs);
                }
            }
        }
        self.add(&mut jobs);
    }

    fn add(&mut self, jobs: &mut Vec<PointAddition>) {
        if !jobs.is_empty() {
            for target in K::add(self.points, None, jobs, self.scratch) {
                self.occupied[target as usize] = false;
            }
            jobs.clear();
        }
    }

    /// `Σ 2ᵇ·S_b`, the sums being at `2ᵇ`, and the sum of all, which is at 0.
    fn combine(&self, start: usize, size: usize) -> Projective<K> {
        let mut total = Projective::<K>::zero();
        for bit in (0..size.ilog2()).rev() {
            total.double_in_place();
            let sum = start + (1 << bit);
            if self.occupied[sum] {
                total += K::get(self.points, sum);
            }
        }
        if self.occupied[start] {
            total += K::get(self.points, start);
        }
        total
    }
}
