//! Deleting blobs that nothing can name any more.
//!
//! A blob may be deleted when no record names it, nobody holds it (see [`Held`](super::Held)), and
//! neither was so at an earlier look, a grace period ago. A put and a renewal change a blob's
//! version, and versions are only compared for equality. The grace period passes on the sweeper's
//! own monotonic clock: no clock is compared with another's, nor with the time of a file.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::time::Duration;

use futures_util::TryStreamExt;
use tokio::time::Instant;

use super::digest::Digest;
use super::store::{BlobError, BlobStore, Kind, Version};

/// Unreferenced objects that one sweeper has seen, and the time since which each has been so.
#[derive(Clone, Debug)]
pub struct Sightings<K, V> {
    grace: Duration,
    seen: HashMap<K, (V, Duration)>,
}

/// Sweeps a store, look by look.
#[derive(Debug)]
pub struct Sweeper {
    blobs: BlobStore,
    epoch: Instant,
    sightings: Sightings<Digest, Version>,
}

/// Result of one look at the store.
#[derive(Debug, Default)]
pub struct Look {
    /// Unreferenced and unchanged since a look at least a grace period ago.
    due: Vec<(Digest, Version)>,
    /// Blobs that are not due.
    kept: usize,
}

/// Totals of one sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Blobs deleted.
    pub deleted: usize,
    /// Bytes they held.
    pub bytes: u64,
    /// Blobs kept.
    pub kept: usize,
}

// === impl Sightings ===

impl<K: Eq + Hash + Copy, V: PartialEq> Sightings<K, V> {
    /// No sightings yet. `grace` is the least time from the first sighting of a blob to its deletion;
    /// it must be longer than holders may go without renewing what they hold.
    pub fn new(grace: Duration) -> Self {
        Self {
            grace,
            seen: HashMap::new(),
        }
    }

    /// Takes a look into account: everything that is unreferenced at `now`, with its version.
    /// `now` counts from any origin and never goes back. Returns what may be deleted: it was seen
    /// before, with the same version in every look since, and the first is a grace period ago.
    pub fn look(&mut self, now: Duration, found: impl IntoIterator<Item = (K, V)>) -> Vec<(K, V)>
    where
        V: Clone,
    {
        let mut before = std::mem::take(&mut self.seen);
        let mut due = Vec::new();
        for (key, version) in found {
            let earlier = before.remove(&key).filter(|(seen, _)| *seen == version);
            let since = earlier.as_ref().map_or(now, |(_, since)| *since);
            if earlier.is_some() && now.saturating_sub(since) >= self.grace {
                due.push((key, version.clone()));
            }
            self.seen.insert(key, (version, since));
        }
        due
    }
}

// === impl Look ===

impl Look {
    /// Whether nothing is to be deleted.
    pub fn is_empty(&self) -> bool {
        self.due.is_empty()
    }

    /// Blobs that are not to be deleted now.
    pub fn kept(&self) -> usize {
        self.kept
    }
}

// === impl Sweeper ===

impl Sweeper {
    /// A sweeper that has seen nothing yet. `grace`: see [`Sightings::new`].
    pub fn new(blobs: BlobStore, grace: Duration) -> Self {
        Self {
            blobs,
            epoch: Instant::now(),
            sightings: Sightings::new(grace),
        }
    }

    /// Looks at every blob. `live` are those that records name; what was held before they were asked
    /// for is among them, see [`BlobStore::held`].
    ///
    /// # Errors
    /// [`BlobError`]: the store failed; the next look goes on.
    pub async fn look(&mut self, live: &HashSet<Digest>) -> Result<Look, BlobError> {
        let found = self.blobs.versions().await?;
        let count = found.len();
        let unreferenced = found.into_iter().filter(|(digest, _)| {
            // What is held has a holder that may name it at any moment.
            !live.contains(digest) && !self.blobs.is_held(digest)
        });
        let due = self.sightings.look(self.epoch.elapsed(), unreferenced);
        Ok(Look {
            kept: count - due.len(),
            due,
        })
    }

    /// Deletes what is due, unless it is in `live`: what records name now, after everything that
    /// they followed from has become durable.
    ///
    /// # Errors
    /// As for [`Sweeper::look`].
    pub async fn remove(&self, look: Look, live: &HashSet<Digest>) -> Result<Swept, BlobError> {
        let mut swept = Swept {
            kept: look.kept,
            ..Swept::default()
        };
        for (digest, version) in look.due {
            let removed = match live.contains(&digest) {
                true => None,
                false => self.blobs.remove_seen(&digest, Some(&version)).await?,
            };
            swept.count(removed);
        }
        Ok(swept)
    }
}

// === impl Swept ===

impl Swept {
    fn count(&mut self, removed: Option<u64>) {
        match removed {
            Some(bytes) => {
                self.deleted += 1;
                self.bytes += bytes;
            }
            None => self.kept += 1,
        }
    }
}

// === impl BlobStore ===

impl BlobStore {
    /// Deletes every blob that is neither in `live` nor held, at once, and what interrupted puts have
    /// left. Only for a directory that no other process uses: a process that looks at all that is
    /// held has no need of a grace period. `live` must have been asked for after [`BlobStore::held`],
    /// and hold what that returned.
    ///
    /// # Errors
    /// [`BlobError`]: the store failed.
    pub async fn sweep_alone(&self, live: &HashSet<Digest>) -> Result<Swept, BlobError> {
        let mut swept = Swept::default();
        for (digest, _) in self.versions().await? {
            let removed = match live.contains(&digest) {
                true => None,
                false => self.remove_seen(&digest, None).await?,
            };
            swept.count(removed);
        }
        self.remove_unfinished().await?;
        Ok(swept)
    }

    /// Every blob with its version.
    async fn versions(&self) -> Result<HashMap<Digest, Version>, BlobError> {
        let mut found: HashMap<Digest, Version> = HashMap::new();
        let mut metas = self.metas();
        while let Some((digest, kind, meta)) = metas.try_next().await? {
            let version = found.entry(digest).or_default();
            match kind {
                Kind::Content => version.content = Some(Version::of(&meta)),
                Kind::Hold => version.hold = Some(Version::of(&meta)),
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(10);

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn one_look_deletes_nothing_however_late_it_comes() {
        let mut sightings = Sightings::new(GRACE);
        assert!(sightings.look(at(0), [(1, 'a')]).is_empty());
        assert!(sightings.look(at(9), [(1, 'a'), (2, 'a')]).is_empty());
        assert_eq!(
            sightings.look(at(11), [(1, 'a'), (2, 'a')]),
            [(1, 'a')],
            "the other was seen two seconds ago"
        );
        assert!(
            sightings.look(at(1_000_000), [(3, 'a')]).is_empty(),
            "seen for the first time after a long gap"
        );
    }

    #[test]
    fn a_renewal_or_a_reference_begins_the_time_anew() {
        let mut sightings = Sightings::new(GRACE);
        sightings.look(at(0), [(1, 'a'), (2, 'a')]);
        assert!(
            sightings.look(at(20), [(1, 'b')]).is_empty(),
            "put again; the other is referenced"
        );
        assert!(sightings.look(at(29), [(1, 'b'), (2, 'a')]).is_empty());
        assert_eq!(
            sightings.look(at(30), [(1, 'b'), (2, 'a')]),
            [(1, 'b')],
            "the other was referenced in between"
        );
    }
}
