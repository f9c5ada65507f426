//! Blobs in an object store.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, StreamExt};
use object_store::local::LocalFileSystem;
use object_store::path::Path as Location;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, PutPayload};
use tokio::sync::RwLock;

use super::digest::Digest;
use super::hold::{Held, Holds};

/// Time between two renewals of this process's holds in a store that other processes sweep.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(20);

/// Time without a renewal after which a held blob may have been swept, for instance because this
/// process was stopped. Far shorter than the grace period of any sweeper.
const DOUBTFUL_AFTER: Duration = Duration::from_secs(60);

/// Suffix of the object that marks a blob as held.
const HOLD_SUFFIX: &str = ".held";

/// Content-addressed blobs in a directory of this machine, or in any other [`object_store`] back
/// end. Cheap to clone.
///
/// The path of a blob is the first two digits of its digest, a slash, and the other 62; beside it
/// is an object `….held` once a hold of it has been renewed. Where several workflows share a store,
/// the blobs of each are in a folder of its name, since each sweeps only its own.
#[derive(Clone, Debug)]
pub struct BlobStore {
    store: Arc<dyn ObjectStore>,
    /// The directory, if the store is one: one process uses it at a time.
    root: Option<Arc<Path>>,
    /// The workflow whose blobs these are, where several share the store.
    workflow: Option<Arc<str>>,
    conditional: Option<Arc<dyn ConditionalDelete>>,
    /// Write-locked by a sweep from looking at a blob's version to deleting it; read-locked by
    /// puts.
    sweeping: Arc<RwLock<()>>,
    holds: Holds,
}

/// A store that can delete an object that was seen, and leave a newer version of it.
pub(crate) trait ConditionalDelete: std::fmt::Debug + Send + Sync {
    /// Deletes the object, except for parts newer than `seen`, a [version](ObjectMeta::version)
    /// that the store has returned; for `None`, deletes all of it.
    fn delete_if_unchanged<'a>(
        &'a self,
        location: &'a Location,
        seen: Option<&'a str>,
    ) -> BoxFuture<'a, object_store::Result<()>>;
}

/// Version of a blob, which changes with each put and each renewal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) content: Option<ObjectVersion>,
    pub(super) hold: Option<ObjectVersion>,
}

/// Version of an object, which distinguishes it from an earlier object of the same name. Compared
/// for equality only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ObjectVersion {
    tag: Option<String>,
    /// Version number. S3 returns it for single objects, and not in listings.
    number: Option<String>,
    /// Time of the last change in seconds since 1970: S3 returns no finer time for single objects.
    changed_s: i64,
    size: u64,
}

/// Role of an object in the store: a blob's content, or the mark that the blob is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Content,
    Hold,
}

/// The reason why a blob could not be stored or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BlobError {
    /// The store has no such blob.
    #[error("there is no blob {0}")]
    Missing(Digest),
    /// The blob is larger than the reader's limit.
    #[error("blob {blob} has {size} bytes, the limit is {limit}")]
    TooLarge {
        /// The blob.
        blob: Digest,
        /// The size of the blob, in bytes.
        size: u64,
        /// The reader's limit, in bytes.
        limit: u64,
    },
    /// The stored content does not have the digest of the blob. Putting the blob again repairs it.
    #[error("blob {expected} is corrupt: its content has the digest {found}")]
    Corrupt {
        /// The blob.
        expected: Digest,
        /// The digest of the content found.
        found: Digest,
    },
    /// The directory cannot be used.
    #[error("cannot use {path} for blobs")]
    Directory {
        /// The directory, or a file in it.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The bucket cannot be used.
    #[error("cannot keep blobs in {url}: {why}")]
    Bucket {
        /// The address, as `s3://BUCKET/PREFIX`.
        url: String,
        /// The reason, as a sentence fragment.
        why: String,
    },
    /// The object store failed.
    #[error("cannot {what}")]
    Store {
        /// The operation that failed, as in "read blob …".
        what: String,
        /// The error of the store.
        #[source]
        source: object_store::Error,
    },
}

/// Bytes that a probe writes to a directory: with less free space the next blob would hardly fit.
const PROBE_BYTES: usize = 1 << 20;

/// Content that a probe puts into a store other than a directory: always the same blob, to which no
/// record refers.
const PROBE: &[u8] = b"proofmill: the blob store can be written\n";

// === impl BlobError ===

impl BlobError {
    /// Whether the store itself failed. Otherwise it has answered, and the blob is missing, damaged
    /// or too large.
    pub fn is_of_store(&self) -> bool {
        !matches!(
            self,
            Self::Missing(_) | Self::Corrupt { .. } | Self::TooLarge { .. }
        )
    }

