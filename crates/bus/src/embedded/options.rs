//! How to open an embedded log, and why that may fail.

use std::io;
use std::path::PathBuf;

use super::lock::LockError;
use super::loss::Loss;

/// How an [`EmbeddedLog`](super::EmbeddedLog) behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Bytes of keys and values that may be accepted and not yet durable; an append beyond them
    /// waits. A batch larger than this waits until nothing else is pending.
    pub max_pending_bytes: usize,
    /// Whether a log that holds less than was durable is opened all the same, with what can be read
    /// of it: see [`EmbeddedLog::accepted_loss`](super::EmbeddedLog::accepted_loss).
    pub accept_loss: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_pending_bytes: 64 * 1024 * 1024,
            accept_loss: false,
        }
    }
}

impl Options {
    /// Sets [`Options::max_pending_bytes`].
    #[must_use]
    pub fn with_max_pending_bytes(mut self, bytes: usize) -> Self {
        self.max_pending_bytes = bytes;
        self
    }

    /// Sets [`Options::accept_loss`].
    #[must_use]
    pub fn with_accepted_loss(mut self, accept: bool) -> Self {
        self.accept_loss = accept;
        self
    }
}

/// Why a log could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The directory cannot be made or used.
    #[error("cannot use {path} for the log")]
    Directory {
        /// The directory or the file in it.
        path: PathBuf,
        /// Error of the system.
        #[source]
        source: io::Error,
    },
    /// Another handle has the log open.
    #[error(transparent)]
    Locked(#[from] LockError),
    /// The file there is some other program's.
    #[error(
        "{path} is not a proofmill log (application id {found:#010x}): choose another directory"
    )]
    NotALog {
        /// The file.
        path: PathBuf,
        /// The application id in its header.
        found: i32,
    },
    /// The log was written by another version of this program.
    #[error(
        "{path} has log format {found}, this build reads format {known}: use the version that wrote it"
    )]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// The format version in its header.
        found: i32,
        /// The format version of this build.
        known: i32,
    },
    /// The system does not let this process use the log.
    #[error("cannot open the log {path}: {reason}")]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Reason for which the log cannot be used, in words.
        reason: String,
    },
    /// Durable content of the log is missing or altered.
    #[error(
        "the log {path} is damaged: {loss}; restore its directory from a copy, or go on without what \
         is lost: --accept-loss lists it"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Content that is missing.
        loss: Box<Loss>,
    },
    /// The writer thread could not be started.
    #[error("cannot start the log's writer thread")]
    Thread(#[source] io::Error),
}
