//! Jobs and their results.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{JobId, PartitionProof, Priority, RequestId};

/// How far a job is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// No partition of it has begun.
    Queued,
    /// At least one partition has begun.
    Running,
    /// All proofs are there, and verified.
    Done,
    /// There will be no proofs: why.
    Failed(String),
    /// Someone asked to stop it.
    Cancelled,
    /// Its deadline passed.
    Expired,
}

/// What became of a job; its state is final.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobResult {
    /// The job.
    pub job: JobId,
    /// [`JobState::Done`], [`JobState::Failed`], [`JobState::Cancelled`] or [`JobState::Expired`].
    pub state: JobState,
    /// One for each partition, in order; empty unless the job is done.
    pub proofs: Arc<[PartitionProof]>,
}

/// An accepted submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submitted {
    /// The job.
    pub job: JobId,
    /// Whether it was there already: the same request came before.
    pub existing: bool,
}

/// A job as it is now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobView {
    /// The job.
    pub id: JobId,
    /// Whose it is.
    pub request: RequestId,
    /// Its priority.
    pub priority: Priority,
    /// How far it is.
    pub state: JobState,
    /// Its partitions.
    pub partitions: u32,
    /// Partitions whose proof is there and verified.
    pub proven: u32,
    /// Partitions in a stage, or between two.
    pub running: u32,
    /// Partitions tried again.
    pub retries: u32,
    /// When it was accepted, in milliseconds since 1970.
    pub submitted_ms: u64,
    /// Its deadline, in milliseconds since 1970.
    pub deadline_ms: Option<u64>,
    /// When its first partition began, in milliseconds since 1970.
    pub started_ms: Option<u64>,
    /// When it ended, in milliseconds since 1970.
    pub ended_ms: Option<u64>,
    /// The names of its circuits, each once.
    pub circuits: Vec<String>,
    /// The bytes of the budget its partitions hold.
    pub bytes: u64,
}

// === impl JobState ===

impl JobState {
    /// Whether nothing more will happen to the job.
    pub const fn is_final(&self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }

    /// What messages and metrics call it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed(_) => "failed",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
        }
    }
}

impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(why) => write!(f, "failed: {why}"),
            state => f.write_str(state.name()),
        }
    }
}
