//! Requests, whatever they were encoded in.

use std::time::Duration;

use bytes::Bytes;
use proofmill_verifier::KeyDigest;

/// A request of a conversation, with its number.
#[derive(Clone, Debug)]
pub(super) struct Question {
    /// Names the request in its answer.
    pub(super) request_id: u64,
    /// What is asked; or why it is not understood, which the answer says.
    pub(super) order: Result<Order, String>,
}

/// What is asked.
#[derive(Clone, Debug)]
pub(super) enum Order {
    /// Verify a proof.
    Verify(ProofOrder),
    /// Take back the conversation's request of that number.
    Cancel(u64),
    /// Take back all requests of a source.
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

/// A proof to be verified.
#[derive(Clone, Debug)]
pub(super) struct ProofOrder {
    /// The kind's name.
    pub(super) kind: String,
    /// Its verifying key.
    pub(super) key: Option<KeyDigest>,
    /// The statement, as the kind encodes it.
    pub(super) statement: Bytes,
    /// The proof.
    pub(super) proof: Bytes,
    /// The proof's source; empty for the default of the conversation.
    pub(super) source: String,
    /// Greater ones go first.
    pub(super) priority: u8,
    /// After this time a verdict is of no more use.
    pub(super) deadline: Option<Duration>,
}
