//! Groups of claims that may be checked together.

use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::{Lane, Micros, Ticket};

/// Key of a group: a kind, and either all sources in good standing or one source in the quarantine lane.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GroupKey {
    pub(super) kind: usize,
    /// The source, in the quarantine lane; `None` in the trusted lane.
    pub(super) source: Option<Arc<str>>,
}

/// Order key of a claim that waits for its check: by priority, then by arrival.
pub(super) type Reduced = (Reverse<u8>, Ticket);

#[derive(Debug, Default)]
pub(super) struct Group {
    /// Claims that wait for their check, in the order in which they will be checked.
    reduced: BTreeSet<Reduced>,
    /// The time at which each claim was reduced, oldest first; may include claims that have left the group.
    arrivals: VecDeque<(Micros, Reduced)>,
    /// Requests that are queued or being reduced.
    pub(super) coming: usize,
    /// Checks that are running.
    pub(super) checks: usize,
    /// Microseconds that the last check took; 0 before the first one.
    pub(super) last_check: u64,
}

/// Longest time that a claim waits for others while more are coming, in multiples of the last check's
/// duration. With a smaller factor, batches under load stay as small as the first one was.
const WAIT_CHECK_MULTIPLE: u64 = 4;

// === impl GroupKey ===

impl GroupKey {
    pub(super) fn lane(&self) -> Lane {
        match self.source {
            None => Lane::Trusted,
            Some(_) => Lane::Quarantine,
        }
    }
}

// === impl Group ===

impl Group {
    pub(super) fn insert(&mut self, claim: Reduced, since: Micros) {
        self.reduced.insert(claim);
        // Claims of a source that changes its lane may be older than those of the group.
        let place = self.arrivals.partition_point(|(other, _)| *other <= since);
        self.arrivals.insert(place, (since, claim));
    }

    /// Removes a claim; true if it was in the group.
    pub(super) fn remove(&mut self, claim: Reduced) -> bool {
        self.reduced.remove(&claim)
    }

    /// Whether a check should begin, if `size` claims fill a batch. In the trusted lane, where batches are large and
    /// one check occupies all threads, claims gather while a check is running. In the quarantine lane a full batch
    /// begins beside it, as checks of few claims leave threads idle.
    pub(super) fn is_ripe(&mut self, now: Micros, lane: Lane, size: usize) -> bool {
        while let Some((_, claim)) = self.arrivals.front()
            && !self.reduced.contains(claim)
        {
            self.arrivals.pop_front();
        }
        let Some((oldest, _)) = self.arrivals.front() else {
            return false;
        };
        let patience = WAIT_CHECK_MULTIPLE * self.last_check;
        let is_overdue = patience > 0 && now.since(*oldest) >= patience;
        let is_full = self.reduced.len() >= size;
        match self.checks {
            0 => self.coming == 0 || is_full || is_overdue,
            _ => is_full && lane == Lane::Quarantine,
        }
    }

    /// The claim that is checked first, if there is any.
    pub(super) fn first(&self) -> Option<Reduced> {
        self.reduced.first().copied()
    }

    /// All claims, in the order in which they are checked.
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
