//! Sources of requests.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use super::request::QueueKey;
use super::standing::Standing;
use super::{Lane, Micros, Ticket};
use crate::verdict::Verdict;

/// The order key of a source: the priority of its first request, then the time for which it was served.
pub(super) type Turn = (Reverse<u8>, u64, Arc<str>);

#[derive(Debug, Default)]
pub(super) struct Source {
    /// Requests that are not reduced yet.
    pub(super) queue: BTreeSet<QueueKey>,
    /// Requests that are held back until more verdicts about the source are known.
    pub(super) held: BTreeSet<QueueKey>,
    /// All requests under way.
    pub(super) tickets: BTreeSet<Ticket>,
    pub(super) bytes: usize,
    pub(super) standing: Standing,
    /// Requests that were served, in the time of the lane.
    pub(super) served: u64,
    /// The order key of the source among those with queued requests.
    pub(super) turn: Option<Turn>,
    pub(super) ids: HashMap<Arc<str>, Known>,
    /// Ids with a verdict, the oldest first.
    pub(super) settled: VecDeque<Arc<str>>,
    pub(super) last_seen: Micros,
    pub(super) counts: Counts,
}

/// The request or the verdict of an id.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) digest: [u8; 32],
    pub(super) state: State,
}

#[derive(Clone, Debug)]
pub(super) enum State {
    UnderWay(Ticket),
    Settled(Verdict),
}

/// Verdicts by their status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) valid: u64,
    pub(super) invalid: u64,
    pub(super) unavailable: u64,
}

/// State of a source, for display and metrics.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceReport {
    /// The source's name.
    pub source: Arc<str>,
    /// Requests under way.
    pub under_way: usize,
    /// Whether its proofs are checked apart from those of others.
    pub is_quarantined: bool,
    /// Verdicts so far, while it is remembered.
    pub valid: u64,
    /// Like `valid`, for invalid proofs.
    pub invalid: u64,
    /// Like `valid`, for requests without a verdict about the proof.
    pub unavailable: u64,
}

/// Number of verdicts of a source that are remembered, to answer a repeated id.
const VERDICTS_REMEMBERED: usize = 1024;

// === impl Source ===

impl Source {
    pub(super) fn lane(&self) -> Lane {
        match self.standing.is_good() {
            true => Lane::Trusted,
            false => Lane::Quarantine,
        }
    }

    /// The next order key of the source; `None` if its queue is empty.
    pub(super) fn next_turn(&self, name: &Arc<str>) -> Option<Turn> {
        let (priority, ..) = self.queue.first()?;
        Some((*priority, self.served, name.clone()))
    }

    /// Whether one more of its requests may be worked on beside those of others.
    pub(super) fn may_begin(&self) -> bool {
        self.released() < self.standing.allowance()
    }

    /// Whether more of its requests may be worked on now than may be beside those of others.
    pub(super) fn is_beyond_allowance(&self) -> bool {
        self.released() > self.standing.allowance()
    }

    /// Requests that are not held back.
    fn released(&self) -> usize {
        self.tickets.len() - self.held.len()
    }

    pub(super) fn remember(&mut self, id: &Arc<str>, verdict: Verdict) {
        let Some(known) = self.ids.get_mut(id) else {
            return;
        };
        known.state = State::Settled(verdict);
        self.settled.push_back(id.clone());
        if self.settled.len() > VERDICTS_REMEMBERED
            && let Some(oldest) = self.settled.pop_front()
        {
            self.ids.remove(&oldest);
        }
    }

    pub(super) fn report(&self, source: &Arc<str>) -> SourceReport {
        SourceReport {
            source: source.clone(),
            under_way: self.tickets.len(),
            is_quarantined: !self.standing.is_good(),
            valid: self.counts.valid,
            invalid: self.counts.invalid,
            unavailable: self.counts.unavailable,
        }
    }
}