    /// The operating system's error that caused this one, if any.
    pub fn io(&self) -> Option<&io::Error> {
        let mut error: Option<&(dyn std::error::Error + 'static)> = Some(self);
        while let Some(cause) = error {
            if let Some(io) = cause.downcast_ref() {
                return Some(io);
            }
            error = cause.source();
        }
        None
    }
}

// === impl BlobStore ===

impl BlobStore {
    /// Blobs in the directory `dir`, which is created if necessary. The directory is private (mode
    /// 0700), and so is every file in it (0600).
    ///
    /// # Errors
    /// [`BlobError::Directory`].
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, BlobError> {
        let dir = dir.as_ref();
        let directory = |source| BlobError::Directory {
            path: dir.to_owned(),
            source,
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)
            .map_err(directory)?;
        fs::set_permissions(dir, Permissions::from_mode(0o700)).map_err(directory)?;
        let root = dir.canonicalize().map_err(directory)?;
        if let Some(parent) = root.parent() {
            fs::File::open(parent)
                .and_then(|parent| parent.sync_all())
                .map_err(directory)?;
        }
        let store = LocalFileSystem::new_with_prefix(&root)
            .map_err(|source| BlobError::Store {
                what: format!("open {}", dir.display()),
                source,
            })?
            .with_fsync(true);
        Ok(Self {
            root: Some(root.into()),
            ..Self::over(Arc::new(store))
        })
    }

