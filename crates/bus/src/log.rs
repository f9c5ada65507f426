//! The contract of a durable log.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use tokio::sync::watch;

use crate::error::{AppendError, LogFailure, ReadError};
use crate::key::Key;

/// The most operations in one batch (the server's limit for a JetStream atomic batch).
pub const MAX_BATCH_OPS: usize = 1000;

/// The largest value, in bytes: room for a group of some hundreds of messages. Larger things are
/// blobs, and records refer to them; a log whose own limit is lower (a NATS server's payload, 1 MiB
/// unless it is configured otherwise) has to keep large values elsewhere by itself.
pub const MAX_VALUE_BYTES: usize = 8 * 1024 * 1024;

/// A place in the log's total order. The first operation is 1, and later ones are strictly
/// greater; `Seq(0)` is before everything.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Seq(pub u64);

/// What must hold for a put to be accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Expect {
    /// Nothing: a live record under the key is superseded.
    #[default]
    Any,
    /// There is no live record under the key.
    Absent,
}

/// One operation of a batch.
#[derive(Clone, PartialEq, Eq)]
pub enum Op {
    /// Makes `value` the live record under `key`.
    Put {
        /// Where.
        key: Key,
        /// What, at most [`MAX_VALUE_BYTES`].
        value: Bytes,
        /// On which condition.
        expect: Expect,
    },
    /// Removes the live record under `key`, if there is one. Takes a place in the order either way.
    Delete {
        /// Where.
        key: Key,
    },
}

/// A live record.
#[derive(Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its place in the order.
    pub seq: Seq,
    /// What it lives under.
    pub key: Key,
    /// What it holds.
    pub value: Bytes,
}

/// How far the log is on stable storage.
#[derive(Clone, Debug, Default)]
pub struct Durable {
    /// Everything up to and including this place survives any crash.
    pub seq: Seq,
    /// Set once, when the log stops; `seq` never moves again after that.
    pub failed: Option<Arc<LogFailure>>,
}

/// Keyed records in one total order, at most one live record for each key.
///
/// A batch is atomic: after a crash all of it is there or none. Within a batch the operations
/// apply in order, so that each one's expectation sees those before it.
pub trait Log: Send + Sync + 'static {
    /// Appends `ops` atomically, in order.
    ///
    /// When the future resolves the batch is *accepted*: its place in the order is fixed, and its
    /// expectations held against everything accepted before it. It is not yet durable: see
    /// [`Log::durable`]. A crash loses a suffix of the accepted batches, never a middle one.
    ///
    /// Returns the place of the batch's last operation; for an empty batch, that of the last one
    /// accepted before it. If the future is dropped before it resolves, the batch may or may not
    /// have been accepted.
    fn append(&self, ops: Vec<Op>) -> BoxFuture<'_, Result<Seq, AppendError>>;

    /// The watermark. Whatever is shown to the outside waits for it: see [`until_durable`].
    fn durable(&self) -> watch::Receiver<Durable>;

    /// All live records in order, as of the call: later appends do not show, and everything
    /// accepted before it does, durable or not.
    fn replay(&self) -> BoxStream<'_, Result<Entry, ReadError>>;

    /// The live record under `key`, accepted or durable.
    fn get(&self, key: &Key) -> BoxFuture<'_, Result<Option<Entry>, ReadError>>;
}

/// Waits until everything up to and including `seq` is on stable storage.
///
/// # Errors
/// [`AppendError::Failed`] or [`AppendError::Closed`] if that will never be.
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
    /// The next place.
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
    /// A put that supersedes whatever is there.
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

    /// The key it acts on.
    pub fn key(&self) -> &Key {
        match self {
            Self::Put { key, .. } | Self::Delete { key } => key,
        }
    }
}

// Values may be witnesses: only their length is ever printed.
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
