//! Records of the history of blocks: work that has ended.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::{TaskId, WorkerId};
use crate::traces::TaskTrace;

/// Maximum length of a reason or of a group's key in an entry, bytes.
pub const HISTORY_TEXT_MAX: usize = 256;

/// Maximum number of failed attempts in an entry: the last ones.
pub const HISTORY_FAILURES_MAX: usize = 3;

/// Maximum number of places of an emission.
pub const PLACES_MAX: usize = 16;

/// Maximum length of a place's name, bytes.
pub const PLACE_MAX: usize = 512;

/// A record with entries of the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryRecord {
    /// Number of the record in the history, from 0.
    pub number: u64,
    /// Sequence number up to which marks in the log are covered by the history; later marks are not.
    pub marks_to: u64,
    /// Entries, in order.
    pub entries: Vec<HistoryEntry>,
}

/// Timeline of a task until its end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskTimeline {
    /// Time of acceptance. All times are milliseconds since 1970-01-01 UTC.
    pub accepted_ms: u64,
    /// See [`TaskEnd::begun_ms`].
    pub begun_ms: Option<u64>,
    /// See [`TaskEnd::ran_ms`].
    pub ran_ms: Option<u64>,
    /// See [`TaskOutcome::Completed`].
    pub by: Vec<(WorkerId, u32)>,
    /// See [`TaskEnd::failed`].
    pub failed: u32,
    /// See [`TaskEnd::failures`].
    pub failures: Vec<FailedAttemptSummary>,
    /// See [`TaskEnd::trace`].
    pub trace: TaskTrace,
}

/// An entry of the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HistoryEntry {
    /// A task ended.
    TaskEnd(TaskEnd),
    /// The deadline of blocks was met or missed.
    Deadline {
        /// First block.
        first: u64,
        /// Last block, inclusive.
        last: u64,
        /// Time, milliseconds since 1970-01-01 UTC.
        at_ms: u64,
        /// Whether the deadline passed before the blocks were done.
        missed: bool,
    },
    /// A source took blocks back because its chain was reorganised.
    TakenBack {
        /// Name of the source.
        source: Arc<str>,
        /// First block.
        first: u64,
        /// Last block of which tasks or records existed, inclusive.
        last: u64,
        /// Whether the blocks had been emitted. They then stay emitted, but are stale.
        emitted: bool,
        /// Time, milliseconds since 1970-01-01 UTC.
        at_ms: u64,
    },
}

/// The end of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskEnd {
    /// The task.
    pub task: TaskId,
    /// Last block that the task spanned, inclusive.
    pub last: u64,
    /// Time of acceptance. All times are milliseconds since 1970-01-01 UTC.
    pub accepted_ms: u64,
    /// Beginning of the assignment that led to the result; `None` if no worker ended the task, or the lease
    /// had ended before the result came.
    pub begun_ms: Option<u64>,
    /// Run time of the executor itself, milliseconds; `None` if no worker ended the task.
    pub ran_ms: Option<u64>,
    /// Time of the end.
    pub ended_ms: u64,
    /// Time at which the log had the end; `None` if this entry was itself the record of the end, or if the coordinator
    /// that recorded the end has restarted since.
    pub recorded_ms: Option<u64>,
    /// Number of attempts that failed before the end.
    pub failed: u32,
    /// The last failed attempts, at most [`HISTORY_FAILURES_MAX`].
    pub failures: Vec<FailedAttemptSummary>,
    /// Kind of end.
    pub outcome: TaskOutcome,
    /// Place of the task in its block's trace.
    pub trace: TaskTrace,
}

/// Kind of end of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TaskOutcome {
    /// Workers completed it: one, or as many as its stage's `accept` setting requires.
    Completed {
        /// The workers, each with the number of its attempt, from 1, in the order in which their results came.
        by: Vec<(WorkerId, u32)>,
    },
    /// The task became part of a group.
    Grouped {
        /// Key of the group, cut to [`HISTORY_TEXT_MAX`] bytes.
        key: String,
    },
    /// A strategy or the sequencer skipped it.
    Skipped {
        /// Reason.
        why: String,
    },
    /// An operator dropped it from the dead-letter queue.
    Dropped,
    /// The task went to the dead-letter queue, from which it may have been retried.
    Died {
        /// Reason.
        why: String,
    },
    /// The message of the task left the workflow.
    Emitted {
        /// Places that the message went to: files, addresses, subjects, programs.
        places: Vec<String>,
    },
    /// The message came too late for its group, and the stage passed it on alone.
    PassedOn {
        /// Reason.
        why: String,
    },
}

/// Summary of a failed attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedAttemptSummary {
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Worker that made the attempt.
    pub worker: WorkerId,
    /// Time of the failure, milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// Run time, milliseconds.
    pub ran_ms: u64,
    /// Reason, cut to [`HISTORY_TEXT_MAX`] bytes.
    pub reason: String,
}

// === impl HistoryEntry ===

impl HistoryEntry {
    /// First and last block of the entry.
    pub fn span(&self) -> (u64, u64) {
        match self {
            Self::TaskEnd(end) => (end.task.block, end.last),
            Self::Deadline { first, last, .. } | Self::TakenBack { first, last, .. } => {
                (*first, *last)
            }
        }
    }

    /// Time of the entry, milliseconds since 1970-01-01 UTC.
    pub fn at_ms(&self) -> u64 {
        match self {
            Self::TaskEnd(end) => end.ended_ms,
            Self::Deadline { at_ms, .. } | Self::TakenBack { at_ms, .. } => *at_ms,
        }
    }

    /// Whether the entry is about this block, possibly among others.
    pub fn is_about(&self, block: u64) -> bool {
        let (first, last) = self.span();
        (first..=last).contains(&block)
    }
}
