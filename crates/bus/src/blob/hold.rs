//! Holds: protection of blobs from sweeps until a record refers to them.

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
    /// Time of the last put or renewal of the blob in the store.
    renewed: Instant,
}

/// Protects blobs from sweeps until it is dropped: no sweep of this process deletes them, nor does
/// one of another process as long as [`BlobStore::renew_held`](super::BlobStore::renew_held) is
/// called.
#[derive(Debug)]
#[must_use = "what it holds may be swept once it is dropped"]
pub struct Held {
    holds: Holds,
    digests: Vec<Digest>,
}

// === impl Holds ===

impl Holds {
    fn lock(&self) -> MutexGuard<'_, HashMap<Digest, Hold>> {
        // No code panics half-way through a change under this lock.
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

    /// Time of the oldest last renewal among these blobs; `None` if none of them is held.
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
    /// Digests of the blobs held.
    pub fn digests(&self) -> &[Digest] {
        &self.digests
    }

    /// Adds the blobs of `other`, which are then held until this is dropped.
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
