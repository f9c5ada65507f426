//! The contract of a durable log.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use tokio::sync::watch;

use crate::error::{AppendError, LogFailure, ReadError};
use crate::key::Key;

/// Maximum number of operations in a batch (the server's limit for a JetStream atomic batch).
pub const MAX_BATCH_OPS: usize = 1000;

/// Maximum size of a value, in bytes: enough for a group of some hundreds of messages. Larger
/// values are blobs, to which records refer. A log with a lower limit of its own (a NATS server's
/// `max_payload`, 1 MiB by default) has to split large values itself.
pub const MAX_VALUE_BYTES: usize = 8 * 1024 * 1024;

/// A position in the log's total order. The first operation is 1, and later ones are strictly
/// greater; `Seq(0)` is before everything.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Seq(pub u64);

/// The condition for a put to be accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Expect {
    /// No condition: a live record under the key is superseded.
    #[default]
    Any,
    /// No record is live under the key.
    Absent,
}

/// One operation of a batch.
#[derive(Clone, PartialEq, Eq)]
pub enum Op {
    /// Makes `value` the live record under `key`.
    Put {
        /// Key of the record.
        key: Key,
        /// Content of the record, at most [`MAX_VALUE_BYTES`].
        value: Bytes,
        /// Condition for the put.
        expect: Expect,
    },
    /// Removes the live record under `key`, if there is one. Takes a position in the order either
    /// way.
    Delete {
        /// Key of the record.
        key: Key,
    },
}

/// A live record.
#[derive(Clone, PartialEq, Eq)]
pub struct Entry {
    /// The record's position in the order.
    pub seq: Seq,
    /// The record's key.
    pub key: Key,
    /// The record's content.
    pub value: Bytes,
}

/// State of the log's durability: the watermark, and the failure that stopped it, if any.
#[derive(Clone, Debug, Default)]
pub struct Durable {
    /// Everything up to and including this position survives any crash.
    pub seq: Seq,
    /// Set once, when the log stops; `seq` never moves again after that.
    pub failed: Option<Arc<LogFailure>>,
}

/// Keyed records in one total order, at most one live record per key.
///
/// A batch is atomic: after a crash all of it is present, or none. Within a batch the operations
/// apply in order, so that each one's expectation sees those before it.
pub trait Log: Send + Sync + 'static {
    /// Appends `ops` atomically, in order.
    ///
    /// When the future resolves the batch is *accepted*: its position in the order is fixed, and
    /// its expectations held against everything accepted before it. It is not yet durable: see
    /// [`Log::durable`]. A crash loses a suffix of the accepted batches, never one in the middle.
    ///
    /// Returns the position of the batch's last operation; for an empty batch, that of the last
    /// operation accepted before it. If the future is dropped before it resolves, the batch may or
    /// may not have been accepted.
    fn append(&self, ops: Vec<Op>) -> BoxFuture<'_, Result<Seq, AppendError>>;

    /// The watermark. Everything that depends on a record and is visible outside must wait for it:
    /// see [`until_durable`].
    fn durable(&self) -> watch::Receiver<Durable>;

    /// All live records in order, as of the call. It has everything that was accepted before the
    /// call, durable or not, and nothing that is accepted later.
    fn replay(&self) -> BoxStream<'_, Result<Entry, ReadError>>;

    /// The room that the log takes up where it is kept; `None` if that is unknown, or cannot be found out now.
    fn usage(&self) -> BoxFuture<'_, Option<LogUsage>> {
        Box::pin(std::future::ready(None))
    }

    /// The live record under `key`, accepted or durable.
    fn get(&self, key: &Key) -> BoxFuture<'_, Result<Option<Entry>, ReadError>>;
}

/// The room that a log takes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogUsage {
    /// Bytes in use: of its files, or of its stream.
    pub bytes: u64,
    /// Most bytes that it may take up: those in use and those free on its file system, or the stream's limit. `None` if
    /// the stream has no limit of its own.
    pub limit: Option<u64>,
}

/// Waits until everything up to and including `seq` is on stable storage.
///
/// # Errors
/// [`AppendError::Failed`] or [`AppendError::Closed`] if that can no longer happen.
pub async fn until_durable(
    watermark: &mut watch::Receiver<Durable>,
    seq: Seq,
) -> Result<(), AppendError> {
    let reached = watermark.wait_for(|durable| durable.seq >= seq || durable.failed.is_some());
    let durable = reached.await.map_err(|_| AppendError::Closed)?;
    match &durable.failed {
        Some(failure) if durable.seq < seq => Err(AppendError::Failed(failure.clone())),
        _ => Ok(()),
    }
}

/// Checks the limits that every implementation shares.
pub(crate) fn check_limits(ops: &[Op]) -> Result<(), AppendError> {
    if ops.len() > MAX_BATCH_OPS {
        return Err(AppendError::TooLarge {
            what: "a batch's count of operations".to_owned(),
            size: ops.len(),
            limit: MAX_BATCH_OPS,
        });
    }
    for op in ops {
        if let Op::Put { key, value, .. } = op
            && value.len() > MAX_VALUE_BYTES
        {
            return Err(AppendError::TooLarge {
                what: format!("the value for {key}, in bytes,"),
                size: value.len(),
                limit: MAX_VALUE_BYTES,
            });
        }
    }
    Ok(())
}

// === impl Seq ===

impl Seq {
    /// The next position.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

// === impl Op ===

impl Op {
    /// A put that supersedes any live record under the key.
    pub fn put(key: Key, value: impl Into<Bytes>) -> Self {
        Self::Put {
            key,
            value: value.into(),
            expect: Expect::Any,
        }
    }

    /// A put that is refused if a record is live under the key.
    pub fn put_new(key: Key, value: impl Into<Bytes>) -> Self {
        Self::Put {
            key,
            value: value.into(),
            expect: Expect::Absent,
        }
    }

    /// A delete.
    pub fn delete(key: Key) -> Self {
        Self::Delete { key }
    }

    /// The key that the operation acts on.
    pub fn key(&self) -> &Key {
        match self {
            Self::Put { key, .. } | Self::Delete { key } => key,
        }
    }
}

// Only the length of a value is shown: values may be witnesses.
impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Put { key, value, expect } => {
                write!(f, "Put({key}, {} bytes, {expect:?})", value.len())
            }
            Self::Delete { key } => write!(f, "Delete({key})"),
        }
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Entry({}, {}, {} bytes)",
            self.seq,
            self.key,
            self.value.len()
        )
    }
}
