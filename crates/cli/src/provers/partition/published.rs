//! Keys that a bus's blob store has, fetched by the processes that need them.

use std::path::{Path, PathBuf};

use proofmill_bus::{BlobStore, Connection, Digest, FolderManifest, open_blobs};
use tokio::runtime::Handle;

use crate::circuit_folder::Folder;
use crate::failure::Failure;

/// Folder of fetched keys, in the folder of proving keys.
const CACHE: &str = "published";

/// The keys that processes have published on a bus; those that are fetched are kept in a folder.
#[derive(Clone)]
pub(crate) struct PublishedKeys {
    cache: PathBuf,
    blobs: BlobStore,
    runtime: Handle,
}

/// Files of keys: a folder that somebody else keeps, or one that is filled as files are needed.
pub(super) struct KeyFolder {
    folder: Folder,
    published: Option<(PublishedKeys, FolderManifest)>,
}

// === impl PublishedKeys ===

impl PublishedKeys {
    /// The keys on this bus; `keys` is the folder of proving keys.
    pub(crate) async fn on(connection: &Connection, keys: &Path) -> Result<Self, Failure> {
        Ok(Self {
            cache: keys.join(CACHE),
            blobs: store(connection).await?,
            runtime: Handle::current(),
        })
    }
}

/// The blobs of no workflow, which nobody sweeps.
pub(crate) async fn store(connection: &Connection) -> Result<BlobStore, Failure> {
    Ok(open_blobs(connection).await?)
}

// === impl KeyFolder ===

impl KeyFolder {
    /// The keys at `path` if there are any, otherwise those published under the digest.
    pub(super) fn find(
        path: &Path,
        digest: &str,
        published: Option<&PublishedKeys>,
    ) -> Result<Self, Failure> {
        let folder = Folder::at(path);
        let Some(published) = published.filter(|_| !folder.description_path().exists()) else {
            let published = None;
            return Ok(Self { folder, published });
        };
        let digest: Digest = digest.parse()?;
        let fetched = FolderManifest::fetch(&published.blobs, &digest);
        let manifest = published.runtime.block_on(fetched).map_err(|error| {
            Failure::new(format!("not on this machine, and not on the bus: {error}"))
                .help("publish them: `proofmill partition publish DIR`")
        })?;
        let cache = published.cache.join(digest.to_string());
        std::fs::create_dir_all(&cache)
            .map_err(|error| Failure::new(format!("{}: {error}", cache.display())))?;
        Ok(Self {
            folder: Folder::at(&cache),
            published: Some((published.clone(), manifest)),
        })
    }

    /// The folder, with all of its files that `is_wanted` names. For a thread that may block.
    pub(super) fn with(&self, is_wanted: impl Fn(&str) -> bool) -> Result<&Folder, Failure> {
        if let Some((published, manifest)) = &self.published {
            for name in manifest.names().filter(|name| is_wanted(name)) {
                let (blobs, runtime) = (&published.blobs, &published.runtime);
                manifest.fetch_file(blobs, name, self.folder.path(), runtime)?;
            }
        }
        Ok(&self.folder)
    }
}
