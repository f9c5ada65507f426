//! What the log knows in memory: the live keys, and what is accepted and not yet durable.

use std::collections::{BTreeMap, HashMap};
use std::mem;
use std::sync::Arc;

use bytes::Bytes;

use super::store::Group;
use crate::error::{AppendError, LogFailure};
use crate::key::Key;
use crate::log::{Expect, Op, Seq};

/// Bytes a pending operation takes beside its key and value.
const OP_OVERHEAD: usize = 64;

#[derive(Debug)]
pub(super) struct State {
    pub(super) live: HashMap<Key, Seq>,
    pub(super) last: Seq,
    pub(super) durable: Seq,
    /// Live records that may not be in the store yet.
    pub(super) recent: BTreeMap<Seq, (Key, Bytes)>,
    /// Records that may still be in the store, by the operation that ended them.
    pub(super) ended: BTreeMap<Seq, Seq>,
    queue: Group,
    queue_bytes: usize,
    committing_bytes: usize,
    pub(super) closing: bool,
    pub(super) failed: Option<Arc<LogFailure>>,
}

// === impl State ===

impl State {
    pub(super) fn new(live: HashMap<Key, Seq>, last: Seq) -> Self {
        Self {
            live,
            last,
            durable: last,
            recent: BTreeMap::new(),
            ended: BTreeMap::new(),
            queue: Group::default(),
            queue_bytes: 0,
            committing_bytes: 0,
            closing: false,
            failed: None,
        }
    }

    pub(super) fn is_open(&self) -> Result<(), AppendError> {
        match &self.failed {
            Some(failure) => Err(AppendError::Failed(failure.clone())),
            None if self.closing => Err(AppendError::Closed),
            None => Ok(()),
        }
    }

    /// Whether `bytes` more may be pending.
    pub(super) fn has_room(&self, bytes: usize, limit: usize) -> bool {
        let pending = self.queue_bytes + self.committing_bytes;
        pending == 0 || pending.saturating_add(bytes) <= limit
    }

    /// Checks every expectation of a batch, each against the operations before it.
    pub(super) fn check(&self, ops: &[Op]) -> Result<(), AppendError> {
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
    pub(super) fn accept(&mut self, ops: Vec<Op>, bytes: usize) -> Seq {
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
        self.queue_bytes += bytes;
        self.last
    }

    pub(super) fn has_work(&self) -> bool {
        self.queue.last > self.durable && self.failed.is_none()
    }

    /// Everything queued, for the writer to commit.
    pub(super) fn take(&mut self) -> Group {
        self.committing_bytes = mem::take(&mut self.queue_bytes);
        mem::take(&mut self.queue)
    }

    /// A group is on stable storage up to `seq`.
    pub(super) fn committed(&mut self, seq: Seq) {
        self.durable = seq;
        self.recent = self.recent.split_off(&seq.next());
        self.ended = self.ended.split_off(&seq.next());
        self.committing_bytes = 0;
    }
}

/// What a batch counts for against the limit of pending bytes.
pub(super) fn weight(ops: &[Op]) -> usize {
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
