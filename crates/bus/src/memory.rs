//! A log in memory.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::future::{self, BoxFuture};
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt};
use tokio::sync::watch;

use crate::error::{AppendError, LogFailure, ReadError};
use crate::key::Key;
use crate::log::{Durable, Entry, Expect, Log, Op, Seq, check_limits};

/// A log in memory, for tests and for the simulator. The caller decides when records become
/// durable, when the log fails, and what a crash loses. Needs no runtime.
#[derive(Debug)]
pub struct MemoryLog {
    state: Mutex<State>,
    durable: watch::Sender<Durable>,
    flush_at_once: bool,
}

#[derive(Debug, Default)]
struct State {
    /// Records that a replay returns now.
    live: Live,
    /// Records that survive a crash that loses all pending batches.
    stable: Live,
    /// Accepted batches that are not yet durable, in order.
    pending: VecDeque<Vec<Op>>,
}

#[derive(Clone, Debug, Default)]
struct Live {
    last: Seq,
    by_key: HashMap<Key, Seq>,
    by_seq: BTreeMap<Seq, (Key, Bytes)>,
}

// === impl MemoryLog ===

impl MemoryLog {
    /// An empty log in which every accepted batch is durable at once.
    pub fn new() -> Self {
        Self::with(State::default(), true)
    }

    /// An empty log in which nothing becomes durable before [`MemoryLog::flush`].
    pub fn unflushed() -> Self {
        Self::with(State::default(), false)
    }

    /// A log that contains these live records, up to position `last`; every accepted batch is
    /// durable at once.
    pub(crate) fn holding(entries: Vec<Entry>, last: Seq) -> Self {
        let mut live = Live {
            last,
            ..Live::default()
        };
        for entry in entries {
            live.by_key.insert(entry.key.clone(), entry.seq);
            live.by_seq.insert(entry.seq, (entry.key, entry.value));
        }
        let state = State {
            stable: live.clone(),
            live,
            pending: VecDeque::new(),
        };
        Self::with(state, true)
    }

    fn with(state: State, flush_at_once: bool) -> Self {
        let seq = state.stable.last;
        let durable = watch::Sender::new(Durable { seq, failed: None });
        Self {
            state: Mutex::new(state),
            durable,
            flush_at_once,
        }
    }

    /// Number of accepted batches that are not yet durable.
    pub fn pending(&self) -> usize {
        self.lock().pending.len()
    }

    /// Makes the oldest `batches` pending batches durable; returns the watermark.
    pub fn flush(&self, batches: usize) -> Seq {
        let mut state = self.lock();
        if self.durable.borrow().failed.is_none() {
            state.settle(batches);
            self.durable
                .send_modify(|durable| durable.seq = state.stable.last);
        }
        state.stable.last
    }

    /// The log after a crash that kept the oldest `kept` pending batches. This handle is unchanged;
    /// the new log has the same flushing rule.
    #[must_use]
    pub fn crash(&self, kept: usize) -> Self {
        let state = self.lock();
        let mut survivor = State {
            live: Live::default(),
            stable: state.stable.clone(),
            pending: state.pending.clone(),
        };
        survivor.settle(kept);
        survivor.pending.clear();
        survivor.live = survivor.stable.clone();
        Self::with(survivor, self.flush_at_once)
    }

    /// Stops the log, as a failing disk would: nothing more is accepted or becomes durable.
    pub fn fail(&self, reason: impl Into<String>) {
        let state = self.lock();
        let failure = LogFailure {
            place: "in memory".to_owned(),
            reason: reason.into(),
            remedy: "open it again".to_owned(),
            durable: state.stable.last,
        };
        self.durable.send_modify(|durable| {
            durable.failed.get_or_insert_with(|| Arc::new(failure));
        });
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change is made after the last operation that can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append_now(&self, ops: Vec<Op>) -> Result<Seq, AppendError> {
        check_limits(&ops)?;
        let mut state = self.lock();
        if let Some(failure) = &self.durable.borrow().failed {
            return Err(AppendError::Failed(failure.clone()));
        }
        state.live.check(&ops)?;
        state.live.apply(&ops);
        let last = state.live.last;
        if !ops.is_empty() {
            state.pending.push_back(ops);
        }
        if self.flush_at_once {
            state.settle(usize::MAX);
            self.durable.send_modify(|durable| durable.seq = last);
        }
        Ok(last)
    }
}

impl Default for MemoryLog {
    fn default() -> Self {
        Self::new()
    }
}

impl Log for MemoryLog {
    fn append(&self, ops: Vec<Op>) -> BoxFuture<'_, Result<Seq, AppendError>> {
        future::lazy(move |_| self.append_now(ops)).boxed()
    }

    fn durable(&self) -> watch::Receiver<Durable> {
        self.durable.subscribe()
    }

    fn replay(&self) -> BoxStream<'_, Result<Entry, ReadError>> {
        let entries: Vec<Entry> = {
            let state = self.lock();
            let entry = |(seq, (key, value)): (&Seq, &(Key, Bytes))| Entry {
                seq: *seq,
                key: key.clone(),
                value: value.clone(),
            };
            state.live.by_seq.iter().map(entry).collect()
        };
        stream::iter(entries.into_iter().map(Ok)).boxed()
    }

    fn get(&self, key: &Key) -> BoxFuture<'_, Result<Option<Entry>, ReadError>> {
        let state = self.lock();
        let entry = state.live.by_key.get(key).map(|seq| Entry {
            seq: *seq,
            key: key.clone(),
            value: state.live.by_seq[seq].1.clone(),
        });
        future::ready(Ok(entry)).boxed()
    }
}

// === impl State ===

impl State {
    fn settle(&mut self, batches: usize) {
        for ops in self.pending.drain(..batches.min(self.pending.len())) {
            self.stable.apply(&ops);
        }
    }
}

// === impl Live ===

impl Live {
    fn check(&self, ops: &[Op]) -> Result<(), AppendError> {
        let mut changed: HashMap<&Key, bool> = HashMap::new();
        for op in ops {
            let key = op.key();
            let exists = match changed.get(key) {
                Some(exists) => *exists,
                None => self.by_key.contains_key(key),
            };
            if exists
                && matches!(
                    op,
                    Op::Put {
                        expect: Expect::Absent,
                        ..
                    }
                )
            {
                return Err(AppendError::Conflict { key: key.clone() });
            }
            changed.insert(key, matches!(op, Op::Put { .. }));
        }
        Ok(())
    }

    fn apply(&mut self, ops: &[Op]) {
        for op in ops {
            self.last = self.last.next();
            let superseded = match op {
                Op::Put { key, value, .. } => {
                    self.by_seq.insert(self.last, (key.clone(), value.clone()));
                    self.by_key.insert(key.clone(), self.last)
                }
                Op::Delete { key } => self.by_key.remove(key),
            };
            if let Some(seq) = superseded {
                self.by_seq.remove(&seq);
            }
        }
    }
}
