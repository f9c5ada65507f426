//! Numbers of tasks by block.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Number of tasks, by their first block.
#[derive(Default, PartialEq, Eq)]
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

    /// Number of tasks up to each of these blocks, which must be in order. Takes time in proportion to the blocks up
    /// to the last of them that is not `u64::MAX`.
    pub(super) fn up_to(&self, ends: &[u64]) -> Vec<usize> {
        let mut by_block = self.by_block.iter().peekable();
        let mut count = 0;
        let up_to = ends.iter().map(|end| {
            if *end == u64::MAX {
                return self.total;
            }
            while let Some((_, tasks)) = by_block.next_if(|(block, _)| *block <= end) {
                count += tasks;
            }
            count
        });
        up_to.collect()
    }

    pub(super) fn total(&self) -> usize {
        self.total
    }

    /// Number of the tasks whose first block is `block`; of all tasks if it is `None`.
    pub(super) fn of(&self, block: Option<u64>) -> usize {
        match block {
            Some(block) => self.by_block.get(&block).copied().unwrap_or(0),
            None => self.total,
        }
    }

    /// The first blocks of the tasks, in order.
    pub(super) fn blocks(&self) -> impl Iterator<Item = u64> + '_ {
        self.by_block.keys().copied()
    }

    /// The first blocks of the tasks, from one on, in order.
    pub(super) fn blocks_from(&self, first: u64) -> impl Iterator<Item = u64> + '_ {
        self.by_block.range(first..).map(|(block, _)| *block)
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
        assert_eq!(count.up_to(&[0, 5, 5, 8, u64::MAX]), [0, 1, 1, 2, 3]);
        assert_eq!([Some(5), Some(6), None].map(|it| count.of(it)), [1, 0, 3]);
        assert_eq!(count.blocks().collect::<Vec<_>>(), [5, 7, 9]);
        assert_eq!(count.blocks_from(6).collect::<Vec<_>>(), [7, 9]);
        count.remove(5);
        // No task of this block is left to remove.
        count.remove(5);
        assert_eq!((count.total(), count.lowest()), (2, Some(7)));
    }
}
