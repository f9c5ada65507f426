//! Durations of which only the median and the number are asked for, in memory that does not grow with them.
//!
//! Durations of the same binary order are counted in 16 buckets, as in an HDR histogram: the median is off by
//! 1/32 at most, and durations below 32 ms are exact.

use std::collections::BTreeMap;

/// Binary logarithm of the number of buckets of one binary order.
const SUB_BUCKETS_LOG: u32 = 4;

/// Durations in milliseconds, by bucket. There are at most 976 buckets.
#[derive(Clone, Debug, Default)]
pub(super) struct Durations {
    buckets: BTreeMap<u32, u64>,
    count: u64,
}

// === impl Durations ===

impl Durations {
    /// Adds a duration.
    pub(super) fn add(&mut self, ms: u64) {
        *self.buckets.entry(bucket(ms)).or_default() += 1;
        self.count += 1;
    }

    /// The median (nearest rank), milliseconds; `None` without a duration.
    pub(super) fn median(&self) -> Option<u64> {
        let rank = self.count.div_ceil(2);
        let mut below = 0;
        let mut buckets = self.buckets.iter();
        let found = buckets.find(|(_, count)| {
            below += *count;
            below >= rank
        });
        found.map(|(bucket, _)| middle(*bucket))
    }
}

/// The bucket of a duration: its binary order, and the four binary digits below the first.
fn bucket(ms: u64) -> u32 {
    let digits = u64::BITS - ms.leading_zeros();
    let shift = digits.saturating_sub(SUB_BUCKETS_LOG + 1);
    (shift << SUB_BUCKETS_LOG) + (ms >> shift) as u32
}

/// The middle of a bucket, milliseconds.
fn middle(bucket: u32) -> u64 {
    let shift = (bucket >> SUB_BUCKETS_LOG).saturating_sub(1);
    let leading = u64::from(bucket - (shift << SUB_BUCKETS_LOG));
    (leading << shift) + ((1 << shift) >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn there_is_no_median_of_nothing_and_short_ones_are_exact() {
        let mut durations = Durations::default();
        assert_eq!(durations.median(), None);
        for ms in [0, 15, 7, 3] {
            durations.add(ms);
        }
        assert_eq!(durations.median(), Some(3));
        durations.add(u64::MAX);
        assert_eq!(durations.median(), Some(7));
    }

    #[test]
    fn the_buckets_are_few_and_in_the_order_of_durations() {
        let largest = bucket(u64::MAX);
        assert!(largest < 976 && middle(largest) > u64::MAX / 32 * 31);
        for ms in 0..100_000 {
            let (this, next) = (bucket(ms), bucket(ms + 1));
            assert!(next == this || next == this + 1, "{ms}");
        }
    }

    proptest! {
        #[test]
        fn the_median_is_off_by_a_32nd_at_most(mut ms in prop::collection::vec(0u64..1 << 50, 1..200)) {
            let mut durations = Durations::default();
            ms.iter().for_each(|ms| durations.add(*ms));
            ms.sort_unstable();
            let exact = ms[ms.len().div_ceil(2) - 1];
            let found = durations.median().expect("there are some");
            prop_assert!(found.abs_diff(exact) <= exact / 32, "{found} beside {exact}");
        }
    }
}
