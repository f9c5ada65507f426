//! The state in memory of a log that commits in groups: the live keys, and the operations that are
//! accepted but not durable yet.

use std::collections::{BTreeMap, HashMap};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::watch;

use crate::error::{AppendError, LogFailure};
use crate::key::Key;
use crate::log::{Durable, Entry, Expect, Op, Seq, check_limits};

/// Bytes counted for a pending operation in addition to its key and value.
const OP_OVERHEAD: usize = 64;

/// A log's state.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) live: HashMap<Key, Seq>,
    pub(crate) last: Seq,
    /// The last position when the log was opened.
    opened: Seq,
    pub(crate) durable: Seq,
    /// Live records that may not be in the store yet.
    pub(crate) recent: BTreeMap<Seq, (Key, Bytes)>,
    /// Ended records that may still be in the store, by the position of the operation that ended
    /// them.
    pub(crate) ended: BTreeMap<Seq, Seq>,
    queue: Group,
    /// Bytes accepted and not yet durable, including those of the queue.
    pending_bytes: usize,
    pub(crate) closing: bool,
    pub(crate) failed: Option<Arc<LogFailure>>,
}

/// Accepted operations that become durable together, reduced to their net effect.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// Records to store.
    pub(crate) puts: BTreeMap<Seq, (Key, Bytes)>,
    /// Records to remove.
    pub(crate) removed: Vec<Seq>,
    /// Position of the last operation.
    pub(crate) last: Seq,
    /// Bytes that the group counts for.
    pub(crate) bytes: usize,
}

// === impl Group ===

impl Group {
    /// Removes a record; one that was put in the same group is never stored.
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
            opened: last,
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

    /// Whether nothing has been accepted since the log was opened.
    pub(crate) fn is_as_opened(&self) -> bool {
        self.last == self.opened
    }

    /// The live record under `key`: the record itself, or only its position if it must be read from
    /// the store.
    pub(crate) fn find(&self, key: &Key) -> Option<Result<Entry, Seq>> {
        let seq = *self.live.get(key)?;
        Some(match self.recent.get(&seq) {
            Some((key, value)) => Ok(Entry {
                seq,
                key: key.clone(),
                value: value.clone(),
            }),
            None => Err(seq),
        })
    }

    /// Whether `bytes` more may be pending; a batch always fits if nothing is pending.
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

    /// Assigns positions to a checked batch and queues it for the writer.
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

    /// Takes everything queued, for the writer to commit.
    pub(crate) fn take(&mut self) -> Group {
        mem::take(&mut self.queue)
    }

    /// Whether everything accepted is on stable storage.
    pub(crate) fn is_durable(&self) -> bool {
        self.durable == self.last
    }

    /// Records that a group of `bytes` is on stable storage, up to its last operation `seq`, and
    /// with it every earlier group, reported or not.
    pub(crate) fn committed(&mut self, seq: Seq, bytes: usize) {
        if seq > self.durable {
            self.durable = seq;
            self.recent = self.recent.split_off(&seq.next());
            self.ended = self.ended.split_off(&seq.next());
        }
        self.pending_bytes -= bytes;
    }
}

