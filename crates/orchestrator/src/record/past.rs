//! What the log remembers of work that has ended: the history of blocks.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::{TaskId, WorkerId};

/// Bytes of a reason or of a group's key in an entry, at most.
pub const PAST_TEXT_MAX: usize = 256;

/// Failed attempts that an entry tells of, at most: the last ones.
pub const PAST_FAILURES_MAX: usize = 3;

/// Places that an emission went to, at most.
pub const PLACES_MAX: usize = 16;

/// Bytes of the name of a place, at most.
pub const PLACE_MAX: usize = 512;

/// Entries of the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastRecord {
    /// Counts the records of the history, from 0.
    pub number: u64,
    /// What the marks up to this sequence number of the log say is in the history; what those say that
    /// follow is not.
    pub marks_to: u64,
    /// The entries, in order.
    pub entries: Vec<Past>,
}

/// How a task went until it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Course {
    /// When it was accepted; all times are milliseconds since 1970-01-01 UTC.
    pub accepted_ms: u64,
    /// As [`StepRecord::begun_ms`].
    pub begun_ms: Option<u64>,
    /// As [`StepRecord::ran_ms`].
    pub ran_ms: Option<u64>,
    /// As [`Outcome::Completed`] has it.
    pub by: Vec<(WorkerId, u32)>,
    /// As [`StepRecord::failed`].
    pub failed: u32,
    /// As [`StepRecord::failures`].
    pub failures: Vec<FailedStep>,
}

/// An entry of the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Past {
    /// A task has ended.
    Step(StepRecord),
    /// The deadline of blocks was met, or has passed.
    Deadline {
        /// The first block.
        first: u64,
        /// The last block, inclusive.
        last: u64,
        /// When, milliseconds since 1970-01-01 UTC.
        at_ms: u64,
        /// Whether it has passed.
        missed: bool,
    },
    /// A source has taken blocks back, since its chain has changed.
    TakenBack {
        /// The source.
        source: Arc<str>,
        /// The first block.
        first: u64,
        /// The last block, inclusive, that anything was known of.
        last: u64,
        /// Whether they had been emitted: then they stay so, and are stale.
        emitted: bool,
        /// When, milliseconds since 1970-01-01 UTC.
        at_ms: u64,
    },
}

/// How a task went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepRecord {
    /// The task.
    pub task: TaskId,
    /// The last block that it spanned, inclusive.
    pub last: u64,
    /// When it was accepted; all times are milliseconds since 1970-01-01 UTC.
    pub accepted_ms: u64,
    /// When the assignment began that led to its result; `None` if no worker ended it, or the
    /// assignment had ended before the result came.
    pub begun_ms: Option<u64>,
    /// How long the executor itself ran, milliseconds.
    pub ran_ms: Option<u64>,
    /// When it ended.
    pub ended_ms: u64,
    /// Attempts that failed before.
    pub failed: u32,
    /// The last of those, at most [`PAST_FAILURES_MAX`].
    pub failures: Vec<FailedStep>,
    /// How it ended.
    pub outcome: Outcome,
}

/// How a task ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// Workers completed it: one, or as many as its stage asks for. Each with its attempt, from 1.
    Completed {
        /// Those workers; the last result is the last one's.
        by: Vec<(WorkerId, u32)>,
    },
    /// It became part of this group.
    Grouped {
        /// The group's key, cut after [`PAST_TEXT_MAX`] bytes.
        key: String,
    },
    /// A strategy or the sequencer had no use for it.
    Skipped {
        /// Why.
        why: String,
    },
    /// An operator dropped it from the dead-letter queue.
    Dropped,
    /// It went to the dead-letter queue, from where it may have come back.
    Died {
        /// Why.
        why: String,
    },
    /// It has left the workflow.
    Emitted {
        /// Where to: files, addresses, subjects, programs.
        places: Vec<String>,
    },
    /// It came too late for its group, and its stage passed it on alone.
    PassedOn {
        /// Why.
        why: String,
    },
}

/// A failed attempt, in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedStep {
    /// Its number, from 1.
    pub attempt: u32,
    /// Who tried.
    pub worker: WorkerId,
    /// When it failed, milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// How long it ran, milliseconds.
    pub ran_ms: u64,
    /// What went wrong, cut after [`PAST_TEXT_MAX`] bytes.
    pub reason: String,
}

// === impl Past ===

impl Past {
    /// The blocks that it is about, first and last.
    pub fn span(&self) -> (u64, u64) {
        match self {
            Self::Step(step) => (step.task.block, step.last),
            Self::Deadline { first, last, .. } | Self::TakenBack { first, last, .. } => {
                (*first, *last)
            }
        }
    }

    /// When it happened, milliseconds since 1970-01-01 UTC.
    pub fn at_ms(&self) -> u64 {
        match self {
            Self::Step(step) => step.ended_ms,
            Self::Deadline { at_ms, .. } | Self::TakenBack { at_ms, .. } => *at_ms,
        }
    }

    /// Whether it is about this block, also where it is about others too.
    pub fn is_about(&self, block: u64) -> bool {
        let (first, last) = self.span();
        (first..=last).contains(&block)
    }
}
