//! Deletion of blobs that no record can refer to any more.
//!
//! A blob may be deleted when no record refers to it and no process holds it (see
//! [`Held`](super::Held)), and the same was true at an earlier scan, a grace period ago. A put and
//! a renewal change a blob's version; versions are only compared for equality. The grace period is
//! measured on the sweeper's own monotonic clock, which is never compared with another clock or
//! with the time of a file.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::time::Duration;

use futures_util::TryStreamExt;
use tokio::time::Instant;

use super::digest::Digest;
use super::store::{BlobError, BlobStore, Kind, Version};

/// Unreferenced objects that one sweeper has seen, each with the time since which it has been
/// unreferenced.
#[derive(Clone, Debug)]
pub struct UnreferencedSince<K, V> {
    grace: Duration,
    seen: HashMap<K, (V, Duration)>,
}

/// Sweeps a store, scan by scan.
#[derive(Debug)]
pub struct Sweeper {
    blobs: BlobStore,
    epoch: Instant,
    unreferenced: UnreferencedSince<Digest, Version>,
}

/// Result of one scan of the store.
#[derive(Debug, Default)]
pub struct SweepScan {
    /// Unreferenced and unchanged since a scan at least a grace period ago.
    due: Vec<(Digest, Version)>,
    /// Blobs that are not due.
    kept: usize,
    /// Bytes of all blobs.
    bytes: u64,
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

// === impl UnreferencedSince ===

impl<K: Eq + Hash + Copy, V: PartialEq> UnreferencedSince<K, V> {
    /// No objects yet. `grace` is the minimum time from the first scan that finds a blob to its
    /// deletion; it must be longer than a holder may go without renewing its holds.
    pub fn new(grace: Duration) -> Self {
        Self {
            grace,
            seen: HashMap::new(),
        }
    }

    /// Processes one scan. `found` is every object that is unreferenced at `now`, with its version;
    /// `now` counts from any origin and never decreases. Returns the objects that may be deleted:
    /// they were in every scan since a grace period ago or longer, with the same version.
    pub fn record_scan(
        &mut self,
        now: Duration,
        found: impl IntoIterator<Item = (K, V)>,
    ) -> Vec<(K, V)>
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

// === impl SweepScan ===

impl SweepScan {
    /// Whether no blob is due.
    pub fn is_empty(&self) -> bool {
        self.due.is_empty()
    }

    /// Number of blobs that are not due.
    pub fn kept(&self) -> usize {
        self.kept
    }

    /// Number of blobs in the store, and their bytes.
    pub fn stored(&self) -> (usize, u64) {
        (self.kept + self.due.len(), self.bytes)
    }
}

// === impl Sweeper ===

impl Sweeper {
    /// A sweeper that has seen nothing yet. `grace`: see [`UnreferencedSince::new`].
    pub fn new(blobs: BlobStore, grace: Duration) -> Self {
        Self {
            blobs,
            epoch: Instant::now(),
            unreferenced: UnreferencedSince::new(grace),
        }
    }

    /// Scans every blob. `live` are the digests that records refer to; it must also contain
    /// every blob that was held before the records were read, see [`BlobStore::held`].
    ///
    /// # Errors
    /// [`BlobError`]: the store failed; another scan can be made later.
    pub async fn scan(&mut self, live: &HashSet<Digest>) -> Result<SweepScan, BlobError> {
        let (found, bytes) = self.blobs.versions().await?;
        let count = found.len();
        let unreferenced = found.into_iter().filter(|(digest, _)| {
            // The holder of a held blob may write a record that refers to it at any moment.
            !live.contains(digest) && !self.blobs.is_held(digest)
        });
        let due = self
            .unreferenced
            .record_scan(self.epoch.elapsed(), unreferenced);
        Ok(SweepScan {
            kept: count - due.len(),
            due,
            bytes,
        })
    }

    /// Deletes the blobs that are due, unless they are in `live`: the digests that records refer to
    /// now, read after every record that they depend on has become durable.
    ///
    /// # Errors
    /// As for [`Sweeper::scan`].
    pub async fn remove(
        &self,
        scan: SweepScan,
        live: &HashSet<Digest>,
    ) -> Result<Swept, BlobError> {
        let mut swept = Swept {
            kept: scan.kept,
            ..Swept::default()
        };
        for (digest, version) in scan.due {
            let removed = match live.contains(&digest) {
                true => None,
                false => {
                    self.blobs
                        .delete_if_unchanged(&digest, Some(&version))
                        .await?
                }
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
    /// Deletes at once every blob that is neither in `live` nor held, and the remains of
    /// interrupted puts. Only for a directory that no other process uses: this process knows every
    /// holder, so no grace period is needed. `live` must have been read after [`BlobStore::held`],
    /// and contain the digests that it returned.
    ///
    /// # Errors
    /// [`BlobError`]: the store failed.
    pub async fn sweep_alone(&self, live: &HashSet<Digest>) -> Result<Swept, BlobError> {
        let mut swept = Swept::default();
        for (digest, _) in self.versions().await?.0 {
            let removed = match live.contains(&digest) {
                true => None,
                false => self.delete_if_unchanged(&digest, None).await?,
            };
            swept.count(removed);
        }
        self.remove_unfinished().await?;
        Ok(swept)
    }

    /// Every blob with its version, and the bytes of all blobs.
    async fn versions(&self) -> Result<(HashMap<Digest, Version>, u64), BlobError> {
        let mut found: HashMap<Digest, Version> = HashMap::new();
        let mut bytes = 0_u64;
        let mut metas = self.metas();
        while let Some((digest, kind, meta)) = metas.try_next().await? {
            let version = found.entry(digest).or_default();
            match kind {
                Kind::Content => {
                    bytes = bytes.saturating_add(meta.size);
                    version.content = Some(Version::of(&meta));
                }
                Kind::Hold => version.hold = Some(Version::of(&meta)),
            }
        }
        Ok((found, bytes))
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
    fn one_scan_deletes_nothing_however_late_it_comes() {
        let mut unreferenced = UnreferencedSince::new(GRACE);
        assert!(unreferenced.record_scan(at(0), [(1, 'a')]).is_empty());
        assert!(
            unreferenced
                .record_scan(at(9), [(1, 'a'), (2, 'a')])
                .is_empty()
        );
        assert_eq!(
            unreferenced.record_scan(at(11), [(1, 'a'), (2, 'a')]),
            [(1, 'a')],
            "the other was seen two seconds ago"
        );
        assert!(
            unreferenced
                .record_scan(at(1_000_000), [(3, 'a')])
                .is_empty(),
            "seen for the first time after a long gap"
        );
    }

    #[test]
    fn a_renewal_or_a_reference_begins_the_time_anew() {
        let mut unreferenced = UnreferencedSince::new(GRACE);
        unreferenced.record_scan(at(0), [(1, 'a'), (2, 'a')]);
        assert!(
            unreferenced.record_scan(at(20), [(1, 'b')]).is_empty(),
            "put again; the other is referenced"
        );
        assert!(
            unreferenced
                .record_scan(at(29), [(1, 'b'), (2, 'a')])
                .is_empty()
        );
        assert_eq!(
            unreferenced.record_scan(at(30), [(1, 'b'), (2, 'a')]),
            [(1, 'b')],
            "the other was referenced in between"
        );
    }
}
