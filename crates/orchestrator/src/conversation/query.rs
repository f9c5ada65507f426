//! Read-only queries and their answers, each of which is bounded.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::core::{BlockSummary, BlockView, Measures, Status, StepsView, TaskPhase};
use crate::id::{TaskId, WorkerId};
use crate::record::DeadRecord;

/// Maximum number of rows of a page. The coordinator does nothing else while it builds one.
pub const PAGE_MAX: usize = 1_000;

/// A read-only question to the core.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Query {
    /// State of the whole workflow.
    Status,
    /// Position of the source with this name: the block that it continues with.
    SourceNext(Arc<str>),
    /// The queues, in the order of the plan.
    Queues,
    /// Workers that have joined, by name.
    Workers {
        /// Last row of the page before; `None` for the first page.
        after: Option<WorkerId>,
        /// Maximum number of rows, capped at [`PAGE_MAX`].
        limit: usize,
    },
    /// Live tasks, by stage, block and part.
    Tasks {
        /// Selection of the tasks.
        of: TaskSelection,
        /// Last row of the page before; `None` for the first page.
        after: Option<TaskId>,
        /// Maximum number of rows, capped at [`PAGE_MAX`].
        limit: usize,
    },
    /// Dead letters, by stage, block and part.
    DeadLetters {
        /// Last row of the page before; `None` for the first page.
        after: Option<TaskId>,
        /// Maximum number of rows, capped at [`PAGE_MAX`].
        limit: usize,
    },
    /// One dead letter.
    DeadLetter(TaskId),
    /// Full view of a block.
    Block(u64),
    /// Summaries of blocks from the first to the last, at most [`BLOCKS_MAX`](crate::core::BLOCKS_MAX).
    Blocks {
        /// First block.
        first: u64,
        /// Last block, inclusive.
        last: u64,
    },
    /// Numbers for monitoring.
    Measures,
    /// Steps of the lowest blocks in work, at most [`STEP_BLOCKS_MAX`](crate::core::STEP_BLOCKS_MAX), of a plan that cuts
    /// blocks into parts.
    Steps,
}

/// Selection of live tasks: those that match every field that is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSelection {
    /// Stage of the task.
    pub stage: Option<Arc<str>>,
    /// A block that the task is about, possibly among others.
    pub block: Option<u64>,
    /// State of the task.
    pub phase: Option<TaskPhase>,
}

/// The answer to the [`Query`] of the same name.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum QueryAnswer {
    /// See [`Query::Status`].
    Status(Box<Status>),
    /// See [`Query::SourceNext`].
    SourceNext(Option<u64>),
    /// See [`Query::Queues`].
    Queues(Vec<QueueRow>),
    /// See [`Query::Workers`].
    Workers(Page<WorkerRow, WorkerId>),
    /// See [`Query::Tasks`].
    Tasks(Page<TaskRow, TaskId>),
    /// See [`Query::DeadLetters`].
    DeadLetters(Page<DeadRow, TaskId>),
    /// See [`Query::DeadLetter`].
    DeadLetter(Option<Box<DeadRecord>>),
    /// See [`Query::Block`].
    Block(Box<BlockView>),
    /// See [`Query::Blocks`].
    Blocks(Vec<BlockSummary>),
    /// See [`Query::Measures`].
    Measures(Box<Measures>),
    /// See [`Query::Steps`].
    Steps(Box<StepsView>),
}

/// A page of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page<Row, Cursor> {
    /// The rows, in order.
    pub rows: Vec<Row>,
    /// Value of `after` that asks for the next page; `None` if there are no more rows.
    pub next: Option<Cursor>,
}

// === impl Page ===

impl<Row, Cursor> Page<Row, Cursor> {
    /// The same page with its rows converted.
    pub(crate) fn map<Other>(self, row: impl FnMut(Row) -> Other) -> Page<Other, Cursor> {
        Page {
            rows: self.rows.into_iter().map(row).collect(),
            next: self.next,
        }
    }
}

/// State of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueRow {
    /// Name of the queue.
    pub queue: Arc<str>,
    /// Tasks that wait for a worker, their backoff, their turn, or a record.
    pub waiting: usize,
    /// Tasks that workers have.
    pub leased: usize,
    /// Messages that a collector holds.
    pub held: usize,
    /// Dead letters.
    pub dead: usize,
    /// Lowest first block of a live task; `None` if there is none.
    pub lowest: Option<u64>,
}

/// A worker that has joined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerRow {
    /// Name of the worker.
    pub worker: WorkerId,
    /// Worker group.
    pub group: Arc<str>,
    /// Number of leases that the worker holds.
    pub leases: usize,
    /// Labels that the worker offers, at most 16 of them.
    pub labels: Vec<String>,
    /// Maximum number of concurrent assignments (F_max).
    pub slots: usize,
    /// Assignments under way.
    pub slots_busy: usize,
    /// State: `idle`, `working`, `paused`, `silent`, `leaving` or `distrusted`.
    pub state: Cow<'static, str>,
    /// Time since the worker's last message, milliseconds.
    pub silent_ms: u64,
    /// Share of the last five to ten minutes in which the worker had an assignment, in percent.
    pub busy_percent: u8,
    /// Attempts that it completed for this coordinator.
    pub completed: u64,
    /// Attempts that failed at it for this coordinator.
    pub failed: u64,
}

/// A live task, without its payload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRow {
    /// The task.
    pub task: TaskId,
    /// Last block that the task is about, inclusive.
    pub last: u64,
    /// Queue that the task came by.
    pub queue: Arc<str>,
    /// State of the task.
    pub phase: TaskPhase,
    /// Worker that has the task; if several have it, the one that was given it first.
    pub worker: Option<WorkerId>,
    /// Number of failed attempts that are kept.
    pub failed_attempts: usize,
    /// Size of the payload, bytes.
    pub payload_bytes: u64,
    /// Time of acceptance, milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
}

/// A dead letter, without its payload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadRow {
    /// The task.
    pub task: TaskId,
    /// Reason for the task's death.
    pub reason: String,
    /// Number of failed attempts that are kept.
    pub attempts: usize,
    /// Time of death, milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
}
