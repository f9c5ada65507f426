//! Folders of files in a blob store: keys, which workers fetch by digest.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use bytes::Bytes;
use proofmill_files::{FileError, Visibility, open_regular, write_whole};
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use super::{BlobError, BlobStore, Digest};

/// Bytes of each piece of a file, besides the last one: what a process that publishes or fetches holds of the file.
const PIECE_BYTES: usize = 4 << 20;

/// First bytes of a manifest; the last two are its version.
const MAGIC: &[u8; 12] = b"pm-folder\x00\x00\x01";

/// Most files of a folder.
const FILES_MAX: usize = 1 << 12;

/// Longest name of a file, in bytes.
const NAME_BYTES_MAX: usize = 128;

/// Largest file, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 38;

/// Largest manifest, in bytes: 2 TiB of files.
const MANIFEST_BYTES_MAX: u64 = 1 << 25;

/// The files of a folder by name, with the digests of their pieces. Its own digest identifies the whole content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderManifest {
    /// In the order of names.
    files: Vec<PublishedFile>,
}

/// A file of a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct PublishedFile {
    name: String,
    bytes: u64,
    pieces: Vec<[u8; 32]>,
}

/// The reason why a folder was not published or fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    /// A file of the folder cannot be read.
    #[error("{name}: {source}")]
    Read {
        /// Name of the file.
        name: String,
        /// The reason.
        source: io::Error,
    },
    /// A file that cannot be written.
    #[error(transparent)]
    Write(#[from] FileError),
    /// The blob store failed, or lacks a piece.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// The blob is no manifest of a folder.
    #[error("blob {digest} is no manifest of a folder: {why}")]
    Manifest {
        /// The blob.
        digest: Digest,
        /// The defect.
        why: &'static str,
    },
    /// A folder beyond the limits of a manifest.
    #[error("{0}")]
    Limit(String),
    /// The manifest has no such file.
    #[error("the published folder has no file {0}")]
    NoFile(String),
}

// === impl FolderManifest ===

impl FolderManifest {
    /// The manifest of these files of a folder. Reads them whole, a piece at a time.
    ///
    /// # Errors
    ///
    /// [`FolderError::Read`] and [`FolderError::Limit`].
    pub fn of(folder: &Path, names: &[String]) -> Result<Self, FolderError> {
        let mut names = names.to_vec();
        names.sort_unstable();
        names.dedup();
        if names.len() > FILES_MAX {
            let count = names.len();
            return Err(FolderError::Limit(format!(
                "{count} files: a published folder has {FILES_MAX} at most"
            )));
        }
        let files = names.into_iter().map(|name| {
            if !is_name(&name) {
                return Err(FolderError::Limit(format!(
                    "{name:?} is no name of a published file"
                )));
            }
            let mut pieces = Vec::new();
            let bytes = each_piece(folder, &name, |piece| {
                pieces.push(*Digest::of(piece).as_bytes());
                Ok(())
            })?;
            Ok(PublishedFile {
                name,
                bytes,
                pieces,
            })
        });
        Ok(Self {
            files: files.collect::<Result<_, FolderError>>()?,
        })
    }

