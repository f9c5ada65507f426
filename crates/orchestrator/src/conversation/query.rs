//! Queries, which change nothing, and their answers, each of which is bounded.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::core::{BlockSummary, BlockView, Status, TaskPhase};
use crate::id::{TaskId, WorkerId};
use crate::record::DeadRecord;

/// Rows of one page, at most: the coordinator does nothing else while it makes one.
pub const PAGE_MAX: usize = 1_000;

/// A question to the core.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Query {
    /// The whole at this moment.
    Status,
    /// Where the source of this name goes on.
    SourceNext(Arc<str>),
    /// The queues, in the order of the plan.
    Queues,
    /// Workers that have joined, by name.
    Workers {
        /// Those after this one; from the first on if there is none.
        after: Option<WorkerId>,
        /// Rows, at most; [`PAGE_MAX`] if that is fewer.
        limit: usize,
    },
    /// Live tasks, by stage, block and part.
    Tasks {
        /// The tasks.
        of: TaskSelection,
        /// Those after this one; from the first on if there is none.
        after: Option<TaskId>,
        /// Rows, at most; [`PAGE_MAX`] if that is fewer.
        limit: usize,
    },
    /// Dead letters, by stage, block and part.
    DeadLetters {
        /// Those after this one; from the first on if there is none.
        after: Option<TaskId>,
        /// Rows, at most; [`PAGE_MAX`] if that is fewer.
        limit: usize,
    },
    /// One dead letter.
    DeadLetter(TaskId),
    /// What became of a block.
    Block(u64),
    /// What became of blocks, in short: those from the first to the last,
    /// [`BLOCKS_MAX`](crate::core::BLOCKS_MAX) at most.
    Blocks {
        /// The first.
        first: u64,
        /// The last, inclusive.
        last: u64,
    },
}

/// Which live tasks are meant: all for which what is given holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSelection {
    /// Of this stage.
    pub stage: Option<Arc<str>>,
    /// About this block, also where they are about others too.
    pub block: Option<u64>,
    /// In this phase.
    pub phase: Option<TaskPhase>,
}

/// The answer to a [`Query`], of the same name.
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
}

/// Some rows of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page<Row, Cursor> {
    /// The rows, in order.
    pub rows: Vec<Row>,
    /// After which one the next page begins; `None` if there are no more rows.
    pub next: Option<Cursor>,
}

// === impl Page ===

impl<Row, Cursor> Page<Row, Cursor> {
    /// The same page, with other rows.
    pub(crate) fn map<Other>(self, row: impl FnMut(Row) -> Other) -> Page<Other, Cursor> {
        Page {
            rows: self.rows.into_iter().map(row).collect(),
            next: self.next,
        }
    }
}

/// A queue at this moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueRow {
    /// Its name.
    pub queue: Arc<str>,
    /// Tasks that wait: for a worker, their backoff, their turn, or a record.
    pub waiting: usize,
    /// Tasks that workers have.
    pub leased: usize,
    /// Messages that a collector holds.
    pub held: usize,
    /// Dead letters.
    pub dead: usize,
    /// The lowest first block of a live task.
    pub lowest: Option<u64>,
}

/// A worker that has joined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerRow {
    /// Its name.
    pub worker: WorkerId,
    /// Its worker group.
    pub group: Arc<str>,
    /// Number of leases that it holds.
    pub leases: usize,
}

/// A live task, without what it carries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRow {
    /// The task.
    pub task: TaskId,
    /// Last block it is about, inclusive.
    pub last: u64,
    /// The queue it came by.
    pub queue: Arc<str>,
    /// What it is doing.
    pub phase: TaskPhase,
    /// The worker that has it; of several, the first that was given it.
    pub worker: Option<WorkerId>,
    /// Number of its failed attempts that are kept.
    pub failed_attempts: usize,
    /// Bytes of its payload.
    pub payload_bytes: u64,
    /// When it was accepted, milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
}

/// A dead letter, without what it carries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadRow {
    /// The task.
    pub task: TaskId,
    /// Why it is dead.
    pub reason: String,
    /// Number of its failed attempts that are kept.
    pub attempts: usize,
    /// When it died, milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
}
