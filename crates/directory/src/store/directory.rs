//! The state of a directory, read from its files.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use proofmill_files::FileError;

use super::epoch::{EPOCH_BYTES_MAX, Epoch};
use super::error::StoreError;
use super::file::{epoch_of, name_of, read_limited};
use super::snapshot::{self, SNAPSHOT_BYTES_MAX, Snapshot};
use crate::chain::{Checkpoint, EpochRecord, RecordError};
use crate::inclusion::InclusionProof;
use crate::updates::KeyUpdate;
use crate::{Digest, Entry, KeyDigest, Record, Tree, TreeError};

/// A directory's state after its last epoch.
#[derive(Clone, Debug)]
pub struct KeyDirectory {
    path: PathBuf,
    epoch: u64,
    tree: Tree,
    /// Keys and values, in the order of the tree's entries.
    contents: Vec<KeyUpdate>,
    /// The updates that are in no snapshot.
    pub(super) updates_since_snapshot: usize,
}

/// A present key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found<'d> {
    /// The number of updates since the key was inserted.
    pub version: u64,
    /// The value.
    pub value: &'d [u8],
}

// === impl KeyDirectory ===

impl KeyDirectory {
    /// Reads a directory. It needs no lock: another process may be writing.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if there is no directory, or a file of it is missing or damaged.
    pub fn load(path: &Path) -> Result<Self, StoreError> {
        let file = snapshot_path(path);
        let mut directory = Self::of_snapshot(path, read_snapshot(path)?)?;
        let last = last_epoch(path)?;
        if directory.epoch > 0 {
            if last < Some(directory.epoch) {
                return Err(StoreError::Missing(epoch_path(path, directory.epoch)));
            }
            let of_snapshot = read_epoch(path, directory.epoch)?;
            check_root(&file, of_snapshot.root_after, directory.root())?;
        }
        directory.replay_until(last.unwrap_or(0))?;
        Ok(directory)
    }

    /// Takes over the epochs that were added since the directory was read. Returns their number.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if a file is missing or damaged; the state is unchanged then.
    pub fn refresh(&mut self) -> Result<u64, StoreError> {
        let before = self.epoch;
        if let Some(next) = self.refreshed()? {
            *self = next;
        }
        Ok(self.epoch - before)
    }

    /// The state after the epochs that were added since the directory was read; `None` if there are none.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if a file is missing or damaged.
    pub fn refreshed(&self) -> Result<Option<Self>, StoreError> {
        let last = last_epoch(&self.path)?.unwrap_or(0);
        if last <= self.epoch {
            return Ok(None);
        }
        let mut next = self.clone();
        next.replay_until(last)?;
        Ok(Some(next))
    }

    /// Whether the epoch after this state is on the disk. It costs one look at the file system, however many epochs
    /// there are.
    ///
    /// # Errors
    ///
    /// [`StoreError::File`] if the file system refuses.
    pub fn is_followed(&self) -> Result<bool, StoreError> {
        let following = epoch_path(&self.path, self.epoch.saturating_add(1));
        let found = following.try_exists();
        Ok(found.map_err(|source| FileError::io(&following, source))?)
    }

    fn of_snapshot(path: &Path, snapshot: Snapshot) -> Result<Self, StoreError> {
        let file = snapshot_path(path);
        let (expected, epoch) = (snapshot.root, snapshot.epoch);
        let depth = snapshot.depth;
        let (mut entries, mut contents) = (Vec::new(), Vec::new());
        entries.reserve_exact(snapshot.keys.len());
        contents.reserve_exact(snapshot.keys.len());
        for (version, content) in snapshot.keys {
            let (key, value) = content.digests();
            let record = Record { version, value };
            entries.push(Entry { key, record });
            contents.push(content);
        }
        let tree = Tree::from_entries(depth, entries);
        let tree = tree.map_err(|source| StoreError::Tree {
            path: file.clone(),
            source,
        })?;
        check_root(&file, expected, tree.root())?;
        Ok(Self {
            path: path.to_owned(),
            epoch,
            tree,
            contents,
            updates_since_snapshot: 0,
        })
    }

