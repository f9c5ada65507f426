//! The log that all coordinators share, and the leases.

use std::collections::BTreeMap;

use bytes::Bytes;
use proofmill_bus::{Op, Seq};

use crate::log::SimLog;

/// What a coordinator hears of an append.
#[derive(Clone, Debug)]
pub(crate) enum Appended {
    At(Seq),
    Conflict(String),
    /// Another coordinator has written, or the log has failed.
    Failed,
}

/// A log that takes an append only from whoever knows its last record.
#[derive(Default)]
pub(crate) struct SharedLog {
    log: SimLog,
    /// The place after which each coordinator's next append is to come.
    positions: BTreeMap<u64, Seq>,
}

impl SharedLog {
    /// A coordinator reads the whole log.
    pub(crate) fn open(&mut self, coordinator: u64) -> Result<Vec<(Seq, String, Bytes)>, String> {
        self.log.keep_lease_key(1)?;
        self.positions.insert(coordinator, self.log.last());
        Ok(self.log.replay())
    }

    pub(crate) fn append(&mut self, coordinator: u64, ops: Vec<Op>) -> Appended {
        if self.positions.get(&coordinator) != Some(&self.log.last()) {
            return Appended::Failed;
        }
        match self.log.append(ops) {
            Ok(seq) => {
                self.positions.insert(coordinator, seq);
                self.log.flush(usize::MAX);
                Appended::At(seq)
            }
            Err(key) => Appended::Conflict(key),
        }
    }

    pub(crate) fn last(&self) -> Seq {
        self.log.last()
    }

    pub(crate) fn replay(&self) -> Vec<(Seq, String, Bytes)> {
        self.log.replay()
    }
}

/// A lease: whoever has it, until when, and the number of the last change.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeaseCell {
    revision: u64,
    holder: Option<u64>,
    until_ms: u64,
}

pub(crate) const LEASE_MS: u64 = 2_000;

impl LeaseCell {
    /// Takes the lease if nobody has it. The term.
    pub(crate) fn take(&mut self, who: u64, now_ms: u64) -> Option<u64> {
        if self.holder.is_some() && now_ms < self.until_ms {
            return None;
        }
        self.write(Some(who), now_ms);
        Some(self.revision)
    }

    /// Whether it is still whose it was; renewed then. One that has ended is lost: another may have had it since.
    pub(crate) fn renew(&mut self, who: u64, now_ms: u64) -> bool {
        let is_held = self.holder == Some(who) && now_ms < self.until_ms;
        if is_held {
            self.write(Some(who), now_ms);
        }
        is_held
    }

    /// Whether no other has it.
    pub(crate) fn is_held(&self, who: u64, now_ms: u64) -> bool {
        now_ms >= self.until_ms || self.holder.is_none_or(|holder| holder == who)
    }

    pub(crate) fn give_back(&mut self, who: u64, now_ms: u64) {
        if self.holder == Some(who) {
            self.write(None, now_ms);
        }
    }

    fn write(&mut self, holder: Option<u64>, now_ms: u64) {
        self.revision += 1;
        self.holder = holder;
        self.until_ms = now_ms + LEASE_MS;
    }
}
