//! The one process that adds epochs to a directory.

use std::io::Write;
use std::path::Path;

use proofmill_files::{DirectoryLock, FileError, Visibility, make_private_directory, write_whole};

use super::directory::{KeyDirectory, apply, epoch_path, epochs_path, snapshot_path};
use super::epoch::Epoch;
use super::error::StoreError;
use super::snapshot::Snapshot;
use crate::updates::{KeyUpdate, UPDATE_BYTES_MAX, UPDATES_MAX};
use crate::{DEPTH, Digest, Tree};

/// The fewest updates after which the snapshot is rewritten.
const SNAPSHOT_UPDATES_MIN: usize = 4096;

/// A directory that this process may change: it holds the lock.
#[derive(Debug)]
pub struct DirectoryWriter {
    directory: KeyDirectory,
    has_failed: bool,
    _lock: DirectoryLock,
}

/// An epoch that was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochSummary {
    /// The number, from 1.
    pub number: u64,
    /// The root before it.
    pub root_before: Digest,
    /// The root after it.
    pub root_after: Digest,
    /// The number of updates.
    pub updates: usize,
    /// The number of keys that were inserted.
    pub inserted: usize,
}

// === impl DirectoryWriter ===

impl DirectoryWriter {
    /// Makes an empty directory in a folder that is empty or not there.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotEmpty`], [`StoreError::Held`]; [`StoreError::File`] if the file system refuses, or others may
    /// change the folder.
    pub fn create(path: &Path) -> Result<Self, StoreError> {
        Self::create_with_depth(path, DEPTH)
    }

    /// Like [`create`](Self::create) with a tree of fewer levels, for tests and measurements.
    ///
    /// # Errors
    ///
    /// As [`create`](Self::create); [`StoreError::Depth`] unless there are 1 to [`DEPTH`] levels.
    pub fn create_with_depth(path: &Path, depth: u32) -> Result<Self, StoreError> {
        let tree = Tree::with_depth(depth).map_err(StoreError::Depth)?;
        let failed = |source| StoreError::from(FileError::io(path, source));
        make_private_directory(path).map_err(failed)?;
        // A process that was killed before the snapshot was there may have left these.
        let ours = ["lock", "epochs", "records"];
        for entry in std::fs::read_dir(path).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let is_left = name
                .to_str()
                .is_some_and(|name| ours.contains(&name) || name.starts_with(".proofmill-"));
            if !is_left {
                return Err(StoreError::NotEmpty(path.to_owned()));
            }
        }
        let lock = lock(path)?;
        for folder in [epochs_path(path), path.join("records")] {
            let made = make_private_directory(&folder);
            made.map_err(|source| FileError::io(&folder, source))?;
            if std::fs::read_dir(&folder).map_err(failed)?.next().is_some() {
                return Err(StoreError::NotEmpty(folder));
            }
        }
        let snapshot = Snapshot {
            depth,
            epoch: 0,
            root: tree.root(),
            keys: Vec::new(),
        };
        write(&snapshot_path(path), &snapshot.to_bytes())?;
        Self::load(path, lock)
    }

    /// Opens a directory to change it.
    ///
    /// # Errors
    ///
    /// [`StoreError::Held`] if another process does; others if there is no directory, or a file is missing or damaged.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        // Before the lock's file is made: a folder that is no directory is left as it is.
        let snapshot = snapshot_path(path);
        let found = snapshot.metadata();
        found.map_err(|source| FileError::io(&snapshot, source))?;
        let lock = lock(path)?;
        Self::load(path, lock)
    }

    fn load(path: &Path, lock: DirectoryLock) -> Result<Self, StoreError> {
        Ok(Self {
            directory: KeyDirectory::load(path)?,
            has_failed: false,
            _lock: lock,
        })
    }

    /// The state after the last epoch.
    pub const fn directory(&self) -> &KeyDirectory {
        &self.directory
    }

    /// Adds an epoch of these updates, in order: an absent key is inserted with version 0, the version of a present key
    /// is incremented. All updates are made or none: the epoch is on the disk when this returns.
    ///
    /// # Errors
    ///
    /// [`StoreError::Updates`], [`StoreError::Bytes`], [`StoreError::Update`]; [`StoreError::File`] if the file system
    /// refuses, after which only a newly opened directory accepts updates ([`StoreError::Reopen`]).
    pub fn append(&mut self, updates: Vec<KeyUpdate>) -> Result<EpochSummary, StoreError> {
        if self.has_failed {
            return Err(StoreError::Reopen);
        }
        check_size(&updates)?;
        let (number, keys) = (self.directory.epoch() + 1, self.directory.tree().len());
        let mut tree = self.directory.tree().clone();
        apply(&mut tree, &updates).map_err(|(update, source)| StoreError::Update {
            update: update + 1,
            source,
        })?;
        let summary = EpochSummary {
            number,
            root_before: self.directory.root(),
            root_after: tree.root(),
            updates: updates.len(),
            inserted: tree.len() - keys,
        };
        let epoch = Epoch {
            number,
            root_before: summary.root_before,
            root_after: summary.root_after,
            updates,
        };
        let path = epoch_path(self.directory.path(), number);
        let written = write(&path, &epoch.to_bytes());
        // The new file may have its name even if the folder could not be flushed.
        self.has_failed = written.is_err();
        written?;
        self.directory.replace(number, tree, epoch.updates);
        let keys = self.directory.tree().len();
        if self.directory.updates_since_snapshot >= SNAPSHOT_UPDATES_MIN.max(keys / 4)
            && let Err(error) = self.write_snapshot()
        {
            // The epoch is complete without it: later ones try again.
            tracing::warn!(%error, "cannot write a snapshot of the directory");
        }
        Ok(summary)
    }

    /// Writes a snapshot now, so that the next process that opens the directory need not replay epochs.
    ///
    /// # Errors
    ///
    /// [`StoreError::File`] if the file system refuses; nothing is lost then.
    pub fn write_snapshot(&mut self) -> Result<(), StoreError> {
        let path = snapshot_path(self.directory.path());
        write(&path, &self.directory.snapshot_bytes())?;
        self.directory.updates_since_snapshot = 0;
        Ok(())
    }
}

fn check_size(updates: &[KeyUpdate]) -> Result<(), StoreError> {
    let (found, most) = (updates.len(), UPDATES_MAX);
    if !(1..=most).contains(&found) {
        return Err(StoreError::Updates { found, most });
    }
    let bytes = updates.iter();
    let found = bytes.map(|update| update.key().len() + update.value().len());
    let (found, most) = (found.sum(), UPDATE_BYTES_MAX);
    match found <= most {
        true => Ok(()),
        false => Err(StoreError::Bytes { found, most }),
    }
}

fn lock(path: &Path) -> Result<DirectoryLock, StoreError> {
    let locked = DirectoryLock::acquire(path).map_err(|source| FileError::io(path, source))?;
    locked.map_err(|held| StoreError::Held {
        path: held.path,
        pid: held.pid,
    })
}

/// Writes a file whole. Keys and values may be private: the file is its owner's.
fn write(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    write_whole(path, Visibility::Private, |file| file.write_all(bytes))
}