    /// Applies the epochs up to `last`, from their files. After an error the state means nothing.
    fn replay_until(&mut self, last: u64) -> Result<(), StoreError> {
        for number in self.epoch + 1..=last {
            let epoch = read_epoch(&self.path, number)?;
            let path = epoch_path(&self.path, number);
            check_root(&path, epoch.root_before, self.root())?;
            let applied = apply(&mut self.tree, &epoch.updates);
            applied.map_err(|(_, source)| StoreError::Tree {
                path: path.clone(),
                source,
            })?;
            check_root(&path, epoch.root_after, self.root())?;
            self.take(number, epoch.updates);
        }
        Ok(())
    }

    /// Takes over an epoch with a tree to which its updates were applied.
    pub(super) fn replace(&mut self, epoch: u64, tree: Tree, updates: Vec<KeyUpdate>) {
        self.tree = tree;
        self.take(epoch, updates);
    }

    /// Takes over the keys and values of an epoch whose updates were applied to the tree.
    fn take(&mut self, epoch: u64, updates: Vec<KeyUpdate>) {
        self.updates_since_snapshot += updates.len();
        for update in updates {
            let (key, _) = update.digests();
            // New keys have their places in the order of their insertion.
            let index = self.tree.index_of(&key).unwrap_or(self.contents.len());
            match self.contents.get_mut(index) {
                Some(content) => *content = update,
                None => self.contents.push(update),
            }
        }
        self.epoch = epoch;
    }

    /// The directory's folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The last epoch's number; 0 before the first.
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The root after the last epoch.
    pub fn root(&self) -> Digest {
        self.tree.root()
    }

    /// The last epoch and its root.
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            number: self.epoch,
            root: self.root(),
        }
    }

    /// The tree after the last epoch.
    pub const fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The state of a key, if it is present.
    pub fn find(&self, key: &[u8]) -> Option<Found<'_>> {
        let key = KeyDigest::of(key);
        let record = self.tree.get(&key)?;
        let content = self.contents.get(self.tree.index_of(&key)?)?;
        Some(Found {
            version: record.version,
            value: content.value(),
        })
    }

    /// The proof of a key's state, present or absent, under the root after the last epoch.
    pub fn prove(&self, key: &[u8]) -> InclusionProof {
        InclusionProof::new(&self.tree, &KeyDigest::of(key))
    }

    /// The bytes of a snapshot of the state.
    pub(super) fn snapshot_bytes(&self) -> Vec<u8> {
        let entries = self.tree.entries().iter();
        let versions = entries.map(|entry| entry.record.version);
        let keys = versions.zip(&self.contents);
        snapshot::encode(self.tree.depth(), self.epoch, self.root(), keys)
    }

    /// The updates of an epoch, read from its file.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoEpoch`]; others if its file is missing or damaged.
    pub fn epoch_updates(&self, number: u64) -> Result<Epoch, StoreError> {
        self.check_number(number)?;
        read_epoch(&self.path, number)
    }

    /// The tree before an epoch, from the files of all epochs before: without hashing each of them.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoEpoch`]; others if a file is missing or damaged.
    pub fn tree_before(&self, number: u64) -> Result<Tree, StoreError> {
        self.check_number(number)?;
        let mut places: HashMap<KeyDigest, usize> = HashMap::new();
        let mut entries: Vec<Entry> = Vec::new();
        for earlier in 1..number {
            for update in read_epoch(&self.path, earlier)?.updates {
                let (key, value) = update.digests();
                let place = *places.entry(key).or_insert(entries.len());
                match entries.get_mut(place) {
                    Some(entry) => {
                        entry.record.version = entry.record.version.saturating_add(1);
                        entry.record.value = value;
                    }
                    None => {
                        let record = Record { version: 0, value };
                        entries.push(Entry { key, record });
                    }
                }
            }
        }
        let path = epoch_path(&self.path, number);
        let expected = read_epoch(&self.path, number)?.root_before;
        let tree = Tree::from_entries(self.tree.depth(), entries);
        let tree = tree.map_err(|source| StoreError::Tree {
            path: path.clone(),
            source,
        })?;
        check_root(&path, expected, tree.root())?;
        Ok(tree)
    }

    /// The file of an epoch's published record.
    pub fn record_path(&self, number: u64) -> PathBuf {
        self.path.join("records").join(name_of(number))
    }

    /// The folder of unfinished work on the proofs of epochs: what a prover keeps to continue after it was stopped.
    pub fn proving_path(&self) -> PathBuf {
        self.path.join("proving")
    }

    /// The folder of unfinished work on the proofs of one epoch.
    pub fn epoch_proving_path(&self, number: u64) -> PathBuf {
        self.proving_path().join(name_of(number))
    }

    /// The published record of an epoch; `None` if it is not proved yet.
    ///
    /// # Errors
    ///
    /// [`RecordError`] if its file is damaged.
    pub fn record(&self, number: u64) -> Result<Option<EpochRecord>, RecordError> {
        match EpochRecord::load(&self.record_path(number)) {
            Err(RecordError::File(error)) if is_not_found(&error) => Ok(None),
            record => record.map(Some),
        }
    }

    /// Writes the published record of an epoch, in place of an older one. Its proofs are not verified.
    ///
    /// # Errors
    ///
    /// [`StoreError::Record`] unless its roots are those of the epoch; others if the file system refuses.
    pub fn publish(&self, record: &EpochRecord) -> Result<(), StoreError> {
        let epoch = self.epoch_updates(record.number)?;
        let roots = (record.root_before, record.root_after());
        if roots != (epoch.root_before, epoch.root_after) {
            return Err(StoreError::Record(record.number));
        }
        match record.save(&self.record_path(record.number)) {
            Err(RecordError::File(error)) => Err(error.into()),
            _ => Ok(()),
        }
    }

    fn check_number(&self, number: u64) -> Result<(), StoreError> {
        let last = self.epoch;
        match (1..=last).contains(&number) {
            true => Ok(()),
            false => Err(StoreError::NoEpoch { number, last }),
        }
    }
}

