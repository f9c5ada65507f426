//! Events of the engine, from which timelines are drawn.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::{CircuitId, JobId, JobState, Priority, Tier};

/// A stage of the pipeline that a partition passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PipelineStage {
    /// Reading the witness, or generating it.
    Witness,
    /// The products with the constraints' matrices, and the transforms.
    Evaluate,
    /// The multi-scalar products in the first group, on a device.
    Prove,
    /// The multi-scalar product in the second group, and assembling the proof.
    Finish,
    /// Verifying the proof.
    Verify,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// Microseconds since the service began, by a clock that never goes back.
    pub at_us: u64,
    /// The change that happened.
    pub kind: EventKind,
}

/// A change of a job, a partition or a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A job was accepted, began or ended.
    Job {
        /// The job.
        job: JobId,
        /// The priority of the job.
        priority: Priority,
        /// The number of partitions of the job.
        partitions: u32,
        /// The new state of the job.
        state: JobState,
    },
    /// A partition got a slot and the memory it needs.
    Admitted {
        /// The partition and attempt.
        span: Span,
        /// The bytes reserved for it, beside its key.
        bytes: u64,
    },
    /// A partition entered a stage.
    Began {
        /// The partition and attempt.
        span: Span,
        /// The stage.
        stage: PipelineStage,
        /// The name of the device or the stage.
        worker: Arc<str>,
    },
    /// A partition left a stage.
    Ended {
        /// The partition and attempt.
        span: Span,
        /// The stage.
        stage: PipelineStage,
        /// The name of the device or the stage.
        worker: Arc<str>,
        /// Time of entry, in microseconds since the service began.
        began_us: u64,
        /// The outcome of the stage.
        end: StageEnd,
        /// Bytes of the budget that the partition keeps from now on.
        bytes: u64,
    },
    /// A key came to a nearer tier or was evicted.
    Key {
        /// The circuit.
        circuit: CircuitId,
        /// The circuit's name.
        name: Arc<str>,
        /// The current tier.
        tier: Tier,
        /// Bytes of the budget that the key holds now.
        bytes: u64,
        /// Time at which loading began, in microseconds since the service began; none if the key was
        /// evicted.
        began_us: Option<u64>,
    },
}

/// One attempt to prove a partition of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Span {
    /// The job.
    pub job: JobId,
    /// The partition, from 0.
    pub partition: u32,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The circuit's name.
    pub circuit: Arc<str>,
}

/// The outcome of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StageEnd {
    /// The stage succeeded.
    Done,
    /// The stage failed: the partition is tried again, or its job fails.
    Failed,
    /// The job was cancelled, expired or failed meanwhile.
    Dropped,
}

// === impl EventKind ===

impl EventKind {
    /// The job that the event is about; none for events about keys.
    pub fn job(&self) -> Option<JobId> {
        match self {
            Self::Job { job, .. } => Some(*job),
            Self::Admitted { span, .. } | Self::Began { span, .. } | Self::Ended { span, .. } => {
                Some(span.job)
            }
            Self::Key { .. } => None,
        }
    }
}

// === impl PipelineStage ===

impl PipelineStage {
    /// All stages, in order.
    pub const ALL: [Self; 5] = [
        Self::Witness,
        Self::Evaluate,
        Self::Prove,
        Self::Finish,
        Self::Verify,
    ];

    /// The name in messages and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Witness => "witness",
            Self::Evaluate => "evaluate",
            Self::Prove => "prove",
            Self::Finish => "finish",
            Self::Verify => "verify",
        }
    }

    /// The next stage; none after the last.
    pub(crate) const fn next(self) -> Option<Self> {
        match self {
            Self::Witness => Some(Self::Evaluate),
            Self::Evaluate => Some(Self::Prove),
            Self::Prove => Some(Self::Finish),
            Self::Finish => Some(Self::Verify),
            Self::Verify => None,
        }
    }
}

impl fmt::Display for PipelineStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
