//! Consequences of log records that wait until the records are on disk.

use std::collections::VecDeque;

use proofmill_bus::Seq;

/// Consequences of records that are appended but not durable yet.
pub(super) struct PendingDurability<T> {
    /// Consequences with the sequence numbers of their records, in ascending order.
    waiting: VecDeque<(Seq, T)>,
}

// === impl PendingDurability ===

impl<T> PendingDurability<T> {
    pub(super) fn new() -> Self {
        Self {
            waiting: VecDeque::new(),
        }
    }

    /// Adds the consequence of the record at `seq`, which must not be before any other waiting one.
    pub(super) fn push(&mut self, seq: Seq, consequence: T) {
        let last = self.waiting.back().map(|(last, _)| *last);
        debug_assert!(last <= Some(seq), "records are appended in order");
        self.waiting.push_back((seq, consequence));
    }

    /// The next consequence whose record is durable, given that all records up to `reached` are.
    pub(super) fn next(&mut self, reached: Seq) -> Option<T> {
        self.waiting.front().filter(|(seq, _)| *seq <= reached)?;
        self.waiting.pop_front().map(|(_, consequence)| consequence)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Panics if the order is not that of the log.
    #[cfg(test)]
    pub(super) fn check(&self) {
        assert!(self.waiting.iter().is_sorted_by_key(|(seq, _)| *seq));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consequences_come_in_order_and_never_before_their_record_is_durable() {
        let mut pending = PendingDurability::new();
        for seq in [2, 2, 5] {
            pending.push(Seq(seq), seq);
        }
        pending.check();
        assert_eq!(pending.next(Seq(1)), None);
        assert_eq!(pending.next(Seq(4)), Some(2));
        assert_eq!(pending.next(Seq(4)), Some(2));
        assert_eq!(pending.next(Seq(4)), None);
        assert!(!pending.is_empty());
        assert_eq!(pending.next(Seq(5)), Some(5));
        assert!(pending.is_empty());
    }
}