    /// The digest by which the folder is fetched.
    pub fn digest(&self) -> Digest {
        Digest::of(&self.to_bytes())
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Names of the files, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|file| &*file.name)
    }

    /// The magic, the version, and the files in postcard's encoding.
    fn to_bytes(&self) -> Bytes {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(postcard::to_stdvec(&self.files).expect("these types have an encoding"));
        bytes.into()
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, &'static str> {
        let rest = bytes.strip_prefix(MAGIC).ok_or("other first bytes")?;
        let files: Vec<PublishedFile> =
            postcard::from_bytes(rest).map_err(|_| "it does not decode")?;
        let is_sorted = files.is_sorted_by(|one, next| one.name < next.name);
        if files.len() > FILES_MAX || !is_sorted {
            return Err("too many files, or not in order");
        }
        for file in &files {
            let pieces = file.bytes.div_ceil(PIECE_BYTES as u64);
            if !is_name(&file.name) || file.bytes > FILE_BYTES_MAX {
                return Err("a name or a size that no file has");
            }
            if pieces != file.pieces.len() as u64 {
                return Err("a size that is not that of the pieces");
            }
        }
        let manifest = Self { files };
        // Of several encodings of one manifest only one has its digest.
        match manifest.to_bytes() == bytes {
            true => Ok(manifest),
            false => Err("it is not canonical"),
        }
    }

    /// Puts the files' pieces and then the manifest into the store; those that are there already are not sent again.
    /// `on_piece` is called after each piece with the bytes done. The store must be one that no workflow sweeps.
    ///
    /// # Errors
    ///
    /// [`FolderError`]; what was put before stays.
    pub async fn publish(
        &self,
        store: &BlobStore,
        folder: &Path,
        mut on_piece: impl FnMut(u64),
    ) -> Result<Digest, FolderError> {
        let mut done = 0;
        for file in &self.files {
            let mut content = open(folder, &file.name)?;
            for digest in &file.pieces {
                let piece = read_piece(&mut content, &file.name)?;
                done += piece.len() as u64;
                if Digest::of(&piece).as_bytes() != digest {
                    let source = io::Error::other("it changes while it is published");
                    let name = file.name.clone();
                    return Err(FolderError::Read { name, source });
                }
                if !store.contains(&Digest(*digest)).await? {
                    store.put(piece.into()).await?;
                }
                on_piece(done);
            }
        }
        Ok(store.put(self.to_bytes()).await?)
    }

    /// Removes the manifest from the store, and then the pieces, which must be of no other published folder.
    ///
    /// # Errors
    ///
    /// [`FolderError::Blob`].
    pub async fn remove(&self, store: &BlobStore) -> Result<(), FolderError> {
        store.delete(&self.digest()).await?;
        for piece in self.files.iter().flat_map(|file| &file.pieces) {
            store.delete(&Digest(*piece)).await?;
        }
        Ok(())
    }

    /// The manifest with this digest.
    ///
    /// # Errors
    ///
    /// [`FolderError::Blob`] and [`FolderError::Manifest`].
    pub async fn fetch(store: &BlobStore, digest: &Digest) -> Result<Self, FolderError> {
        let bytes = store.get_within(digest, MANIFEST_BYTES_MAX).await?;
        Self::from_bytes(&bytes).map_err(|why| FolderError::Manifest {
            digest: *digest,
            why,
        })
    }

    /// Fetches a file into a folder, a piece at a time, each compared with its digest. A file of the right size that is
    /// there is kept: it was written whole. For a thread that may block; `runtime` drives the store.
    ///
    /// # Errors
    ///
    /// [`FolderError`]; the file is then unchanged.
    pub fn fetch_file(
        &self,
        store: &BlobStore,
        name: &str,
        folder: &Path,
        runtime: &Handle,
    ) -> Result<(), FolderError> {
        let found = self.files.iter().find(|file| file.name == name);
        let file = found.ok_or_else(|| FolderError::NoFile(name.to_owned()))?;
        let path = folder.join(name);
        if path.metadata().is_ok_and(|of| of.len() == file.bytes) {
            return Ok(());
        }
        write_whole(&path, Visibility::Public, |out| {
            let mut left = file.bytes;
            for digest in &file.pieces {
                let digest = Digest(*digest);
                let piece = store.get_within(&digest, PIECE_BYTES as u64);
                let piece = runtime.block_on(piece).map_err(io::Error::other)?;
                if piece.len() as u64 != left.min(PIECE_BYTES as u64) {
                    return Err(io::Error::other("a piece of another size"));
                }
                left -= piece.len() as u64;
                out.write_all(&piece)?;
            }
            Ok(())
        })?;
        Ok(())
    }
}

/// Whether a file may have the name: a single component, without surprises in any shell.
fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=NAME_BYTES_MAX).contains(&name.len())
        && name.bytes().all(is_plain)
        && !name.starts_with(['.', '-'])
}

fn open(folder: &Path, name: &str) -> Result<File, FolderError> {
    open_regular(&folder.join(name)).map_err(|source| FolderError::Read {
        name: name.to_owned(),
        source,
    })
}

/// The next piece of a file; empty at its end.
fn read_piece(file: &mut File, name: &str) -> Result<Vec<u8>, FolderError> {
    let mut piece = Vec::new();
    let read = file.take(PIECE_BYTES as u64).read_to_end(&mut piece);
    read.map_err(|source| FolderError::Read {
        name: name.to_owned(),
        source,
    })?;
    Ok(piece)
}

