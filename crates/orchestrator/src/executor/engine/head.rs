//! The head of the chain at the engines: the lowest block with a task in progress.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Number of tasks in progress for each block.
#[derive(Debug, Default)]
pub(super) struct BlocksInProgress(Mutex<BTreeMap<u64, usize>>);

/// Marks a task of a block as in progress until it is dropped.
pub(super) struct TaskInProgress<'a> {
    blocks: &'a BlocksInProgress,
    block: u64,
}

// === impl BlocksInProgress ===

impl BlocksInProgress {
    /// Marks a task of `block` as in progress.
    pub(super) fn begin(&self, block: u64) -> TaskInProgress<'_> {
        self.change(|blocks| *blocks.entry(block).or_default() += 1);
        TaskInProgress {
            blocks: self,
            block,
        }
    }

    fn change<T>(&self, change: impl FnOnce(&mut BTreeMap<u64, usize>) -> T) -> T {
        // No code panics under this lock.
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

// === impl TaskInProgress ===

impl TaskInProgress<'_> {
    /// Whether no task of a lower block is in progress.
    pub(super) fn is_head(&self) -> bool {
        let first = self.blocks.change(|blocks| blocks.keys().next().copied());
        first.is_none_or(|first| self.block <= first)
    }
}

impl Drop for TaskInProgress<'_> {
    fn drop(&mut self) {
        self.blocks.change(|blocks| {
            if let Some(tasks) = blocks.get_mut(&self.block) {
                *tasks -= 1;
                if *tasks == 0 {
                    blocks.remove(&self.block);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_block_is_the_head() {
        let blocks = BlocksInProgress::default();
        let five = blocks.begin(5);
        assert!(five.is_head());
        let (three, copy) = (blocks.begin(3), blocks.begin(3));
        assert!(three.is_head() && copy.is_head() && !five.is_head());
        drop(three);
        assert!(!five.is_head());
        drop(copy);
        assert!(five.is_head());
    }
}
