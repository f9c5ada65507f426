//! Waiting tasks in order of priority.

use std::collections::{BTreeMap, BTreeSet};

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
pub(super) type Class = (StageIx, Needs);

/// The claimable tasks of one worker group.
#[derive(Default)]
pub(super) struct ReadyQueue {
    classes: BTreeMap<Class, BTreeSet<Priority>>,
    len: usize,
}

/// How many tasks wait, by block.
#[derive(Default)]
pub(super) struct BlockCount {
    by_block: BTreeMap<u64, usize>,
    total: usize,
}

// === impl ReadyQueue ===

impl ReadyQueue {
    pub(super) fn insert(&mut self, class: Class, priority: Priority) {
        if self.classes.entry(class).or_default().insert(priority) {
            self.len += 1;
        }
    }

    pub(super) fn remove(&mut self, class: &Class, priority: &Priority) {
        let Some(tasks) = self.classes.get_mut(class) else { return };
        if tasks.remove(priority) {
            self.len -= 1;
        }
        if tasks.is_empty() {
            self.classes.remove(class);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first task of each class.
    pub(super) fn heads(&self) -> impl Iterator<Item = (&Class, Priority)> {
        self.classes.iter().filter_map(|(class, tasks)| Some((class, *tasks.first()?)))
    }

    /// The tasks of a class, in order.
    pub(super) fn of_class(&self, class: &Class) -> impl Iterator<Item = Priority> + '_ {
        self.classes.get(class).into_iter().flatten().copied()
    }

    pub(super) fn class_len(&self, class: &Class) -> usize {
        self.classes.get(class).map_or(0, BTreeSet::len)
    }
}

// === impl BlockCount ===

impl BlockCount {
    pub(super) fn add(&mut self, block: u64) {
        *self.by_block.entry(block).or_default() += 1;
        self.total += 1;
    }

    pub(super) fn remove(&mut self, block: u64) {
        let Some(count) = self.by_block.get_mut(&block) else { return };
        *count -= 1;
        self.total -= 1;
        if *count == 0 {
            self.by_block.remove(&block);
        }
    }

    pub(super) fn total(&self) -> usize {
        self.total
    }

    pub(super) fn lowest(&self) -> Option<u64> {
        self.by_block.first_key_value().map(|(block, _)| *block)
    }
}
