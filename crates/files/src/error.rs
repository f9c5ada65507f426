//! Errors of files, whatever they hold.

use std::path::{Path, PathBuf};

/// A file that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The file system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The file system's error.
        source: std::io::Error,
    },
    /// Another process changed the file while it was being read.
    #[error("{}: changed while it was being read; try again", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
}

// === impl FileError ===

impl FileError {
    /// `source` as an error about the file at `path`.
    pub fn io(path: &Path, source: std::io::Error) -> Self {
        Self::Io {
            path: path.to_owned(),
            source,
        }
    }
}
