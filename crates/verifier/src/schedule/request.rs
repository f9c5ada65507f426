//! A request in the scheduler.

use std::cmp::Reverse;
use std::sync::Arc;

use super::BatchId;
use super::group::Reduced;

/// Microseconds since the service began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Micros(pub u64);

/// A request that was accepted. Later ones have greater tickets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// A request, as far as scheduling depends on it.
#[derive(Clone, Debug)]
pub struct Submission {
    /// Name of the source, unique among the sources of all clients.
    pub source: Arc<str>,
    /// The request's name among the source's requests.
    pub id: Arc<str>,
    /// The digest of everything that the verdict depends on.
    pub digest: [u8; 32],
    /// The number of its kind.
    pub kind: usize,
    /// The most proofs of its kind that are reduced by one job ([`Kind::reduced_together`]): at least 1.
    ///
    /// [`Kind::reduced_together`]: crate::Kind::reduced_together
    pub reduced_together: usize,
    /// Claims of its kind that are checked side by side, each for itself ([`LoneCosts::lanes`]): at least 1.
    ///
    /// [`LoneCosts::lanes`]: crate::isolation::LoneCosts::lanes
    pub side_by_side: usize,
    /// Waiting requests of greater priority go first.
    pub priority: u8,
    /// The time at which the request is answered as unavailable; none by default.
    pub deadline: Option<Micros>,
    /// Bytes of proof and statement.
    pub bytes: usize,
}

#[derive(Debug)]
pub(super) struct Request {
    pub(super) submission: Submission,
    pub(super) accepted: Micros,
    /// The time at which work on it began.
    pub(super) begun: Option<Micros>,
    pub(super) stage: VerificationStage,
    /// Whether a batch with the request crashed, so that the request is checked alone.
    pub(super) suspect: bool,
    /// Whether its verdict was given while a job with it still runs.
    pub(super) answered: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VerificationStage {
    Held,
    Queued,
    Reducing,
    Reduced(Micros),
    Checking(BatchId),
}

/// The order in which a source's requests are reduced.
pub(super) type QueueKey = (Reverse<u8>, Micros, Ticket);

// === impl Request ===

impl Request {
    pub(super) fn queue_key(&self, ticket: Ticket) -> QueueKey {
        let deadline = self.submission.deadline.unwrap_or(Micros(u64::MAX));
        (Reverse(self.submission.priority), deadline, ticket)
    }

    /// The order key of its claim in a group, once it is reduced.
    pub(super) fn claim(&self, ticket: Ticket) -> Reduced {
        (Reverse(self.submission.priority), ticket)
    }
}

// === impl Micros ===

impl Micros {
    /// Microseconds since an earlier moment.
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