/// Applies updates to a tree; the error has the number of the refused update, from 0, before which all were applied.
pub(super) fn apply(tree: &mut Tree, updates: &[KeyUpdate]) -> Result<(), (usize, TreeError)> {
    for (number, update) in updates.iter().enumerate() {
        let (key, value) = update.digests();
        tree.set(key, value).map_err(|source| (number, source))?;
    }
    Ok(())
}

fn check_root(path: &Path, expected: Digest, found: Digest) -> Result<(), StoreError> {
    match expected == found {
        true => Ok(()),
        false => Err(StoreError::Root {
            path: path.to_owned(),
            expected,
            found,
        }),
    }
}

pub(super) fn snapshot_path(path: &Path) -> PathBuf {
    path.join("snapshot")
}

pub(super) fn epochs_path(path: &Path) -> PathBuf {
    path.join("epochs")
}

pub(super) fn epoch_path(path: &Path, number: u64) -> PathBuf {
    epochs_path(path).join(name_of(number))
}

fn is_not_found(error: &FileError) -> bool {
    matches!(error, FileError::Io { source, .. } if source.kind() == ErrorKind::NotFound)
}

fn read_snapshot(path: &Path) -> Result<Snapshot, StoreError> {
    let path = snapshot_path(path);
    let bytes = read_limited(&path, SNAPSHOT_BYTES_MAX)?;
    Snapshot::from_bytes(&bytes).map_err(|source| StoreError::Format { path, source })
}

fn read_epoch(path: &Path, number: u64) -> Result<Epoch, StoreError> {
    let path = epoch_path(path, number);
    let bytes = match read_limited(&path, EPOCH_BYTES_MAX) {
        Err(error) if is_not_found(&error) => return Err(StoreError::Missing(path)),
        bytes => bytes?,
    };
    let epoch = Epoch::from_bytes(&bytes);
    let epoch = epoch.map_err(|source| StoreError::Format {
        path: path.clone(),
        source,
    })?;
    match epoch.number {
        found if found != number => Err(StoreError::Number { path, found }),
        _ => Ok(epoch),
    }
}

/// The highest number of an epoch's file.
fn last_epoch(path: &Path) -> Result<Option<u64>, StoreError> {
    let path = epochs_path(path);
    let failed = |source: io::Error| FileError::io(&path, source);
    let mut last = None;
    for entry in std::fs::read_dir(&path).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        last = last.max(name.to_str().and_then(epoch_of));
    }
    Ok(last)
}
