//! Answers to questions about a block.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::view::TaskView;
use crate::record::{DeadRecord, Past};

/// Blocks that are summed up at once, at most.
pub const BLOCKS_MAX: u64 = 1000;

/// What a block has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockState {
    /// Nothing is known of it: no source has brought it.
    NeverSeen,
    /// The sequencer begins above it.
    BeforeStart,
    /// So far back that nothing is remembered of it: it may have been finished, or never seen.
    Forgotten,
    /// A worker has a task of it.
    Running,
    /// A task of it waits: for a worker, for other messages, or for its turn.
    Waiting,
    /// A task of it is in the dead-letter queue.
    Dead,
    /// An operator has dropped a dead letter of it, and nothing has come in its place.
    Dropped,
    /// A collector or the sequencer had no use for what it came to.
    Skipped,
    /// Its source has taken it back, and has not brought it again.
    TakenBack,
    /// Its tasks have ended. Where there is a sequencer, this one was given nothing of it.
    Finished,
    /// The sequencer has emitted it.
    Emitted,
}

/// How a block stands with its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeadlineState {
    /// It has time left.
    Running,
    /// It was done in time.
    Met,
    /// It was not.
    Missed,
}

/// A block in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockSummary {
    /// The block.
    pub block: u64,
    /// What it has come to.
    pub state: BlockState,
    /// How it stands with its deadline; `None` if none is counted, or that is not remembered.
    pub deadline: Option<DeadlineState>,
    /// Live tasks that are about it.
    pub live: usize,
    /// Dead letters that are about it.
    pub dead: usize,
    /// Whether it had been emitted when its source took it back: what was emitted is stale.
    pub stale: bool,
    /// When the last of it that is remembered happened, milliseconds since 1970-01-01 UTC.
    pub at_ms: Option<u64>,
}

/// A live task of a block, and what it waits for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LiveStep {
    /// The task.
    pub task: TaskView,
    /// What has to happen before it goes on, in words.
    pub waits_for: String,
}

/// A block.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BlockView {
    /// In short.
    pub summary: BlockSummary,
    /// Its live tasks, by stage and part.
    pub live: Vec<LiveStep>,
    /// Its dead letters, by stage and part.
    pub dead: Vec<DeadRecord>,
    /// What is remembered of it, oldest first.
    pub past: Vec<Past>,
    /// Whether the history tells of its end, if it has ended: it goes back only so far.
    pub is_remembered: bool,
    /// Where sources go on, by name.
    pub sources: Vec<(Arc<str>, u64)>,
}
