//! Requests to a verifier.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::keys::KeyDigest;

/// A proof to be verified.
#[derive(Clone, Debug)]
pub struct Request {
    /// Name of the client, whose keys are used.
    pub client: Arc<str>,
    /// The peer that the client has the proof from; empty for the client itself. Sources
    /// are served in turn, and one that sends false proofs is put apart.
    pub source: Arc<str>,
    /// The request's name among the source's requests, of at most 128 bytes. A repeated id with the same bytes is
    /// verified once; with other bytes it is refused.
    pub id: Arc<str>,
    /// The kind's name.
    pub kind: String,
    /// The verifying key, of the kinds that have any.
    pub key: Option<KeyDigest>,
    /// The statement, as the kind encodes it.
    pub statement: Bytes,
    /// The proof, as the kind encodes it.
    pub proof: Bytes,
    /// Waiting requests of greater priority go first; the default is 0.
    pub priority: u8,
    /// The time from now after which a verdict is useless; the request is then answered as unavailable.
    pub deadline: Option<Duration>,
}

/// The reason why a request is refused before any work on it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The id is that of another request.
    #[error("the id {0:?} is that of another request with other bytes: choose a new one")]
    Conflict(Arc<str>),
    /// The id is empty or too long.
    #[error("an id of {0} bytes: it has from 1 to {MAX_ID_BYTES}")]
    Id(usize),
    /// The source is too long.
    #[error("a source of {0} bytes: it has at most {MAX_ID_BYTES}")]
    Source(usize),
    /// The proof and its statement are too large.
    #[error("{found} bytes of proof and statement: at most {limit}")]
    TooLarge {
        /// Bytes of the request.
        found: usize,
        /// Bytes that are taken.
        limit: usize,
    },
}

/// Bytes of a request's id, and of its source, at most.
pub const MAX_ID_BYTES: usize = 128;

// === impl Request ===

impl Request {
    /// A request of usual priority, from the client itself, without a deadline, key or statement.
    pub fn new(client: &str, id: &str, kind: &str, proof: impl Into<Bytes>) -> Self {
        Self {
            client: client.into(),
            source: "".into(),
            id: id.into(),
            kind: kind.to_owned(),
            key: None,
            statement: Bytes::new(),
            proof: proof.into(),
            priority: 0,
            deadline: None,
        }
    }

    /// The request with a key and a statement.
    #[must_use]
    pub fn under(mut self, key: KeyDigest, statement: impl Into<Bytes>) -> Self {
        self.key = Some(key);
        self.statement = statement.into();
        self
    }

    /// The digest of all that its verdict depends on.
    pub(crate) fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        let key = self.key.as_ref().map_or(&[][..], |key| key.as_bytes());
        for part in [self.kind.as_bytes(), key, &self.statement, &self.proof] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        hash.finalize().into()
    }

    /// The name of its source among those of all clients.
    pub(crate) fn full_source(&self) -> Arc<str> {
        full_source(&self.client, &self.source)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.statement.len() + self.proof.len()
    }
}

/// The name of a client's source among those of all clients.
pub(crate) fn full_source(client: &str, source: &str) -> Arc<str> {
    match source {
        "" => client.into(),
        source => format!("{client}/{source}").into(),
    }
}
