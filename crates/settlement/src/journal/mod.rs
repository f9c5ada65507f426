//! The journal: each transaction that was or may have been sent, until no reorganisation is expected to undo it.
//!
//! A folder with a file for each nonce. A transaction's file is on the disk before the transaction is sent, so that after a crash
//! the same nonce is never given to another call, unless the chain shows that the nonce was used.

mod codec;
mod entry;

pub use codec::JournalFileError;
pub use entry::{Attempt, EmissionRange, Entry};

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use proofmill_files::{
    DirectoryLock, LockError, make_private_directory, open_regular, write_small_durably,
};

/// End of the names of transactions' files.
const SUFFIX: &str = ".tx";

/// Begin of the names of temporary files.
const TEMPORARY: &str = ".new-";

/// Maximum size of a file: calldata of a transaction is at most 128 KiB, and it is held twice.
const FILE_MAX: u64 = 1 << 20;

/// Maximum number of files. Far more than transactions in the blocks that may be reorganised.
const FILES_MAX: usize = 4096;

/// Transactions by nonce, in memory and in a folder.
#[derive(Debug)]
pub struct Journal {
    folder: PathBuf,
    entries: BTreeMap<u64, Entry>,
    /// No other process settles from this journal.
    _lock: DirectoryLock,
}

/// The reason why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The folder or a file in it cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another process has the journal open.
    #[error(transparent)]
    Locked(#[from] LockError),
    /// A file is not one of this version, or damaged.
    #[error(
        "{}: {why}; transactions that were sent may be unknown: look at the account's last transactions, and move the file \
         away if its nonce is used or free",
        path.display()
    )]
    File {
        /// The file.
        path: PathBuf,
        /// Fault of the file.
        why: JournalFileError,
    },
    /// There are more files than any run leaves.
    #[error("{}: more than {FILES_MAX} transactions", .0.display())]
    TooMany(PathBuf),
}

// === impl Journal ===

impl Journal {
    /// The journal in `folder`, which is made if it is missing.
    ///
    /// # Errors
    /// [`JournalError`]; a damaged file is not passed over, since its nonce may be in use.
    pub fn open(folder: &Path) -> Result<Self, JournalError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| JournalError::Io { path, source }
        };
        make_private_directory(folder).map_err(failed(folder))?;
        let lock = DirectoryLock::acquire(folder).map_err(failed(folder))??;
        let mut entries = BTreeMap::new();
        for file in std::fs::read_dir(folder).map_err(failed(folder))? {
            let path = file.map_err(failed(folder))?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            let name = name.unwrap_or_default();
            if name.starts_with(TEMPORARY) {
                std::fs::remove_file(&path).map_err(failed(&path))?;
            }
            let Some(number) = name.strip_suffix(SUFFIX) else {
                continue;
            };
            if entries.len() == FILES_MAX {
                return Err(JournalError::TooMany(folder.to_owned()));
            }
            let bytes = read(&path).map_err(failed(&path))?;
            let entry = codec::decode(&bytes).and_then(|entry| match number.parse::<u64>() {
                Ok(nonce) if nonce == entry.nonce => Ok(entry),
                _ => Err(JournalFileError::Nonce(entry.nonce)),
            });
            let entry = entry.map_err(|why| JournalError::File {
                path: path.clone(),
                why,
            })?;
            entries.insert(entry.nonce, entry);
        }
        Ok(Self {
            folder: folder.to_owned(),
            entries,
            _lock: lock,
        })
    }

    /// The transactions, by nonce.
    pub fn entries(&self) -> &BTreeMap<u64, Entry> {
        &self.entries
    }

    /// The transaction with this nonce.
    pub fn get(&self, nonce: u64) -> Option<&Entry> {
        self.entries.get(&nonce)
    }

    /// The nonce after the last transaction's; `None` if there is no transaction.
    pub fn next_nonce(&self) -> Option<u64> {
        let last = self.entries.last_key_value();
        last.map(|(nonce, _)| nonce.saturating_add(1))
    }

    /// Writes a transaction, in place of an earlier one with its nonce. It is durable when this returns.
    ///
    /// # Errors
    /// [`JournalError::Io`]: nothing has changed, and the transaction must not be sent.
    pub fn put(&mut self, entry: Entry) -> Result<(), JournalError> {
        let path = self.path(entry.nonce);
        let encoded = codec::encode(&entry).map_err(io::Error::other);
        let fits = encoded.and_then(|bytes| match bytes.len() as u64 <= FILE_MAX {
            true => Ok(bytes),
            false => Err(io::Error::other("the transaction is too large")),
        });
        let written = fits.and_then(|bytes| write_small_durably(&path, &bytes, TEMPORARY));
        written.map_err(|source| JournalError::Io { path, source })?;
        self.entries.insert(entry.nonce, entry);
        Ok(())
    }

    /// Removes a transaction. After a loss of power it may be back, which costs a question to the chain and nothing else.
    ///
    /// # Errors
    /// [`JournalError::Io`].
    pub fn remove(&mut self, nonce: u64) -> Result<(), JournalError> {
        let path = self.path(nonce);
        match std::fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(JournalError::Io { path, source });
            }
            _ => {}
        }
        self.entries.remove(&nonce);
        Ok(())
    }

    fn path(&self, nonce: u64) -> PathBuf {
        self.folder.join(format!("{nonce:020}{SUFFIX}"))
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    let mut bytes = Vec::new();
    file.take(FILE_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_MAX {
        let why = format!("over {FILE_MAX} bytes: not a transaction of a journal");
        return Err(io::Error::other(why));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_is_there_after_a_restart_until_it_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("journal");
        let mut journal = Journal::open(&path).expect("new");
        assert_eq!(journal.next_nonce(), None);
        for nonce in [7, 8, 9] {
            journal.put(entry::tests::entry(nonce)).expect("written");
        }
        let mut replaced = entry::tests::entry(8);
        replaced.attempts.push(entry::tests::attempt(2));
        journal.put(replaced.clone()).expect("written");
        assert!(matches!(Journal::open(&path), Err(JournalError::Locked(_))));
        journal.remove(7).expect("removed");
        journal.remove(7).expect("not there already");
        drop(journal);
        std::fs::write(path.join(".new-left"), "half").expect("written");
        let journal = Journal::open(&path).expect("again");
        assert_eq!(journal.next_nonce(), Some(10));
        assert_eq!(journal.entries().keys().collect::<Vec<_>>(), [&8, &9]);
        assert_eq!(journal.get(8), Some(&replaced));
        assert!(!path.join(".new-left").exists());
    }

    #[test]
    fn a_damaged_file_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut journal = Journal::open(folder.path()).expect("new");
        journal.put(entry::tests::entry(3)).expect("written");
        let file = journal.path(3);
        drop(journal);
        let whole = std::fs::read(&file).expect("read");
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            std::fs::write(&file, &damaged).expect("written");
            let error = Journal::open(folder.path())
                .expect_err("damaged")
                .to_string();
            assert!(error.contains("3.tx"), "{error}");
        }
        std::fs::write(&file, &whole[..whole.len() - 1]).expect("written");
        Journal::open(folder.path()).expect_err("cut short");
        std::fs::rename(&file, folder.path().join("4.tx")).expect("renamed");
        std::fs::write(folder.path().join("4.tx"), &whole).expect("written");
        let error = Journal::open(folder.path())
            .expect_err("another nonce")
            .to_string();
        assert!(error.contains("nonce 3"), "{error}");
    }
}
