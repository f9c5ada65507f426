//! A log with two watermarks: accepted, and durable. A crash loses the difference.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use proofmill_bus::{Expect, Op, Seq};
use proofmill_orchestrator::record::{Record, RecordKey};

type Live = BTreeMap<String, (Seq, Bytes)>;

#[derive(Clone, Default)]
pub(crate) struct SimLog {
    live: Live,
    stable: Live,
    last: Seq,
    durable: Seq,
    pending: VecDeque<(Vec<Op>, Seq)>,
}

impl SimLog {
    /// Records a lease key if the log has none, before all else, as a coordinator does.
    pub(crate) fn keep_lease_key(&mut self, epoch: u64) -> Result<(), String> {
        let key = RecordKey::LeaseKey
            .to_key()
            .map_err(|error| error.to_string())?;
        if self.live.contains_key(key.as_str()) {
            return Ok(());
        }
        let put = Op::Put {
            key,
            value: Record::LeaseKey([epoch as u8; 32]).encode(),
            expect: Expect::Absent,
        };
        self.append(vec![put])?;
        self.flush(self.pending());
        Ok(())
    }

    /// Appends a batch. Returns the sequence number of its last operation, or the key for which it is
    /// refused.
    pub(crate) fn append(&mut self, ops: Vec<Op>) -> Result<Seq, String> {
        let mut changed: BTreeMap<&str, bool> = BTreeMap::new();
        for op in &ops {
            let key = op.key().as_str();
            let exists = changed
                .get(key)
                .copied()
                .unwrap_or(self.live.contains_key(key));
            match op {
                Op::Put {
                    expect: Expect::Absent,
                    ..
                } if exists => return Err(key.to_owned()),
                Op::Put { .. } => changed.insert(key, true),
                Op::Delete { .. } => changed.insert(key, false),
            };
        }
        let first = self.last;
        self.last = apply(&mut self.live, &ops, first);
        if !ops.is_empty() {
            self.pending.push_back((ops, first));
        }
        Ok(self.last)
    }

    /// Makes the oldest `count` pending batches durable and returns them.
    pub(crate) fn flush(&mut self, count: usize) -> Vec<Vec<Op>> {
        let mut flushed = Vec::new();
        for _ in 0..count.min(self.pending.len()) {
            if let Some((ops, first)) = self.pending.pop_front() {
                self.durable = apply(&mut self.stable, &ops, first);
                flushed.push(ops);
            }
        }
        flushed
    }

    /// Sequence number of the last accepted operation.
    pub(crate) fn last(&self) -> Seq {
        self.last
    }

    /// Every record that is live now, or would be after a crash.
    pub(crate) fn values(&self) -> impl Iterator<Item = (&str, &Bytes)> {
        let records = self.live.iter().chain(&self.stable);
        records.map(|(key, (_, value))| (&**key, value))
    }

    pub(crate) fn pending(&self) -> usize {
        self.pending.len()
    }

    pub(crate) fn durable(&self) -> Seq {
        self.durable
    }

    /// Loses the batches that are accepted and not durable.
    pub(crate) fn crash(&mut self) {
        self.pending.clear();
        self.live = self.stable.clone();
        self.last = self.durable;
    }

    /// The live records, in order.
    pub(crate) fn replay(&self) -> Vec<(Seq, String, Bytes)> {
        let mut entries: Vec<_> = self
            .live
            .iter()
            .map(|(key, (seq, value))| (*seq, key.clone(), value.clone()))
            .collect();
        entries.sort_by_key(|(seq, ..)| *seq);
        entries
    }
}

fn apply(live: &mut Live, ops: &[Op], mut seq: Seq) -> Seq {
    for op in ops {
        seq = seq.next();
        match op {
            Op::Put { key, value, .. } => {
                live.insert(key.as_str().to_owned(), (seq, value.clone()));
            }
            Op::Delete { key } => {
                live.remove(key.as_str());
            }
        }
    }
    seq
}
