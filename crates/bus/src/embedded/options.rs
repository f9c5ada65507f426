//! Options for opening an embedded log, and the errors of doing so.

use std::io;
use std::path::PathBuf;

use super::loss::Loss;
use proofmill_files::LockError;

/// Options of an [`EmbeddedLog`](super::EmbeddedLog).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Limit on bytes of keys and values that are accepted and not yet durable; an append that
    /// would exceed it waits. 64 MiB by default. A batch larger than this waits until nothing else
    /// is pending.
    pub max_pending_bytes: usize,
    /// Whether a log that contains less than was durable is opened nevertheless, with the part that
    /// can be read; `false` by default. See
    /// [`EmbeddedLog::accepted_loss`](super::EmbeddedLog::accepted_loss).
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

/// The reason why a log could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The directory cannot be created or used.
    #[error("cannot use {path} for the log")]
    Directory {
        /// The directory or the file in it.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// Another handle has the log open.
    #[error(transparent)]
    Locked(#[from] LockError),
    /// The file belongs to another program.
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
    /// The system denies this process access to the log.
    #[error("cannot open the log {path}: {reason}")]
    Unusable {
        /// The file.
        path: PathBuf,
        /// The reason, as a sentence fragment.
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
        /// The content that is missing or altered.
        loss: Box<Loss>,
    },
    /// The writer thread could not be started.
    #[error("cannot start the log's writer thread")]
    Thread(#[source] io::Error),
}
