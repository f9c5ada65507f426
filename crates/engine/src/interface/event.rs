//! What happens, as it happens: a timeline is made of it.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::{CircuitId, JobId, JobState, Priority, Tier};

/// A step of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Reading the witness, or generating it.
    Witness,
    /// The products with the constraints' matrices, and the transforms.
    Evaluate,
    /// The multi-scalar products in the first group, on a device.
    Prove,
    /// The product in the second group, and the proof put together.
    Finish,
    /// Verifying the proof.
    Verify,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// Microseconds since the service began, by a clock that never goes back.
    pub at_us: u64,
    /// What.
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A job was accepted, began or ended.
    Job {
        /// The job.
        job: JobId,
        /// Its priority.
        priority: Priority,
        /// Its partitions.
        partitions: u32,
        /// Its new state.
        state: JobState,
    },
    /// A partition got the memory it needs, and a slot.
    Admitted {
        /// Which, and where it stands.
        span: Span,
        /// The bytes reserved for it, beside its key.
        bytes: u64,
    },
    /// A partition entered a stage.
    Began {
        /// Which.
        span: Span,
        /// The stage.
        stage: Stage,
        /// The device's name, or the stage's worker's.
        worker: Arc<str>,
    },
    /// A partition left a stage.
    Ended {
        /// Which.
        span: Span,
        /// The stage.
        stage: Stage,
        /// The device's name, or the stage's worker's.
        worker: Arc<str>,
        /// When it entered, in microseconds since the service began.
        began_us: u64,
        /// How.
        end: StageEnd,
        /// The bytes it keeps of the budget from here on.
        bytes: u64,
    },
    /// A key came nearer or was evicted.
    Key {
        /// The circuit.
        circuit: CircuitId,
        /// Its name.
        name: Arc<str>,
        /// Where it is now.
        tier: Tier,
        /// The bytes of the budget it holds now.
        bytes: u64,
        /// When loading it began; none if it was evicted.
        began_us: Option<u64>,
    },
}

/// A partition of a job, tried so often.
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

/// How a stage ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StageEnd {
    /// It did what it should.
    Done,
    /// It failed: the partition is tried again, or its job has failed.
    Failed,
    /// Its job was cancelled, expired or failed meanwhile.
    Dropped,
}

// === impl EventKind ===

impl EventKind {
    /// The job that it is about, if it is about one.
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

// === impl Stage ===

impl Stage {
    /// All of them, in order.
    pub const ALL: [Self; 5] = [
        Self::Witness,
        Self::Evaluate,
        Self::Prove,
        Self::Finish,
        Self::Verify,
    ];

    /// What messages and metrics call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Witness => "witness",
            Self::Evaluate => "evaluate",
            Self::Prove => "prove",
            Self::Finish => "finish",
            Self::Verify => "verify",
        }
    }

    /// The one that follows.
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

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
