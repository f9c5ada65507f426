//! Reports of the core for traces. Every report is about something that is recorded, or has happened at a
//! worker; none changes a decision.

use std::sync::Arc;

use proofmill_trace::Link;

use crate::id::{TaskId, WorkerId};
use crate::plan::StageIx;
use crate::record::{TaskEnd, TaskRecord};

use super::TaskTrace;

/// A report for a trace.
#[derive(Clone, Debug)]
pub enum TraceEvent {
    /// A message from outside has become this task.
    Submitted(Arc<TaskRecord>),
    /// A worker's attempt has ended, in whatever way.
    Attempt(AttemptReport),
    /// A task has ended.
    Ended(Box<EndReport>),
    /// A barrier has fired.
    Barrier(Box<BarrierReport>),
}

/// The end of an attempt.
#[derive(Clone, Debug)]
pub struct AttemptReport {
    /// The task.
    pub task: Arc<TaskRecord>,
    /// Worker that had the task.
    pub worker: WorkerId,
    /// Number of the attempt, from 1, as in its lease.
    pub attempt: u32,
    /// Beginning of the lease. Times are milliseconds since 1970-01-01 UTC.
    pub begun_ms: u64,
    /// End of the lease.
    pub ended_ms: u64,
    /// Kind of end.
    pub end: AttemptEnd,
}

/// Kind of end of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptEnd {
    /// Its result counts.
    Completed,
    /// It failed, or its worker was lost.
    Failed {
        /// Reason, as text for people.
        reason: String,
        /// The program's exit code, where there was one.
        exit: Option<i32>,
        /// Whether another attempt would fail in the same way.
        permanent: bool,
    },
    /// The worker handed the task back untried.
    Released,
    /// Its result is no longer wanted.
    Cancelled,
}

/// The end of a task.
#[derive(Clone, Debug)]
pub struct EndReport {
    /// The end, as the history records it.
    pub end: TaskEnd,
    /// Whether an earlier leader may have reported it already: spans that only that leader could report
    /// are made again, from the record.
    pub is_repeated: bool,
    /// Whether the numbers of the failed attempts are those of their leases: several workers never had the
    /// task at a time.
    pub single: bool,
}

/// A barrier that fired.
#[derive(Clone, Debug)]
pub struct BarrierReport {
    /// Stage that gathered the group.
    pub stage: StageIx,
    /// Key of the group.
    pub key: String,
    /// Member whose trace the group's message continues.
    pub first: TaskId,
    /// Place of that member.
    pub place: TaskTrace,
    /// Spans of the members, at most [`LINKS_MAX`](proofmill_trace::LINKS_MAX).
    pub members: Vec<Link>,
    /// Number of members.
    pub count: usize,
    /// Acceptance of the oldest member, milliseconds since 1970-01-01 UTC.
    pub begun_ms: u64,
    /// Time of firing.
    pub fired_ms: u64,
}
