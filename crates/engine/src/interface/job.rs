//! Jobs, their states and results.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{JobId, PartitionProof, Priority, RequestId};

/// The state of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// No partition has begun.
    Queued,
    /// At least one partition has begun.
    Running,
    /// All proofs are made and verified.
    Done,
    /// The job failed for this reason, and no proofs will be made.
    Failed(String),
    /// A client cancelled the job.
    Cancelled,
    /// The deadline of the job passed.
    Expired,
}

/// The result of a job that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobResult {
    /// The job.
    pub job: JobId,
    /// [`JobState::Done`], [`JobState::Failed`], [`JobState::Cancelled`] or [`JobState::Expired`].
    pub state: JobState,
    /// One proof for each partition, in order; empty unless the job is done.
    pub proofs: Arc<[PartitionProof]>,
}

/// An accepted submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submitted {
    /// The job.
    pub job: JobId,
    /// Whether the job existed already, since the same request came before.
    pub existing: bool,
}

/// The current state of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobView {
    /// The job.
    pub id: JobId,
    /// The client and its request id.
    pub request: RequestId,
    /// The priority of the job.
    pub priority: Priority,
    /// The state of the job.
    pub state: JobState,
    /// The number of partitions.
    pub partitions: u32,
    /// Partitions whose proof is made and verified.
    pub proven: u32,
    /// Partitions in a stage or between two stages.
    pub running: u32,
    /// Number of times that a partition was tried again.
    pub retries: u32,
    /// Time of acceptance, in milliseconds since 1970.
    pub submitted_ms: u64,
    /// The deadline, in milliseconds since 1970.
    pub deadline_ms: Option<u64>,
    /// Time at which the first partition began, in milliseconds since 1970.
    pub started_ms: Option<u64>,
    /// Time at which the job ended, in milliseconds since 1970.
    pub ended_ms: Option<u64>,
    /// The names of its circuits, each once.
    pub circuits: Vec<String>,
    /// Bytes of the budget that its partitions hold.
    pub bytes: u64,
}

// === impl JobState ===

impl JobState {
    /// Whether the job has ended.
    pub const fn is_final(&self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }

    /// The name in messages and metrics.
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
