//! What is wrong with a JSON file.

use std::path::PathBuf;

/// A JSON file that is not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// The file system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is larger than any such file.
    #[error("{found} bytes of JSON: at most {limit} are read")]
    TooLarge {
        /// Its size.
        found: u64,
        /// The most that is read.
        limit: u64,
    },
    /// It is no JSON, or does not hold what it should: the message names the field, the line and
    /// the column.
    #[error(transparent)]
    Content(#[from] serde_json::Error),
}
