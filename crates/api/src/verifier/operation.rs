//! Requests, independent of their encoding.

use std::time::Duration;

use bytes::Bytes;
use proofmill_verifier::KeyDigest;

/// A request of a conversation, with its number.
#[derive(Clone, Debug)]
pub(super) struct NumberedRequest {
    /// The number of the request, which its answer repeats.
    pub(super) request_id: u64,
    /// The request; or the reason that it is malformed, which the answer reports.
    pub(super) operation: Result<Operation, String>,
}

/// A request.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    /// Verify a proof.
    Verify(ProofToVerify),
    /// Cancel the conversation's request of that number.
    Cancel(u64),
    /// Cancel all requests of a source.
    CancelSource(String),
    /// Add a verifying key.
    AddKey {
        /// The kind's name.
        kind: String,
        /// The key.
        key: Bytes,
    },
    /// Remove a verifying key.
    RemoveKey(KeyDigest),
    /// List the client's keys.
    ListKeys,
    /// List the kinds of proofs that are taken.
    ListKinds,
}

/// A proof to verify.
#[derive(Clone, Debug)]
pub(super) struct ProofToVerify {
    /// The kind's name.
    pub(super) kind: String,
    /// The verifying key; none if the kind has no keys.
    pub(super) key: Option<KeyDigest>,
    /// The statement, in the kind's encoding.
    pub(super) statement: Bytes,
    /// The proof.
    pub(super) proof: Bytes,
    /// The proof's source; empty for the default of the conversation.
    pub(super) source: String,
    /// Priority among waiting requests; higher ones go first.
    pub(super) priority: u8,
    /// Time after which a verdict is no longer useful.
    pub(super) deadline: Option<Duration>,
}
