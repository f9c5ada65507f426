//! Types of the answers to queries about blocks.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::view::TaskPhase;
use super::waiting::WaitReason;
use crate::id::{TaskId, WorkerId};
use crate::record::{Attempt, HistoryEntry};

/// Maximum number of blocks in one answer of summaries.
pub const BLOCKS_MAX: u64 = 1000;

/// Maximum number of failed attempts of a task in the view of a block: the last ones.
pub const ATTEMPTS_MAX: usize = 4;

/// Maximum length of the end of a stream in the view of a block, bytes.
pub const STREAM_END_MAX: usize = 2048;

/// State of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockState {
    /// No record of the block: no source has brought it.
    NeverSeen,
    /// The block is below the sequencer's first block.
    BeforeStart,
    /// The block is so far back that no record of it is kept: it may have been finished, or never seen.
    Forgotten,
    /// A worker has a task of the block.
    Running,
    /// A task of the block waits for a worker, for other messages, or for its turn.
    Waiting,
    /// A task of the block is in the dead-letter queue.
    Dead,
    /// An operator has dropped a dead letter of the block, and no task has replaced it.
    Dropped,
    /// A collector or the sequencer skipped a message of the block.
    Skipped,
    /// The source has taken the block back, and has not brought it again.
    TakenBack,
    /// The block's tasks have ended. In a workflow with a sequencer, none of them reached the sequencer.
    Finished,
    /// The sequencer has emitted the block.
    Emitted,
}

/// State of a block's deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeadlineState {
    /// The deadline has not passed.
    Running,
    /// The block was done in time.
    Met,
    /// The deadline passed before the block was done.
    Missed,
}

/// Summary of a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockSummary {
    /// The block.
    pub block: u64,
    /// State of the block.
    pub state: BlockState,
    /// State of the deadline; `None` if the block has no deadline, or its outcome is not remembered.
    pub deadline: Option<DeadlineState>,
    /// Number of live tasks about the block.
    pub live: usize,
    /// Number of dead letters about the block.
    pub dead: usize,
    /// Whether the block had been emitted when its source took it back: the emitted output is stale.
    pub stale: bool,
    /// Time of the latest remembered event about the block, milliseconds since 1970-01-01 UTC.
    pub at_ms: Option<u64>,
}

/// A live task of a block, and the condition that it waits for. Its payload is not part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveStep {
    /// The task.
    pub task: TaskId,
    /// Last block that the task is about, inclusive.
    pub last: u64,
    /// State of the task.
    pub phase: TaskPhase,
    /// Time of acceptance. All times are milliseconds since 1970-01-01 UTC.
    pub accepted_ms: u64,
    /// Leases of the task, in the order of assignment.
    pub leases: Vec<LeaseSpan>,
    /// Number of failed attempts.
    pub failed: u32,
    /// The last failed attempts, at most [`ATTEMPTS_MAX`], with the ends of their streams cut to
    /// [`STREAM_END_MAX`] bytes.
    pub attempts: Vec<Attempt>,
    /// The reason why the task does not move on.
    pub waits_for: WaitReason,
}

/// A worker's lease of a live task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseSpan {
    /// The worker.
    pub worker: WorkerId,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Beginning of the lease, milliseconds since 1970-01-01 UTC.
    pub since_ms: u64,
}

/// A dead letter of a block. Its payload is not part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadStep {
    /// The task.
    pub task: TaskId,
    /// Last block that the task is about, inclusive.
    pub last: u64,
    /// Reason for the task's death.
    pub reason: String,
    /// Number of failed attempts that are kept.
    pub failed: usize,
    /// The last of them, as in [`LiveStep::attempts`].
    pub attempts: Vec<Attempt>,
    /// Time of acceptance, milliseconds since 1970-01-01 UTC.
    pub accepted_ms: u64,
    /// Time of death, milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
}

/// Full view of a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockView {
    /// Summary.
    pub summary: BlockSummary,
    /// Live tasks, by stage and part, at most [`PAGE_MAX`](crate::conversation::PAGE_MAX).
    pub live: Vec<LiveStep>,
    /// Dead letters, by stage and part, at most as many.
    pub dead: Vec<DeadStep>,
    /// The latest history entries about the block, at most as many, oldest first.
    pub history: Vec<HistoryEntry>,
    /// Whether the history still covers the block's end, if the block has ended; the history is bounded.
    pub is_remembered: bool,
    /// Positions of the sources: the next block of each, by name.
    pub sources: Vec<(Arc<str>, u64)>,
}