/// Bytes that a batch counts for against the limit of pending bytes.
fn weight(ops: &[Op]) -> usize {
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

/// A log's state with the signals that appenders, readers and the writer wait for.
#[derive(Debug)]
pub(crate) struct SharedState {
    /// The log's place, as errors name it.
    pub(crate) place: String,
    state: Mutex<State>,
    watermark: watch::Sender<Durable>,
    finished: watch::Sender<bool>,
}

// === impl SharedState ===

impl SharedState {
    pub(crate) fn new(place: String, state: State) -> Self {
        let durable = Durable {
            seq: state.durable,
            failed: None,
        };
        Self {
            place,
            state: Mutex::new(state),
            watermark: watch::Sender::new(durable),
            finished: watch::Sender::new(false),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // No code panics half-way through a change under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn durable(&self) -> watch::Receiver<Durable> {
        self.watermark.subscribe()
    }

    /// Appends a batch, waiting until it fits into `limit` pending bytes. `wake` wakes the writer.
    pub(crate) async fn append(
        &self,
        mut ops: Vec<Op>,
        limit: usize,
        wake: impl Fn(),
    ) -> Result<Seq, AppendError> {
        check_limits(&ops)?;
        let bytes = weight(&ops);
        // There is nearly always space, so the watermark is not subscribed to for the first attempt.
        ops = match self.try_append(ops, bytes, limit, &wake) {
            Ok(done) => return done,
            Err(ops) => ops,
        };
        let mut watermark = self.watermark.subscribe();
        loop {
            // Marked as seen before the attempt, so that no change between the two is missed.
            watermark.borrow_and_update();
            ops = match self.try_append(ops, bytes, limit, &wake) {
                Ok(done) => return done,
                Err(ops) => ops,
            };
            watermark.changed().await.map_err(|_| AppendError::Closed)?;
        }
    }

    /// Tries once to append a batch. Returns the batch as `Err` if it has to wait for space.
    fn try_append(
        &self,
        ops: Vec<Op>,
        bytes: usize,
        limit: usize,
        wake: impl Fn(),
    ) -> Result<Result<Seq, AppendError>, Vec<Op>> {
        let mut state = self.lock();
        if let Err(error) = state.is_open().and_then(|()| state.check(&ops)) {
            return Ok(Err(error));
        }
        if ops.is_empty() {
            return Ok(Ok(state.last));
        }
        if !state.has_room(bytes, limit) {
            return Err(ops);
        }
        let seq = state.accept(ops, bytes);
        drop(state);
        wake();
        Ok(Ok(seq))
    }

    /// Advances the watermark over a group of `bytes` up to `last`, which is on stable storage, unless the log has
    /// stopped meanwhile.
    pub(crate) fn committed(&self, last: Seq, bytes: usize) {
        let mut state = self.lock();
        if state.failed.is_some() {
            return;
        }
        state.committed(last, bytes);
        drop(state);
        // Sent even if a later group was reported before: appends may be waiting for the space that
        // this frees.
        self.watermark.send_modify(|durable| {
            if durable.failed.is_none() {
                durable.seq = durable.seq.max(last);
            }
        });
    }

    /// Stops the log: nothing more is accepted or becomes durable. Returns the failure, unless the log had stopped
    /// before.
    pub(crate) fn fail(&self, reason: String, remedy: &str) -> Option<Arc<LogFailure>> {
        let mut state = self.lock();
        if state.failed.is_some() {
            return None;
        }
        let seq = state.durable;
        let failure = Arc::new(LogFailure {
            place: self.place.clone(),
            reason,
            remedy: remedy.to_owned(),
            durable: seq,
        });
        state.failed = Some(failure.clone());
        drop(state);
        self.watermark.send_modify(|durable| {
            durable.seq = seq;
            durable.failed = Some(failure.clone());
        });
        Some(failure)
    }

    /// Reports that the writer has ended.
    pub(crate) fn finish(&self) {
        self.finished.send_replace(true);
    }

    /// Waits until the writer has ended.
    ///
    /// # Errors
    /// The failure that kept accepted records from becoming durable.
    pub(crate) async fn finished(&self) -> Result<(), Arc<LogFailure>> {
        let mut finished = self.finished.subscribe();
        // The sender is in `self`, so this returns when the writer has ended.
        let _ = finished.wait_for(|finished| *finished).await;
        self.lock().failed.clone().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(state: &mut State, name: &str) -> Group {
        let key = Key::new(name).unwrap();
        state.accept(vec![Op::put(key, "value")], 10);
        state.take()
    }

    #[test]
    fn a_late_report_of_an_earlier_group_moves_nothing_back() {
        let mut state = State::new(HashMap::new(), Seq(5));
        assert!(state.is_durable());
        let first = accept(&mut state, "first");
        let second = accept(&mut state, "second");
        let third = accept(&mut state, "third");
        assert!(!state.is_durable());
        state.committed(second.last, second.bytes);
        assert_eq!((state.durable, state.pending_bytes), (Seq(7), 20));
        assert_eq!(state.recent.keys().collect::<Vec<_>>(), [&Seq(8)]);
        assert!(!state.has_room(10, 20));
        state.committed(first.last, first.bytes);
        assert_eq!((state.durable, state.pending_bytes), (Seq(7), 10));
        assert!(state.has_room(10, 20) && !state.is_durable());
        state.committed(third.last, third.bytes);
        assert_eq!((state.durable, state.pending_bytes), (Seq(8), 0));
        assert!(state.recent.is_empty() && state.is_durable());
    }
}
