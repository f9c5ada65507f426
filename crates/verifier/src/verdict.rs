//! Verdicts on proofs.

use crate::keys::KeyDigest;
use crate::kind::Invalid;

/// A verdict on a proof, and how it was reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The verdict itself.
    pub status: Status,
    /// Times and batch; all zero where the proof was not looked at.
    pub stats: VerdictStats,
}

/// A verdict on a proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// The proof proves its statement.
    Valid,
    /// The proof does not prove its statement, for this reason.
    Invalid(Invalid),
    /// There is no verdict, for this reason. Another attempt may give one.
    Unavailable(Unavailable),
}

/// The reason why there is no verdict on a proof.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unavailable {
    /// The service has no such kind.
    #[error("{0}")]
    UnknownKind(String),
    /// The client has no such key here.
    #[error("you have no key {0} here for this kind of proof: add it first")]
    UnknownKey(KeyDigest),
    /// The kind needs a key, and the request names none.
    #[error("this kind of proof needs a key: add one, and name it by its digest")]
    NoKey,
    /// The deadline passed before there was a verdict.
    #[error("its deadline passed before there was a verdict")]
    Deadline,
    /// The request was cancelled.
    #[error("it was cancelled")]
    Cancelled,
    /// The service was stopped before there was a verdict.
    #[error("the verifier was stopped before there was a verdict")]
    Stopped,
    /// A fault of the service.
    #[error("the verifier failed: {0}")]
    Internal(String),
}

/// Times and batch of a proof until its verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerdictStats {
    /// Microseconds before work on it began.
    pub queue_us: u64,
    /// Microseconds from then on until the verdict: its reduction, waiting for the batch, the check.
    pub verify_us: u64,
    /// Proofs in its batch, itself included; 0 if it came into none.
    pub batch: u32,
    /// Proofs in its batch that were not valid, itself included.
    pub batch_failures: u32,
}

// === impl Verdict ===

impl Verdict {
    /// The verdict on a proof that was not checked.
    pub(crate) fn unavailable(reason: Unavailable) -> Self {
        Self {
            status: Status::Unavailable(reason),
            stats: VerdictStats::default(),
        }
    }
}

// === impl Status ===

impl Status {
    /// Whether the proof is known to be valid.
    pub fn is_valid(&self) -> bool {
        matches!(self, Self::Valid)
    }

    /// One word: `valid`, `invalid` or `unavailable`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Invalid(_) => "invalid",
            Self::Unavailable(_) => "unavailable",
        }
    }

    /// The reason, unless the proof is valid.
    pub fn reason(&self) -> Option<String> {
        match self {
            Self::Valid => None,
            Self::Invalid(reason) => Some(reason.to_string()),
            Self::Unavailable(reason) => Some(reason.to_string()),
        }
    }
}
