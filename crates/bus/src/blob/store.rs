//! Blobs in an object store.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::TryStreamExt;
use futures_util::stream::{BoxStream, StreamExt};
use object_store::local::LocalFileSystem;
use object_store::path::Path as Location;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, PutPayload};
use tokio::sync::RwLock;

use super::digest::Digest;

/// Content-addressed blobs: a directory of this machine, or any other
/// [`object_store`] back end. Cheap to clone.
///
/// A blob lies under the first two digits of its digest, a slash, and the other 62.
#[derive(Clone, Debug)]
pub struct BlobStore {
    store: Arc<dyn ObjectStore>,
    /// Set if the store is a directory.
    root: Option<Arc<Path>>,
    /// Held by a sweep from looking at a blob's age to deleting it; shared by puts.
    sweeping: Arc<RwLock<()>>,
}

/// Why a blob could not be stored or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BlobError {
    /// There is no such blob.
    #[error("there is no blob {0}")]
    Missing(Digest),
    /// What is stored is not what was put: putting the blob again mends it.
    #[error("blob {expected} is corrupt: its content has the digest {found}")]
    Corrupt {
        /// The blob.
        expected: Digest,
        /// The digest of what was found.
        found: Digest,
    },
    /// The directory cannot be used.
    #[error("cannot use {path} for blobs")]
    Directory {
        /// The directory, or a file in it.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The bucket cannot be used.
    #[error("cannot keep blobs in {url}: {why}")]
    Bucket {
        /// Which, and where in it.
        url: String,
        /// In words.
        why: String,
    },
    /// The object store failed.
    #[error("cannot {what}")]
    Store {
        /// What was tried.
        what: String,
        /// Why.
        #[source]
        source: object_store::Error,
    },
}

/// What a sweep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Blobs deleted.
    pub deleted: usize,
    /// Bytes they held.
    pub bytes: u64,
    /// Blobs kept: referenced, or younger than the grace period.
    pub kept: usize,
}

// === impl BlobStore ===

impl BlobStore {
    /// Blobs in the directory `dir`, which is made if it is not there. The directory is private
    /// (mode 0700), and so is every file in it (0600).
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

