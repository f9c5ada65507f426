//! The state behind the budget's lock: bookkeeping only, wakers are returned to the caller.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::task::Waker;

use crate::interface::{Owner, Priority};

/// A place in the order of requests: higher priority first, then earlier arrival.
pub(super) type RequestPlace = (Reverse<Priority>, u64);

/// A waiting request.
pub(super) struct Waiter {
    pub(super) owner: Owner,
    pub(super) bytes: u64,
    /// The waker of the request's task; always present once the request is in the map.
    pub(super) waker: Option<Waker>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) total: u64,
    pub(super) used: u64,
    pub(super) peak: u64,
    pub(super) owners: BTreeMap<Owner, u64>,
    pub(super) waiters: BTreeMap<RequestPlace, Waiter>,
    pub(super) next: u64,
    /// Whether a thread is reclaiming memory now, outside the lock.
    pub(super) reclaiming: bool,
    /// Whether the state changed since reclaiming began: if so, the reclaiming thread tries again.
    pub(super) changed: bool,
}

// === impl State ===

impl State {
    /// Grants the first request as long as it fits, and returns the wakers of those granted. Requests are
    /// never overtaken: a large one at the head gets all bytes that are given back until it fits.
    pub(super) fn grant(&mut self) -> Vec<Waker> {
        let mut wakers = Vec::new();
        while let Some(first) = self.waiters.first_entry() {
            if first.get().bytes > self.total - self.used {
                break;
            }
            let waiter = first.remove();
            self.take(waiter.owner, waiter.bytes);
            wakers.extend(waiter.waker);
        }
        wakers
    }

    /// The bytes that the first waiting request lacks; none if no request waits.
    pub(super) fn missing(&self) -> Option<u64> {
        let (_, first) = self.waiters.first_key_value()?;
        Some(first.bytes.saturating_sub(self.total - self.used))
    }

    /// Gives bytes back.
    pub(super) fn give_back(&mut self, owner: Owner, bytes: u64) {
        self.used -= bytes;
        self.charge(owner, bytes, 0);
    }

    /// Moves the accounting of bytes from one owner to another.
    pub(super) fn transfer(&mut self, from: Owner, to: Owner, bytes: u64) {
        self.charge(from, bytes, 0);
        self.charge(to, 0, bytes);
    }

    fn take(&mut self, owner: Owner, bytes: u64) {
        self.used += bytes;
        self.peak = self.peak.max(self.used);
        self.charge(owner, 0, bytes);
    }

    fn charge(&mut self, owner: Owner, less: u64, more: u64) {
        let held = self.owners.entry(owner).or_default();
        *held = *held + more - less;
        if *held == 0 {
            self.owners.remove(&owner);
        }
    }
}
