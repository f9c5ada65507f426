//! Claims that may be checked together.

use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::{Lane, Micros, Ticket};

/// The claims of one kind: of all sources in good standing, or of one that is apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GroupKey {
    pub(super) kind: usize,
    /// None in the common lane.
    pub(super) source: Option<Arc<str>>,
}

/// A claim that waits for its check: by priority, then as they came.
pub(super) type Reduced = (Reverse<u8>, Ticket);

#[derive(Debug, Default)]
pub(super) struct Group {
    /// Claims that can be checked, in the order in which they are.
    reduced: BTreeSet<Reduced>,
    /// When each of them was reduced, in that order; also of some that have left.
    arrivals: VecDeque<(Micros, Reduced)>,
    /// Requests that are queued or being reduced.
    pub(super) coming: usize,
    /// Checks that are under way.
    pub(super) checks: usize,
    /// Microseconds that the last check took; 0 before there was one.
    pub(super) last_check: u64,
}

/// How many times as long as the last check took a claim waits for others, while more are coming: with
/// less, batches under load stay as small as the first one was.
const PATIENCE: u64 = 4;

// === impl GroupKey ===

impl GroupKey {
    pub(super) fn lane(&self) -> Lane {
        match self.source {
            None => Lane::Common,
            Some(_) => Lane::Apart,
        }
    }
}

// === impl Group ===

impl Group {
    pub(super) fn insert(&mut self, claim: Reduced, since: Micros) {
        self.reduced.insert(claim);
        // A source that changes its lane brings claims that were reduced before.
        let place = self.arrivals.partition_point(|(other, _)| *other <= since);
        self.arrivals.insert(place, (since, claim));
    }

    /// Whether it was there.
    pub(super) fn remove(&mut self, claim: Reduced) -> bool {
        self.reduced.remove(&claim)
    }

    /// Whether a check should begin, where `size` claims fill a batch. While one is under way, claims
    /// gather in the common lane, where batches are large and a check has work for all threads. Apart, a
    /// full batch begins beside it: batches of few claims leave threads idle.
    pub(super) fn is_ripe(&mut self, now: Micros, lane: Lane, size: usize) -> bool {
        while let Some((_, claim)) = self.arrivals.front()
            && !self.reduced.contains(claim)
        {
            self.arrivals.pop_front();
        }
        let Some((oldest, _)) = self.arrivals.front() else {
            return false;
        };
        let patience = PATIENCE * self.last_check;
        let is_overdue = patience > 0 && now.since(*oldest) >= patience;
        let is_full = self.reduced.len() >= size;
        match self.checks {
            0 => self.coming == 0 || is_full || is_overdue,
            _ => is_full && lane == Lane::Apart,
        }
    }

    /// The claim that is checked first, if there is any.
    pub(super) fn first(&self) -> Option<Reduced> {
        self.reduced.first().copied()
    }

    /// All of them, in the order in which they are checked.
    pub(super) fn claims(&self) -> impl Iterator<Item = Reduced> {
        self.reduced.iter().copied()
    }

    /// Number of requests whose check has not begun.
    pub(super) fn waiting(&self) -> usize {
        self.coming + self.reduced.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.reduced.is_empty() && self.coming == 0 && self.checks == 0
    }
}