    /// Blobs in the directory `dir`, which is left as it is: to read what is there, also where nothing
    /// can be written. If it is not there, there are no blobs.
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
            sweeping: Arc::default(),
        }
    }

    /// Stores `content`. When this returns it is on stable storage. Putting a blob that is there
    /// already makes it young again for [`BlobStore::sweep`], and mends it if it was corrupt.
    pub async fn put(&self, content: Bytes) -> Result<Digest, BlobError> {
        let digest = Digest::of(&content);
        let location = location(&digest);
        let _not_swept = self.sweeping.read().await;
        self.store
            .put(&location, PutPayload::from_bytes(content))
            .await
            .map_err(|source| BlobError::Store {
                what: format!("store blob {digest}"),
                source,
            })?;
        if let Some(root) = &self.root {
            let path = root.join(location.as_ref());
            // Until then the directory alone keeps others out.
            fs::set_permissions(&path, Permissions::from_mode(0o600))
                .map_err(|source| BlobError::Directory { path, source })?;
        }
        Ok(digest)
    }

    /// The content of a blob, verified.
    ///
    /// # Errors
    /// [`BlobError::Missing`], [`BlobError::Corrupt`], or a failure of the store.
    pub async fn get(&self, digest: &Digest) -> Result<Bytes, BlobError> {
        let failed = |source| match source {
            object_store::Error::NotFound { .. } => BlobError::Missing(*digest),
            source => BlobError::Store {
                what: format!("read blob {digest}"),
                source,
            },
        };
        let found = self.store.get(&location(digest)).await.map_err(failed)?;
        let content = found.bytes().await.map_err(failed)?;
        match Digest::of(&content) {
            found if found == *digest => Ok(content),
            found => Err(BlobError::Corrupt {
                expected: *digest,
                found,
            }),
        }
    }

    /// Whether the blob is there; its content is not looked at.
    pub async fn contains(&self, digest: &Digest) -> Result<bool, BlobError> {
        Ok(self.head(digest).await?.is_some())
    }

    /// Every blob, in no particular order, with its length in bytes.
    pub fn list(&self) -> BoxStream<'_, Result<(Digest, u64), BlobError>> {
        let listed = self
            .metas()
            .try_filter_map(|(digest, meta)| async move { Ok(Some((digest, meta.size))) });
        listed.boxed()
    }

    /// Deletes a blob; that it is not there is no error.
    pub async fn delete(&self, digest: &Digest) -> Result<(), BlobError> {
        match self.store.delete(&location(digest)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(source) => Err(BlobError::Store {
                what: format!("delete blob {digest}"),
                source,
            }),
        }
    }

    /// Deletes the blobs that are not in `live` and were last put more than `grace` ago, and what
    /// interrupted puts left behind.
    ///
    /// `grace` must be longer than it may take from putting a blob to recording a reference to
    /// it: a put that this store's clones do not make (another process) is only protected by it.
    pub async fn sweep(&self, live: &HashSet<Digest>, grace: Duration) -> Result<Swept, BlobError> {
        let now = SystemTime::now();
        let old = |meta: &ObjectMeta| {
            let age = now.duration_since(SystemTime::from(meta.last_modified));
            // A time of change in the future is young.
            age.is_ok_and(|age| age > grace)
        };
        let mut swept = Swept::default();
        let mut metas = self.metas();
        while let Some((digest, meta)) = metas.try_next().await? {
            if live.contains(&digest) || !old(&meta) {
                swept.kept += 1;
                continue;
            }
            let _no_puts = self.sweeping.write().await;
            // It may have been put again since it was listed.
            match self.head(&digest).await? {
                Some(meta) if old(&meta) => {
                    self.delete(&digest).await?;
                    swept.deleted += 1;
                    swept.bytes += meta.size;
                }
                Some(_) => swept.kept += 1,
                // Gone by now, or never finished: pieces of it may be there.
                None => self.delete(&digest).await?,
            }
        }
        if let Some(root) = &self.root {
            sweep_unfinished(root, now, grace).map_err(|source| BlobError::Directory {
                path: root.to_path_buf(),
                source,
            })?;
        }
        Ok(swept)
    }

    async fn head(&self, digest: &Digest) -> Result<Option<ObjectMeta>, BlobError> {
        match self.store.head(&location(digest)).await {
            Ok(meta) => Ok(Some(meta)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(source) => Err(BlobError::Store {
                what: format!("look for blob {digest}"),
                source,
            }),
        }
    }

    /// Objects whose name is not a blob's are somebody else's, and left alone.
    fn metas(&self) -> BoxStream<'_, Result<(Digest, ObjectMeta), BlobError>> {
        let failed = |source| BlobError::Store {
            what: "list the blobs".to_owned(),
            source,
        };
        let listed = self.store.list(None).map_err(failed);
        let blobs = listed.try_filter_map(|meta| async move {
            let digest = meta.location.as_ref().replacen('/', "", 1).parse().ok();
            let named = digest.filter(|digest| location(digest) == meta.location);
            Ok(named.map(|digest| (digest, meta)))
        });
        blobs.boxed()
    }
}

fn location(digest: &Digest) -> Location {
    let name = digest.to_string();
    Location::from(format!("{}/{}", &name[..2], &name[2..]))
}

/// A put writes to a file with `#` in its name, then renames it; an interrupted one leaves it.
fn sweep_unfinished(root: &Path, now: SystemTime, grace: Duration) -> io::Result<()> {
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
            // It may be finished and gone by now.
            let Ok(modified) = file.metadata().and_then(|meta| meta.modified()) else {
                continue;
            };
            if now.duration_since(modified).is_ok_and(|age| age > grace) {
                match fs::remove_file(file.path()) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
        }
    }
    Ok(())
}
