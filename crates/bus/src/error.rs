//! What can go wrong with a log.

use std::sync::Arc;

use crate::key::Key;
use crate::log::Seq;

/// Why a log stopped: it accepts nothing more, and its watermark stands still for good.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the log {place} has stopped at record {durable}: {reason}; {remedy}", durable = .durable.0)]
pub struct LogFailure {
    /// Which log: a directory or an address.
    pub place: String,
    /// What failed, with the system's own words.
    pub reason: String,
    /// What to do about it.
    pub remedy: String,
    /// The last record that is certainly on stable storage.
    pub durable: Seq,
}

/// Why a batch was not accepted. Nothing of it is, or ever will be, in the log.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// An [`Expect::Absent`](crate::Expect::Absent) did not hold.
    #[error("a record is already live under {key}")]
    Conflict {
        /// The first key of the batch that has a live record.
        key: Key,
    },
    /// A value or the batch is larger than every implementation can take.
    #[error(
        "{what} is {size}, the limit is {limit}: put large payloads in the blob store, split large batches"
    )]
    TooLarge {
        /// What is too large, with its key if it has one.
        what: String,
        /// Its size, in bytes or operations.
        size: usize,
        /// The limit, in the same unit.
        limit: usize,
    },
    /// The log has stopped: see [`LogFailure`].
    #[error(transparent)]
    Failed(#[from] Arc<LogFailure>),
    /// The log was closed by its owner.
    #[error("the log is closed")]
    Closed,
}

/// Why a record could not be read.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// What is stored is not what was written.
    #[error("record {seq} is corrupt: {reason}; restore {place} from a copy", seq = .seq.0)]
    Corrupt {
        /// Which log: a directory or an address.
        place: String,
        /// The record.
        seq: Seq,
        /// How the damage shows.
        reason: String,
    },
    /// The store could not be read.
    #[error("cannot read the log {place}: {reason}")]
    Unavailable {
        /// Which log: a directory or an address.
        place: String,
        /// What failed, with the system's own words.
        reason: String,
    },
    /// The log was closed by its owner.
    #[error("the log is closed")]
    Closed,
}