    /// Blobs in the directory `dir`, for reading only: nothing is created or changed, so it also
    /// works on a read-only disk. If `dir` does not exist, there are no blobs.
    ///
    /// # Errors
    /// [`BlobError::Directory`].
    pub fn open_existing(dir: impl AsRef<Path>) -> Result<Self, BlobError> {
        let dir = dir.as_ref();
        let root = match dir.canonicalize() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self::over(Arc::new(object_store::memory::InMemory::new())));
            }
            root => root.map_err(|source| BlobError::Directory {
                path: dir.to_owned(),
                source,
            })?,
        };
        let store = LocalFileSystem::new_with_prefix(&root);
        let store = store.map_err(|source| BlobError::Store {
            what: format!("open {}", dir.display()),
            source,
        })?;
        Ok(Self::over(Arc::new(store)))
    }

    /// Blobs in another object store, whose puts must be durable when they return.
    pub fn over(store: Arc<dyn ObjectStore>) -> Self {
        Self {
            store,
            root: None,
            workflow: None,
            conditional: None,
            sweeping: Arc::default(),
            holds: Holds::default(),
        }
    }

    /// Blobs in a store that can delete conditionally; otherwise like [`BlobStore::over`].
    pub(crate) fn over_conditional<S: ObjectStore + ConditionalDelete + Clone>(store: S) -> Self {
        Self {
            conditional: Some(Arc::new(store.clone())),
            ..Self::over(Arc::new(store))
        }
    }

    /// Restricts the store to the blobs of one workflow (ASCII letters, digits, `_` and `-`), in a
    /// store that several workflows share: sweeps of other workflows do not see them. Blobs stored
    /// without a workflow can still be read.
    pub fn for_workflow(self, workflow: &str) -> Self {
        Self {
            workflow: Some(workflow.into()),
            ..self
        }
    }

    /// Stores `content`; it is on stable storage when this returns. Putting an existing blob again
    /// changes its version for sweeps, and repairs it if it was corrupt.
    ///
    /// The blob may be swept after a grace period; [`BlobStore::put_held`] prevents this.
    pub async fn put(&self, content: Bytes) -> Result<Digest, BlobError> {
        let digest = Digest::of(&content);
        let location = self.location(&digest);
        let _not_swept = self.sweeping.read().await;
        self.put_at(&location, content)
            .await
            .map_err(|source| BlobError::Store {
                what: format!("store blob {digest}"),
                source,
            })?;
        if let Some(root) = &self.root {
            let path = root.join(location.as_ref());
            // Until then only the mode of the directory protects the file.
            fs::set_permissions(&path, Permissions::from_mode(0o600))
                .map_err(|source| BlobError::Directory { path, source })?;
        }
        Ok(digest)
    }

    /// Stores `content` like [`BlobStore::put`], and holds the blob: it is not swept before the
    /// [`Held`] is dropped, which the caller does once a record refers to the blob.
    pub async fn put_held(&self, content: Bytes) -> Result<(Digest, Held), BlobError> {
        let held = self.hold([Digest::of(&content)]);
        let digest = self.put(content).await?;
        self.holds.note_renewed(&digest);
        Ok((digest, held))
    }

    async fn put_at(&self, location: &Location, content: Bytes) -> object_store::Result<()> {
        let payload = PutPayload::from_bytes(content);
        self.store.put(location, payload).await.map(drop)
    }

    /// Holds blobs that were put just now, or that are held already.
    pub fn hold(&self, digests: impl IntoIterator<Item = Digest>) -> Held {
        self.holds.hold(digests)
    }

    /// The blobs held in this process.
    pub fn held(&self) -> Vec<Digest> {
        self.holds.all()
    }

    pub(super) fn is_held(&self, digest: &Digest) -> bool {
        self.holds.contains(digest)
    }

    /// Renews this process's holds in the store, so that sweeps of other processes keep the blobs;
    /// to be called at least every 20 s while any blob is held. Does nothing for a directory, which
    /// only one process uses.
    ///
    /// # Errors
    /// [`BlobError::Store`]: not all holds were renewed.
    pub async fn renew_held(&self) -> Result<(), BlobError> {
        self.renew(&self.held()).await
    }

    /// Renews this process's holds every 20 s, until every other clone of this store is dropped.
    pub fn keep_renewing(&self) -> BoxFuture<'static, ()> {
        let (held, blobs) = (Arc::downgrade(&self.sweeping), self.clone());
        let (store, workflow, holds) = (blobs.store, blobs.workflow, blobs.holds);
        Box::pin(async move {
            loop {
                tokio::time::sleep(RENEWAL_INTERVAL).await;
                let Some(sweeping) = held.upgrade() else {
                    return;
                };
                let blobs = Self {
                    workflow: workflow.clone(),
                    holds: holds.clone(),
                    sweeping,
                    ..Self::over(store.clone())
                };
                if let Err(error) = blobs.renew_held().await {
                    let error = crate::with_sources(&error);
                    tracing::warn!(error, "cannot renew the blobs that are held here");
                }
            }
        })
    }

    async fn renew(&self, digests: &[Digest]) -> Result<(), BlobError> {
        if self.root.is_some() {
            return Ok(());
        }
        for digest in digests {
            // Random content, so that every renewal changes the object's version without relying on
            // a clock.
            let nonce: [u8; 16] = rand::random();
            let content = Bytes::from(hex::encode(nonce));
            let put = self.put_at(&self.hold_location(digest), content).await;
            put.map_err(|source| BlobError::Store {
                what: format!("renew blob {digest}"),
                source,
            })?;
            self.holds.note_renewed(digest);
        }
        Ok(())
    }

    /// Digests in `held` whose blobs are no longer in the store. Blobs that still exist are renewed.
    /// The store is queried only if a blob may have been swept: if the last renewal is so long ago
    /// that the process was stopped, or could not reach the store.
    ///
    /// # Errors
    /// [`BlobError::Store`]: the store cannot be asked.
    pub async fn lost(&self, held: &Held) -> Result<Vec<Digest>, BlobError> {
        let renewed = self.holds.renewed(held.digests());
        if renewed.is_none_or(|renewed| renewed.elapsed() < DOUBTFUL_AFTER) {
            return Ok(Vec::new());
        }
        self.renew(held.digests()).await?;
        let mut lost = Vec::new();
        for digest in held.digests() {
            if !self.contains(digest).await? {
                lost.push(*digest);
            }
        }
        Ok(lost)
    }

    /// The content of a blob, verified.
    ///
    /// # Errors
    /// [`BlobError::Missing`], [`BlobError::Corrupt`], or a failure of the store.
    pub async fn get(&self, digest: &Digest) -> Result<Bytes, BlobError> {
        self.get_within(digest, u64::MAX).await
    }

    /// The content of a blob like [`BlobStore::get`], for a blob that another process has named. A
    /// blob of more than `limit` bytes is not fetched.
    ///
    /// # Errors
    /// As [`BlobStore::get`], and [`BlobError::TooLarge`].
    pub async fn get_within(&self, digest: &Digest, limit: u64) -> Result<Bytes, BlobError> {
        let failed = |source| match source {
            object_store::Error::NotFound { .. } => BlobError::Missing(*digest),
            source => BlobError::Store {
                what: format!("read blob {digest}"),
                source,
            },
        };
        let found = match self.store.get(&self.location(digest)).await {
            // Earlier versions of this program stored blobs outside the workflows' folders.
            Err(object_store::Error::NotFound { .. }) if self.workflow.is_some() => {
                self.store.get(&location(digest)).await
            }
            found => found,
        };
        let found = found.map_err(failed)?;
        if found.meta.size > limit {
            return Err(BlobError::TooLarge {
                blob: *digest,
                size: found.meta.size,
                limit,
            });
        }
        let content = found.bytes().await.map_err(failed)?;
        match Digest::of(&content) {
            found if found == *digest => Ok(content),
            found => Err(BlobError::Corrupt {
                expected: *digest,
                found,
            }),
        }
    }

    /// Checks whether blobs can be stored now: writes 1 MiB to the directory and removes it, or
    /// puts one small blob into any other store, always the same, which the next sweep removes.
    ///
    /// # Errors
    /// The failure of the store.
    pub async fn probe(&self) -> Result<(), BlobError> {
        let Some(root) = self.root.clone() else {
            return self.put(Bytes::from_static(PROBE)).await.map(|_| ());
        };
        let probed = tokio::task::spawn_blocking(move || probe_directory(&root)).await;
        probed.unwrap_or_else(|error| {
            Err(BlobError::Directory {
                path: PathBuf::from("(a probe)"),
                source: io::Error::other(error),
            })
        })
    }

    /// Whether the blob exists; its content is not read.
    pub async fn contains(&self, digest: &Digest) -> Result<bool, BlobError> {
        if self.head(&self.location(digest)).await?.is_some() {
            return Ok(true);
        }
        Ok(self.workflow.is_some() && self.head(&location(digest)).await?.is_some())
    }

    /// All blobs with their lengths in bytes, in no particular order.
    pub fn list(&self) -> BoxStream<'_, Result<(Digest, u64), BlobError>> {
        let listed = self
            .metas()
            .try_filter_map(|(digest, kind, meta)| async move {
                Ok((kind == Kind::Content).then_some((digest, meta.size)))
            });
        listed.boxed()
    }

    /// Deletes a blob. A missing blob is no error.
    pub async fn delete(&self, digest: &Digest) -> Result<(), BlobError> {
        self.delete_at(&self.location(digest), None).await?;
        self.delete_at(&self.hold_location(digest), None).await
    }

    async fn delete_at(
        &self,
        location: &Location,
        seen: Option<&ObjectVersion>,
    ) -> Result<(), BlobError> {
        let deleted = match &self.conditional {
            Some(store) => {
                let number = seen.and_then(|seen| seen.number.as_deref());
                store.delete_if_unchanged(location, number).await
            }
            None => self.store.delete(location).await,
        };
        match deleted {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(source) => Err(BlobError::Store {
                what: format!("delete {location}"),
                source,
            }),
        }
    }

    /// Deletes a blob that is not held, if its version is still the one that was seen (`None`: any
    /// version). Returns its length in bytes if it was deleted.
    pub(super) async fn delete_if_unchanged(
        &self,
        digest: &Digest,
        seen: Option<&Version>,
    ) -> Result<Option<u64>, BlobError> {
        let _no_puts = self.sweeping.write().await;
        if self.is_held(digest) {
            return Ok(None);
        }
        let (location, hold) = (self.location(digest), self.hold_location(digest));
        let content = self.head(&location).await?;
        let now = match &self.root {
            // A directory is used by one process, so no other process renews holds in it.
            Some(_) => None,
            None => self.head(&hold).await?,
        };
        let size = content.as_ref().map_or(0, |meta| meta.size);
        if let Some(seen) = seen {
            let same_hold = match (&now, &seen.hold) {
                (Some(meta), Some(seen)) => seen.is_of(meta),
                (now, seen) => now.is_none() && seen.is_none(),
            };
            // Remains of an unfinished put have no first piece, so `head` does not find them.
            let same_content = match (&content, &seen.content) {
                (Some(meta), Some(seen)) => seen.is_of(meta),
                (content, _) => content.is_none(),
            };
            if !same_hold || !same_content {
                return Ok(None);
            }
        }
        let seen_content = seen.and_then(|seen| seen.content.as_ref());
        self.delete_at(&location, seen_content).await?;
        if now.is_some() {
            self.delete_at(&hold, seen.and_then(|seen| seen.hold.as_ref()))
                .await?;
        }
        Ok(Some(size))
    }

    /// Removes the remains of interrupted puts from a directory that no other process uses.
    pub(super) async fn remove_unfinished(&self) -> Result<(), BlobError> {
        let Some(root) = &self.root else {
            return Ok(());
        };
        let _no_puts = self.sweeping.write().await;
        remove_unfinished(root).map_err(|source| BlobError::Directory {
            path: root.to_path_buf(),
            source,
        })
    }

    async fn head(&self, location: &Location) -> Result<Option<ObjectMeta>, BlobError> {
        match self.store.head(location).await {
            Ok(meta) => Ok(Some(meta)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(source) => Err(BlobError::Store {
                what: format!("look for {location}"),
                source,
            }),
        }
    }

    /// The blobs and holds in the store. Objects with other names belong to other programs and are
    /// ignored.
    pub(super) fn metas(&self) -> BoxStream<'_, Result<(Digest, Kind, ObjectMeta), BlobError>> {
        let failed = |source| BlobError::Store {
            what: "list the blobs".to_owned(),
            source,
        };
        let folder = self.workflow.as_ref().map(|name| Location::from(&**name));
        let listed = self.store.list(folder.as_ref()).map_err(failed);
        let blobs = listed.try_filter_map(move |meta| async move {
            let named = self.named(&meta.location);
            Ok(named.map(|(digest, kind)| (digest, kind, meta)))
        });
        blobs.boxed()
    }

    fn location(&self, digest: &Digest) -> Location {
        match &self.workflow {
            Some(workflow) => Location::from(format!("{workflow}/{}", location(digest))),
            None => location(digest),
        }
    }

    fn hold_location(&self, digest: &Digest) -> Location {
        Location::from(format!("{}{HOLD_SUFFIX}", self.location(digest)))
    }

    /// The blob that an object belongs to, and its role; `None` if it is not a blob's.
    fn named(&self, location: &Location) -> Option<(Digest, Kind)> {
        let name = location.as_ref();
        let (name, kind) = match name.strip_suffix(HOLD_SUFFIX) {
            Some(name) => (name, Kind::Hold),
            None => (name, Kind::Content),
        };
        let name = match &self.workflow {
            Some(workflow) => name.strip_prefix(&**workflow)?.strip_prefix('/')?,
            None => name,
        };
        let digest = name.replacen('/', "", 1).parse().ok()?;
        let is_ours = match kind {
            Kind::Content => self.location(&digest) == *location,
            Kind::Hold => self.hold_location(&digest) == *location,
        };
        is_ours.then_some((digest, kind))
    }
}

