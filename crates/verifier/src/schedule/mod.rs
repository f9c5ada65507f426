//! The order of work, and the batches: a deterministic state machine without threads or clocks.
//!
//! A request is reduced, then waits for a check of its group, then has its verdict. Proofs of sources
//! in good standing form one group for each kind, in the trusted lane. A source that sent a false proof
//! moves to the quarantine lane: it has groups of its own there, and the lane's work yields to all other work, so
//! that no other source waits for the search for its false proofs. The source returns by sending valid ones.
//!
//! A group is checked as soon as no request of it is still to be reduced, or a batch is full, or its oldest
//! claim has waited four times as long as its last check took. So a single proof is checked at once, and
//! batches grow with the load. In the quarantine lane, where batches are small, full ones are checked beside each
//! other.

mod group;
mod request;
mod scheduler;
mod source;
mod standing;

pub use request::{Micros, Submission, Ticket};
pub use scheduler::{Admission, BatchId, Crash, Limits, Scheduler, VerificationJob};
pub use source::SourceReport;

/// The pool of threads that a job runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// The lane of sources in good standing.
    Trusted,
    /// The lane of sources that sent false proofs.
    Quarantine,
}

// === impl Lane ===

impl Lane {
    /// Both lanes.
    pub const ALL: [Self; 2] = [Self::Trusted, Self::Quarantine];
}
