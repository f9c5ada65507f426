//! Errors of logs.

use std::sync::Arc;

use crate::key::Key;
use crate::log::Seq;

/// The reason why a log stopped. It accepts nothing more, and its watermark no longer moves.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the log {place} has stopped at record {durable}: {reason}; {remedy}", durable = .durable.0)]
pub struct LogFailure {
    /// Location of the log: a directory or an address.
    pub place: String,
    /// The failure, with the system's message.
    pub reason: String,
    /// Advice for the user.
    pub remedy: String,
    /// The last record that is certainly on stable storage.
    pub durable: Seq,
}

/// The reason why a batch was not accepted. No part of it is, or ever will be, in the log.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// An [`Expect::Absent`](crate::Expect::Absent) did not hold.
    #[error("a record is already live under {key}")]
    Conflict {
        /// The first key of the batch that has a live record.
        key: Key,
    },
    /// A value or the batch exceeds the limits that all implementations share.
    #[error(
        "{what} is {size}, the limit is {limit}: put large payloads in the blob store, split large batches"
    )]
    TooLarge {
        /// The value or batch that is too large, with its key if it has one.
        what: String,
        /// The size of the batch, in bytes or operations.
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

/// The reason why a record could not be read.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The stored record is not the one that was written.
    #[error("record {seq} is corrupt: {reason}; restore {place} from a copy", seq = .seq.0)]
    Corrupt {
        /// Location of the log: a directory or an address.
        place: String,
        /// Position of the record.
        seq: Seq,
        /// The sign of the damage, as a sentence fragment.
        reason: String,
    },
    /// The store could not be read.
    #[error("cannot read the log {place}: {reason}")]
    Unavailable {
        /// Location of the log: a directory or an address.
        place: String,
        /// The failure, with the system's message.
        reason: String,
    },
    /// The log was closed by its owner.
    #[error("the log is closed")]
    Closed,
}
