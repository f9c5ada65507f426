//! Claimable tasks in order of priority.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::TaskNo;
use crate::plan::{Needs, StageIx};

/// Priority of a task: lower block first, then retries before first attempts, then the older task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::core) struct Priority {
    block: u64,
    first_attempt: bool,
    no: TaskNo,
}

/// Tasks that the same workers can run and that wait for the same queues downstream.
pub(in crate::core) type Class = Arc<(StageIx, Needs)>;

/// The claimable tasks of one worker group.
#[derive(Default)]
pub(super) struct ReadyQueue {
    classes: BTreeMap<Class, BTreeSet<Priority>>,
    /// The first task of each class, in order: the candidates for the next assignment.
    heads: BTreeMap<Priority, Class>,
    len: usize,
}

// === impl Priority ===

impl Priority {
    pub(super) fn new(block: u64, first_attempt: bool, no: TaskNo) -> Self {
        Self {
            block,
            first_attempt,
            no,
        }
    }

    /// The first block of the task.
    pub(in crate::core) fn block(&self) -> u64 {
        self.block
    }

    pub(in crate::core) fn no(&self) -> TaskNo {
        self.no
    }
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

    /// Whether the heads and the length agree with the classes.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn class(stage: usize) -> Class {
        Arc::new((StageIx(stage), Needs::default()))
    }

    fn first_attempt(block: u64, no: u64) -> Priority {
        Priority::new(block, true, TaskNo::new(no))
    }

    #[test]
    fn the_head_of_each_class_is_its_lowest_block_and_retries_come_first() {
        let mut queue = ReadyQueue::default();
        let (prove, verify) = (class(0), class(1));
        queue.insert(&prove, first_attempt(5, 1));
        queue.insert(&prove, first_attempt(4, 2));
        queue.insert(&verify, first_attempt(4, 3));
        let retry = Priority::new(4, false, TaskNo::new(4));
        queue.insert(&prove, retry);
        assert_eq!(queue.head_of(&prove), Some(retry));
        let heads: Vec<Priority> = queue.heads().map(|(_, head)| head).collect();
        assert_eq!(heads, [retry, first_attempt(4, 3)]);
        queue.remove(&prove, &retry);
        assert_eq!(queue.head_of(&prove), Some(first_attempt(4, 2)));
        assert_eq!((queue.class_len(&prove), queue.len()), (2, 3));
        assert!(queue.is_consistent());
    }
}
