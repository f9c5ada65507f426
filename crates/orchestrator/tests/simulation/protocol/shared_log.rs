//! The log that all coordinators share, and the leases.

use bytes::Bytes;
use proofmill_bus::{Op, Seq};

use crate::log::SimLog;

/// Answer of the log to an append.
#[derive(Clone, Debug)]
pub(crate) enum Appended {
    At(Seq),
    Conflict(String),
    /// Another coordinator has written, or the log has failed.
    Failed,
}

/// A log that one coordinator at a time writes. Opening it shuts out all earlier ones, and an append is
/// accepted only if those before it were.
#[derive(Default)]
pub(crate) struct SharedLog {
    log: SimLog,
    writer: Option<u64>,
}

impl SharedLog {
    /// Opens the log for a coordinator, which alone may write it from now on.
    pub(crate) fn open(&mut self, coordinator: u64) -> Result<SimLog, String> {
        self.log.keep_lease_key(1)?;
        self.writer = Some(coordinator);
        Ok(self.log.clone())
    }

    pub(crate) fn append(&mut self, coordinator: u64, ops: Vec<Op>) -> Appended {
        if self.writer != Some(coordinator) {
            return Appended::Failed;
        }
        match self.log.append(ops) {
            Ok(seq) => {
                self.log.flush(usize::MAX);
                Appended::At(seq)
            }
            Err(key) => Appended::Conflict(key),
        }
    }

    /// Loses an append on its way: later ones of the same coordinator refer to a record that does not exist.
    pub(crate) fn lose(&mut self, coordinator: u64) {
        if self.writer == Some(coordinator) {
            self.writer = None;
        }
    }

    pub(crate) fn replay(&self) -> Vec<(Seq, String, Bytes)> {
        self.log.replay()
    }
}

/// A lease: its holder, its end, and the number of its last change.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeaseCell {
    revision: u64,
    holder: Option<u64>,
    until_ms: u64,
}

pub(crate) const LEASE_MS: u64 = 2_000;

impl LeaseCell {
    /// Takes the lease if it is free. Returns the term.
    pub(crate) fn take(&mut self, who: u64, now_ms: u64) -> Option<u64> {
        if self.holder.is_some() && now_ms < self.until_ms {
            return None;
        }
        self.write(Some(who), now_ms);
        Some(self.revision)
    }

    /// Renews the lease if `who` still holds it, and returns whether it did. A lease that has ended is lost,
    /// since another may have held it since.
    pub(crate) fn renew(&mut self, who: u64, now_ms: u64) -> bool {
        let is_held = self.is_held(who, now_ms);
        if is_held {
            self.write(Some(who), now_ms);
        }
        is_held
    }

    /// Whether `who` still holds the lease.
    pub(crate) fn is_held(&self, who: u64, now_ms: u64) -> bool {
        self.holder == Some(who) && now_ms < self.until_ms
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
