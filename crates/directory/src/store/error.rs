//! Errors of a directory on disk.

use std::path::PathBuf;

use proofmill_files::FileError;

use crate::frame::FormatError;
use crate::{Digest, TreeError};

/// The reason why a directory could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file system refused.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file that is not of the expected format.
    #[error("{}: {source}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: FormatError,
    },
    /// Another process writes to the directory.
    #[error("the directory {} is open in {}: stop it, or use another directory", path.display(),
        pid.map_or("another process".to_owned(), |pid| format!("process {pid}")))]
    Held {
        /// The directory.
        path: PathBuf,
        /// The process, if it is known.
        pid: Option<u32>,
    },
    /// A new directory in a folder with files.
    #[error("{}: there are files in it; a new directory needs an empty folder or none", .0.display())]
    NotEmpty(PathBuf),
    /// There is no file of an epoch before the last one.
    #[error("{}: missing, though there are later epochs", .0.display())]
    Missing(PathBuf),
    /// An epoch that the directory does not have.
    #[error("there is no epoch {number}: the last one is {last}")]
    NoEpoch {
        /// The number asked for.
        number: u64,
        /// The last epoch.
        last: u64,
    },
    /// A file with another epoch than its name says.
    #[error("{}: it is of epoch {found}", path.display())]
    Number {
        /// The file.
        path: PathBuf,
        /// The epoch in the file.
        found: u64,
    },
    /// A file whose root is not that of its content.
    #[error("{}: the root {expected} is not that of its keys, {found}", path.display())]
    Root {
        /// The file.
        path: PathBuf,
        /// The root in the file.
        expected: Digest,
        /// The root that was computed.
        found: Digest,
    },
    /// A file with keys that are in no tree.
    #[error("{}: {source}", path.display())]
    Tree {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: TreeError,
    },
    /// An update that the tree refuses.
    #[error("update {update}: {source}; nothing was changed")]
    Update {
        /// The update, from 1.
        update: usize,
        /// The reason.
        source: TreeError,
    },
    /// A tree of a depth that there is not.
    #[error(transparent)]
    Depth(TreeError),
    /// No updates, or more than an epoch may have.
    #[error("{found} updates: an epoch has 1 to {most}; nothing was changed")]
    Updates {
        /// The number of updates.
        found: usize,
        /// The most.
        most: usize,
    },
    /// More bytes than an epoch may have.
    #[error("keys and values of {found} bytes: an epoch has {most} at most; nothing was changed")]
    Bytes {
        /// The bytes.
        found: usize,
        /// The most.
        most: usize,
    },
    /// A record that is not of the directory's epoch.
    #[error("the record of epoch {0} has other roots than the epoch")]
    Record(u64),
    /// A write failed before, so that it is unknown whether the epoch is on the disk.
    #[error("a write failed before: open the directory again")]
    Reopen,
}
