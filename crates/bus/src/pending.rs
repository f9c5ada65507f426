//! What a log that commits in groups knows in memory: the live keys, and what is accepted and not
//! yet durable.

use std::collections::{BTreeMap, HashMap};
use std::mem;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::{AppendError, LogFailure};
use crate::key::Key;
use crate::log::{Expect, Op, Seq};

/// Bytes a pending operation takes beside its key and value.
const OP_OVERHEAD: usize = 64;

/// A log's state.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) live: HashMap<Key, Seq>,
    pub(crate) last: Seq,
    pub(crate) durable: Seq,
    /// Live records that may not be in the store yet.
    pub(crate) recent: BTreeMap<Seq, (Key, Bytes)>,
    /// Records that may still be in the store, by the operation that ended them.
    pub(crate) ended: BTreeMap<Seq, Seq>,
    queue: Group,
    /// Bytes accepted and not yet durable, those of the queue among them.
    pending_bytes: usize,
    pub(crate) closing: bool,
    pub(crate) failed: Option<Arc<LogFailure>>,
}

/// Accepted operations that are to become durable together: what they come to in the end.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// Records to store.
    pub(crate) puts: BTreeMap<Seq, (Key, Bytes)>,
    /// Records to remove.
    pub(crate) removed: Vec<Seq>,
    /// The last operation.
    pub(crate) last: Seq,
    /// What it weighs.
    pub(crate) bytes: usize,
}

// === impl Group ===

impl Group {
    /// A record that lives and dies within the group is never stored.
    fn remove(&mut self, seq: Seq) {
        if self.puts.remove(&seq).is_none() {
            self.removed.push(seq);
        }
    }
}

// === impl State ===

impl State {
    pub(crate) fn new(live: HashMap<Key, Seq>, last: Seq) -> Self {
        Self {
            live,
            last,
            durable: last,
            recent: BTreeMap::new(),
            ended: BTreeMap::new(),
            queue: Group::default(),
            pending_bytes: 0,
            closing: false,
            failed: None,
        }
    }

    pub(crate) fn is_open(&self) -> Result<(), AppendError> {
        match &self.failed {
            Some(failure) => Err(AppendError::Failed(failure.clone())),
            None if self.closing => Err(AppendError::Closed),
            None => Ok(()),
        }
    }

    /// Whether `bytes` more may be pending.
    pub(crate) fn has_room(&self, bytes: usize, limit: usize) -> bool {
        self.pending_bytes == 0 || self.pending_bytes.saturating_add(bytes) <= limit
    }

    /// Checks every expectation of a batch, each against the operations before it.
    pub(crate) fn check(&self, ops: &[Op]) -> Result<(), AppendError> {
        let mut changed: HashMap<&Key, bool> = HashMap::new();
        for op in ops {
            let key = op.key();
            if let Op::Put {
                expect: Expect::Absent,
                ..
            } = op
                && changed
                    .get(key)
                    .copied()
                    .unwrap_or_else(|| self.live.contains_key(key))
            {
                return Err(AppendError::Conflict { key: key.clone() });
            }
            if ops.len() > 1 {
                changed.insert(key, matches!(op, Op::Put { .. }));
            }
        }
        Ok(())
    }

    /// Gives a checked batch its place and queues it for the writer.
    pub(crate) fn accept(&mut self, ops: Vec<Op>, bytes: usize) -> Seq {
        for op in ops {
            self.last = self.last.next();
            let ended = match op {
                Op::Put { key, value, .. } => {
                    self.recent.insert(self.last, (key.clone(), value.clone()));
                    self.queue.puts.insert(self.last, (key.clone(), value));
                    self.live.insert(key, self.last)
                }
                Op::Delete { key } => self.live.remove(&key),
            };
            if let Some(seq) = ended {
                self.recent.remove(&seq);
                self.ended.insert(self.last, seq);
                self.queue.remove(seq);
            }
        }
        self.queue.last = self.last;
        self.queue.bytes += bytes;
        self.pending_bytes += bytes;
        self.last
    }

    pub(crate) fn has_work(&self) -> bool {
        self.queue.last > self.durable && self.failed.is_none()
    }

    /// Everything queued, for the writer to commit.
    pub(crate) fn take(&mut self) -> Group {
        mem::take(&mut self.queue)
    }

    /// A group that weighed `bytes` is on stable storage, up to its last operation, `seq`.
    pub(crate) fn committed(&mut self, seq: Seq, bytes: usize) {
        self.durable = seq;
        self.recent = self.recent.split_off(&seq.next());
        self.ended = self.ended.split_off(&seq.next());
        self.pending_bytes -= bytes;
    }
}

/// What a batch counts for against the limit of pending bytes.
pub(crate) fn weight(ops: &[Op]) -> usize {
    let weigh = |op: &Op| {
        let value = if let Op::Put { value, .. } = op {
            value.len()
        } else {
            0
        };
        OP_OVERHEAD + op.key().as_str().len() + value
    };
    ops.iter().map(weigh).sum()
}