/// Calls `on_piece` for each piece of a file. The file's size.
fn each_piece(
    folder: &Path,
    name: &str,
    mut on_piece: impl FnMut(&[u8]) -> Result<(), FolderError>,
) -> Result<u64, FolderError> {
    let mut file = open(folder, name)?;
    let mut bytes = 0;
    loop {
        let piece = read_piece(&mut file, name)?;
        bytes += piece.len() as u64;
        if bytes > FILE_BYTES_MAX {
            return Err(FolderError::Limit(format!(
                "{name}: a published file has {FILE_BYTES_MAX} bytes at most"
            )));
        }
        if piece.is_empty() {
            return Ok(bytes);
        }
        on_piece(&piece)?;
    }
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;
    use std::sync::Arc;

    use super::*;

    fn folder() -> (tempfile::TempDir, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let large: Vec<u8> = (0..PIECE_BYTES + 3).map(|i| (i % 251) as u8).collect();
        for (name, content) in [("b.pk", &large[..]), ("a.json", b"{}"), ("empty", b"")] {
            std::fs::write(folder.path().join(name), content).unwrap();
        }
        let names = ["b.pk", "a.json", "empty", "a.json"].map(str::to_owned);
        (folder, names.to_vec())
    }

    fn store() -> BlobStore {
        BlobStore::over(Arc::new(InMemory::new()))
    }

    #[test]
    fn a_folder_comes_back_from_the_store() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let ((source, names), store) = (folder(), store());
        let manifest = FolderManifest::of(source.path(), &names).unwrap();
        assert_eq!(
            manifest.names().collect::<Vec<_>>(),
            ["a.json", "b.pk", "empty"]
        );
        assert_eq!(manifest.bytes(), PIECE_BYTES as u64 + 5);
        let mut last = 0;
        let published = manifest.publish(&store, source.path(), |done| last = done);
        let digest = runtime.block_on(published).unwrap();
        assert_eq!((digest, last), (manifest.digest(), manifest.bytes()));
        let fetched = runtime.block_on(FolderManifest::fetch(&store, &digest));
        let (fetched, target) = (fetched.unwrap(), tempfile::tempdir().unwrap());
        for name in fetched.names() {
            let handle = runtime.handle();
            fetched
                .fetch_file(&store, name, target.path(), handle)
                .unwrap();
            let [sent, got] = [&source, &target].map(|at| std::fs::read(at.path().join(name)));
            assert_eq!(sent.unwrap(), got.unwrap(), "{name}");
        }
        runtime.block_on(manifest.remove(&store)).unwrap();
        assert!(
            runtime
                .block_on(FolderManifest::fetch(&store, &digest))
                .is_err()
        );
    }

    #[test]
    fn a_missing_piece_leaves_no_file() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let ((source, names), store) = (folder(), store());
        let manifest = FolderManifest::of(source.path(), &names).unwrap();
        let published = manifest.publish(&store, source.path(), |_| {});
        runtime.block_on(published).unwrap();
        let last = Digest(*manifest.files[1].pieces.last().unwrap());
        runtime.block_on(store.delete(&last)).unwrap();
        let target = tempfile::tempdir().unwrap();
        let fetched = manifest.fetch_file(&store, "b.pk", target.path(), runtime.handle());
        assert!(matches!(fetched, Err(FolderError::Write(_))), "{fetched:?}");
        assert!(std::fs::read_dir(target.path()).unwrap().next().is_none());
    }

    #[test]
    fn hostile_manifests_are_refused() {
        let file = |name: &str, bytes: u64, pieces: usize| PublishedFile {
            name: name.to_owned(),
            bytes,
            pieces: vec![[7; 32]; pieces],
        };
        let encoded = |files: Vec<PublishedFile>| FolderManifest { files }.to_bytes();
        let good = encoded(vec![file("a", 1, 1)]);
        assert!(FolderManifest::from_bytes(&good).is_ok());
        for (bad, why) in [
            (encoded(vec![file("../a", 1, 1)]), "a path"),
            (encoded(vec![file(".a", 1, 1)]), "a hidden name"),
            (encoded(vec![file("", 1, 1)]), "no name"),
            (encoded(vec![file("a", 1, 2)]), "too many pieces"),
            (encoded(vec![file("a", u64::MAX, 1)]), "too large"),
            (encoded(vec![file("b", 1, 1), file("a", 1, 1)]), "no order"),
            (encoded(vec![file("a", 1, 1), file("a", 1, 1)]), "twice"),
            (good.slice(1..), "no magic"),
            ([&good[..], &[0]].concat().into(), "bytes after it"),
        ] {
            assert!(FolderManifest::from_bytes(&bad).is_err(), "{why}");
        }
        for length in 0..good.len() {
            assert!(FolderManifest::from_bytes(&good[..length]).is_err());
        }
    }
}
