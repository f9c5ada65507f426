//! Errors of JSON files.

use std::path::PathBuf;

/// The reason why a JSON file is not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// The file system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The file system's error.
        source: std::io::Error,
    },
    /// The file is larger than any valid one.
    #[error("{found} bytes of JSON: at most {limit} are read")]
    TooLarge {
        /// The file's size in bytes.
        found: u64,
        /// The most that is read.
        limit: u64,
    },
    /// The file is not JSON, or its fields are not the expected ones: the message names the field, the
    /// line and the column.
    #[error(transparent)]
    Content(#[from] serde_json::Error),
}
