//! Blobs that something in this process is going to name, and that must not be swept until it has.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::digest::Digest;

/// The blobs of a store that are held in this process.
#[derive(Clone, Debug, Default)]
pub(super) struct Holds(Arc<Mutex<HashMap<Digest, Hold>>>);

#[derive(Debug)]
struct Hold {
    holders: usize,
    /// When the store last had a sign of it: its put, or a renewal.
    renewed: Instant,
}

/// Keeps blobs for as long as it lives: no sweep of this process deletes them, and while
/// [`BlobStore::renew_held`](super::BlobStore::renew_held) is called no other process's does.
#[derive(Debug)]
#[must_use = "what it holds may be swept once it is dropped"]
pub struct Held {
    holds: Holds,
    digests: Vec<Digest>,
}

// === impl Holds ===

impl Holds {
    fn lock(&self) -> MutexGuard<'_, HashMap<Digest, Hold>> {
        // Nothing under this lock panics half-way through a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn hold(&self, digests: impl IntoIterator<Item = Digest>) -> Held {
        let digests: Vec<Digest> = digests.into_iter().collect();
        if !digests.is_empty() {
            let mut holds = self.lock();
            for digest in &digests {
                let hold = holds.entry(*digest).or_insert_with(|| Hold {
                    holders: 0,
                    renewed: Instant::now(),
                });
                hold.holders += 1;
            }
        }
        Held {
            holds: self.clone(),
            digests,
        }
    }

    pub(super) fn contains(&self, digest: &Digest) -> bool {
        self.lock().contains_key(digest)
    }

    pub(super) fn all(&self) -> Vec<Digest> {
        self.lock().keys().copied().collect()
    }

    pub(super) fn note_renewed(&self, digest: &Digest) {
        if let Some(hold) = self.lock().get_mut(digest) {
            hold.renewed = Instant::now();
        }
    }

    /// When the oldest of these was last renewed; `None` if none is held.
    pub(super) fn renewed(&self, digests: &[Digest]) -> Option<Instant> {
        if digests.is_empty() {
            return None;
        }
        let holds = self.lock();
        let held = digests.iter().filter_map(|digest| holds.get(digest));
        held.map(|hold| hold.renewed).min()
    }
}

// === impl Held ===

impl Held {
    /// Digests of the blobs that are held.
    pub fn digests(&self) -> &[Digest] {
        &self.digests
    }

    /// Holds what `other` does, too.
    pub fn join(&mut self, mut other: Self) {
        self.digests.append(&mut other.digests);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.digests.is_empty() {
            return;
        }
        let mut holds = self.holds.lock();
        for digest in &self.digests {
            let Some(hold) = holds.get_mut(digest) else {
                continue;
            };
            hold.holders -= 1;
            if hold.holders == 0 {
                holds.remove(digest);
            }
        }
    }
}