// === impl Version ===

impl Version {
    pub(super) fn of(meta: &ObjectMeta) -> ObjectVersion {
        ObjectVersion {
            tag: meta.e_tag.clone(),
            number: meta.version.clone(),
            changed_s: meta.last_modified.timestamp(),
            size: meta.size,
        }
    }
}

// === impl ObjectVersion ===

impl ObjectVersion {
    /// Whether the object is unchanged, judged by its metadata alone.
    fn is_of(&self, meta: &ObjectMeta) -> bool {
        let now = Version::of(meta);
        let number = now.number.is_none() || self.number.is_none() || now.number == self.number;
        number && (&now.tag, now.changed_s, now.size) == (&self.tag, self.changed_s, self.size)
    }
}

fn probe_directory(root: &Path) -> Result<(), BlobError> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    // Not a valid blob name, so that lists and sweeps ignore the file.
    let path = root.join(format!(".probe-{}-{number}", std::process::id()));
    // Pseudo-random content, which a file system cannot compress away.
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let content: Vec<u8> = (0..PROBE_BYTES / 8)
        .flat_map(|_| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed.to_le_bytes()
        })
        .collect();
    let written = fs::File::create(&path).and_then(|mut file| {
        file.write_all(&content)?;
        // File systems with delayed allocation report a lack of space only here.
        file.sync_all()
    });
    let removed = fs::remove_file(&path);
    written
        .and(removed)
        .map_err(|source| BlobError::Directory { path, source })
}

fn location(digest: &Digest) -> Location {
    let name = digest.to_string();
    Location::from(format!("{}/{}", &name[..2], &name[2..]))
}

/// Removes the remains of interrupted puts: a put writes to a file with `#` in its name, then
/// renames it.
fn remove_unfinished(root: &Path) -> io::Result<()> {
    for folder in fs::read_dir(root)? {
        let folder = folder?;
        if !folder.file_type()?.is_dir() {
            continue;
        }
        for file in fs::read_dir(folder.path())? {
            let file = file?;
            let name = file.file_name();
            let Some((blob, _)) = name.to_str().and_then(|name| name.split_once('#')) else {
                continue;
            };
            let digest = format!("{}{blob}", folder.file_name().to_string_lossy());
            if digest.parse::<Digest>().is_err() {
                continue;
            }
            match fs::remove_file(file.path()) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    }
    Ok(())
}
