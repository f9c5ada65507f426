//! Waiting tasks in order of priority.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::plan::{Needs, StageIx};

/// A task's number: unique for the life of a core, in order of acceptance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct TaskNo(pub(super) u64);

/// Head of chain first: lower block, then retries before first attempts, then the older task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Priority {
    pub(super) block: u64,
    pub(super) first_attempt: bool,
    pub(super) no: TaskNo,
}

/// Tasks that the same workers can run and that wait for the same queues downstream.
pub(super) type Class = Arc<(StageIx, Needs)>;

/// The claimable tasks of one worker group.
#[derive(Default)]
pub(super) struct ReadyQueue {
    classes: BTreeMap<Class, BTreeSet<Priority>>,
    /// The first task of each class, in order: what competes for a worker.
    heads: BTreeMap<Priority, Class>,
    len: usize,
}

/// How many tasks there are, by block.
#[derive(Default)]
pub(super) struct BlockCount {
    by_block: BTreeMap<u64, usize>,
    total: usize,
}

// === impl ReadyQueue ===

impl ReadyQueue {
    pub(super) fn insert(&mut self, class: &Class, priority: Priority) {
        let tasks = self.classes.entry(Arc::clone(class)).or_default();
        let before = tasks.first().copied();
        if !tasks.insert(priority) {
            return;
        }
        self.len += 1;
        if before.is_none_or(|head| priority < head) {
            if let Some(head) = before {
                self.heads.remove(&head);
            }
            self.heads.insert(priority, Arc::clone(class));
        }
    }

    pub(super) fn remove(&mut self, class: &Class, priority: &Priority) {
        let Some(tasks) = self.classes.get_mut(class) else {
            return;
        };
        if !tasks.remove(priority) {
            return;
        }
        self.len -= 1;
        let next = tasks.first().copied();
        if next.is_none() {
            self.classes.remove(class);
        }
        if self.heads.remove(priority).is_some()
            && let Some(next) = next
        {
            self.heads.insert(next, Arc::clone(class));
        }
    }

    /// The first task of each class, in order of priority.
    pub(super) fn heads(&self) -> impl Iterator<Item = (&Class, Priority)> {
        self.heads
            .iter()
            .map(|(priority, class)| (class, *priority))
    }

    /// The first task of a class.
    pub(super) fn head_of(&self, class: &Class) -> Option<Priority> {
        self.classes.get(class)?.first().copied()
    }

    pub(super) fn class_len(&self, class: &Class) -> usize {
        self.classes.get(class).map_or(0, BTreeSet::len)
    }

    /// Whether the heads are those of the classes, and the length is theirs.
    #[cfg(debug_assertions)]
    pub(super) fn is_consistent(&self) -> bool {
        let heads: BTreeMap<Priority, Class> = self
            .classes
            .iter()
            .filter_map(|(class, tasks)| Some((*tasks.first()?, Arc::clone(class))))
            .collect();
        heads == self.heads
            && heads.len() == self.classes.len()
            && self.len == self.classes.values().map(BTreeSet::len).sum::<usize>()
    }

    #[cfg(debug_assertions)]
    pub(super) fn contains(&self, class: &Class, priority: &Priority) -> bool {
        self.classes
            .get(class)
            .is_some_and(|tasks| tasks.contains(priority))
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }
}

// === impl BlockCount ===

impl BlockCount {
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

    /// Whether there are tasks of these blocks.
    pub(super) fn has(&self, blocks: &std::ops::RangeInclusive<u64>) -> bool {
        self.by_block.range(blocks.clone()).next().is_some()
    }

    pub(super) fn total(&self) -> usize {
        self.total
    }

    pub(super) fn lowest(&self) -> Option<u64> {
        self.by_block.first_key_value().map(|(block, _)| *block)
    }
}
