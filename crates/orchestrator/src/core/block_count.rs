//! Numbers of tasks by block.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Number of tasks, by their first block.
#[derive(Default)]
pub(super) struct BlockCount {
    by_block: BTreeMap<u64, usize>,
    total: usize,
}

// === impl BlockCount ===

impl BlockCount {
    /// One empty count for each of `stages` stages.
    pub(super) fn each(stages: usize) -> Vec<Self> {
        (0..stages).map(|_| Self::default()).collect()
    }

    pub(super) fn add(&mut self, block: u64) {
        *self.by_block.entry(block).or_default() += 1;
        self.total += 1;
    }

    pub(super) fn remove(&mut self, block: u64) {
        let Some(count) = self.by_block.get_mut(&block) else {
            return;
        };
        *count -= 1;
        self.total -= 1;
        if *count == 0 {
            self.by_block.remove(&block);
        }
    }

    /// Whether there are tasks whose first block is in this range.
    pub(super) fn has(&self, blocks: &RangeInclusive<u64>) -> bool {
        self.by_block.range(blocks.clone()).next().is_some()
    }

    pub(super) fn total(&self) -> usize {
        self.total
    }

    pub(super) fn lowest(&self) -> Option<u64> {
        self.by_block.first_key_value().map(|(block, _)| *block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_block_and_the_total_follow_what_is_added_and_removed() {
        let mut count = BlockCount::default();
        assert_eq!((count.total(), count.lowest()), (0, None));
        for block in [7, 5, 5, 9] {
            count.add(block);
        }
        assert_eq!((count.total(), count.lowest()), (4, Some(5)));
        count.remove(5);
        assert!(count.has(&(0..=5)) && !count.has(&(6..=6)));
        count.remove(5);
        // No task of this block is left to remove.
        count.remove(5);
        assert_eq!((count.total(), count.lowest()), (2, Some(7)));
    }
}
