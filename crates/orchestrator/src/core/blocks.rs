//! Types of the answers to queries about blocks.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::view::TaskView;
use super::waiting::WaitReason;
use crate::record::{DeadRecord, HistoryEntry};

/// Maximum number of blocks in one answer of summaries.
pub const BLOCKS_MAX: u64 = 1000;

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

/// A live task of a block, and the condition that it waits for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LiveStep {
    /// The task.
    pub task: TaskView,
    /// The reason why the task does not move on.
    pub waits_for: WaitReason,
}

/// Full view of a block.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BlockView {
    /// Summary.
    pub summary: BlockSummary,
    /// Live tasks, by stage and part.
    pub live: Vec<LiveStep>,
    /// Dead letters, by stage and part.
    pub dead: Vec<DeadRecord>,
    /// History entries about the block, oldest first.
    pub history: Vec<HistoryEntry>,
    /// Whether the history still covers the block's end, if the block has ended; the history is bounded.
    pub is_remembered: bool,
    /// Positions of the sources: the next block of each, by name.
    pub sources: Vec<(Arc<str>, u64)>,
}
