//! Keys that a bus's blob store has, fetched by the processes that need them.

use std::path::{Path, PathBuf};

use proofmill_bus::{BlobStore, Connection, Digest, FolderManifest, open_blobs};
use tokio::runtime::Handle;

use crate::circuit_folder::{Folder, is_checking_file, is_proving_file};
use crate::failure::Failure;

/// Folder of fetched keys, in the folder of proving keys.
const CACHE: &str = "published";

/// The keys that processes have published on a bus; those that are fetched are kept in a folder. The store is opened when
/// the first ones are.
#[derive(Clone)]
pub(super) struct PublishedKeys {
    cache: PathBuf,
    connection: Connection,
    runtime: Handle,
}

/// Files of keys: a folder that somebody else keeps, or one that is filled as files are needed.
pub(super) struct KeyFolder {
    folder: Folder,
    published: Option<Published>,
}

/// A published folder.
struct Published {
    manifest: FolderManifest,
    store: BlobStore,
    runtime: Handle,
}

// === impl PublishedKeys ===

impl PublishedKeys {
    /// The keys on this bus; `keys` is the folder of proving keys. The runtime fetches them.
    pub(super) fn on(connection: &Connection, keys: &Path, runtime: &Handle) -> Self {
        Self {
            cache: keys.join(CACHE),
            connection: connection.clone(),
            runtime: runtime.clone(),
        }
    }

    fn find(&self, digest: &Digest) -> Result<Published, Failure> {
        let found = self.runtime.block_on(async {
            let store = store(&self.connection).await?;
            let manifest = FolderManifest::fetch(&store, digest).await?;
            Ok::<_, Failure>((store, manifest))
        });
        let (store, manifest) = found.map_err(|failure| {
            let why = failure.message();
            Failure::new(format!("not on this machine, and not on the bus: {why}"))
                .help("publish them: `proofmill partition publish DIR`")
        })?;
        Ok(Published {
            manifest,
            store,
            runtime: self.runtime.clone(),
        })
    }
}

/// The blobs of no workflow, which nobody sweeps.
pub(crate) async fn store(connection: &Connection) -> Result<BlobStore, Failure> {
    Ok(open_blobs(connection).await?)
}

// === impl KeyFolder ===

impl KeyFolder {
    /// The keys at `path` if there are any, otherwise those published under the digest, of which the files to prove with
    /// are fetched. For a thread that may block.
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
        let cache = published.cache.join(digest);
        let found = published.find(&digest.parse()?)?;
        std::fs::create_dir_all(&cache)
            .map_err(|error| Failure::new(format!("{}: {error}", cache.display())))?;
        let files = Self {
            folder: Folder::at(&cache),
            published: Some(found),
        };
        files.fetch(is_proving_file)?;
        Ok(files)
    }

    /// The folder, with the files to commit and prove with.
    pub(super) const fn folder(&self) -> &Folder {
        &self.folder
    }

    /// The folder with all files, also those to check with. For a thread that may block.
    pub(super) fn to_check_with(&self) -> Result<&Folder, Failure> {
        self.fetch(is_checking_file)?;
        Ok(&self.folder)
    }

    fn fetch(&self, is_wanted: fn(&str) -> bool) -> Result<(), Failure> {
        let Some(published) = &self.published else {
            return Ok(());
        };
        let manifest = &published.manifest;
        for name in manifest.names().filter(|name| is_wanted(name)) {
            let (store, folder) = (&published.store, self.folder.path());
            manifest.fetch_file(store, name, folder, &published.runtime)?;
        }
        Ok(())
    }
}
