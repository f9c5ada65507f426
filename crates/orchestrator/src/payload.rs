//! What a task carries.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// Payloads up to this many bytes travel in the record; larger ones are blobs.
pub const INLINE_LIMIT: usize = 64 * 1024;

/// How payload bytes are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Encoding {
    /// UTF-8 JSON: what process executors read and write.
    Json,
    /// Whatever the native provers on both sides agreed on.
    Binary,
}

/// A task's payload, or where to find it. The core moves payloads about and never looks inside.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Payload {
    /// The bytes themselves.
    Inline {
        /// How to read `bytes`.
        encoding: Encoding,
        /// At most [`INLINE_LIMIT`] bytes.
        bytes: Bytes,
    },
    /// A blob of the content-addressed store.
    Blob {
        /// How to read the blob's bytes.
        encoding: Encoding,
        /// SHA-256 of the bytes.
        digest: [u8; 32],
        /// Length in bytes.
        len: u64,
    },
    /// The payloads of a collector's group, in order of (first block, queue, part); or several
    /// results of one task, in order of what their workers count as.
    Group {
        /// Whether the collector reads several queues: then a process sees an object that maps
        /// each queue to an array, else one array.
        by_queue: bool,
        /// Each member with the queue it came by, or with what its worker counts as.
        members: Vec<(Arc<str>, Payload)>,
    },
}

// === impl Payload ===

impl Payload {
    /// An inline JSON payload. The caller has checked that `bytes` are JSON.
    pub fn json(bytes: impl Into<Bytes>) -> Self {
        Self::Inline {
            encoding: Encoding::Json,
            bytes: bytes.into(),
        }
    }

    /// An inline binary payload.
    pub fn binary(bytes: impl Into<Bytes>) -> Self {
        Self::Inline {
            encoding: Encoding::Binary,
            bytes: bytes.into(),
        }
    }

    /// Bytes of payload, blobs included.
    pub fn len(&self) -> u64 {
        match self {
            Self::Inline { bytes, .. } => bytes.len() as u64,
            Self::Blob { len, .. } => *len,
            Self::Group { members, .. } => members.iter().map(|(_, member)| member.len()).sum(),
        }
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `visit` with the digest of each blob this payload refers to.
    pub fn each_blob(&self, visit: &mut impl FnMut(&[u8; 32])) {
        match self {
            Self::Inline { .. } => {}
            Self::Blob { digest, .. } => visit(digest),
            Self::Group { members, .. } => {
                members
                    .iter()
                    .for_each(|(_, member)| member.each_blob(visit));
            }
        }
    }
}
