//! What goes over the wire, and what the command line prints with `--json`.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// A queue at this moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueStatus {
    /// Its name.
    pub queue: String,
    /// Its readers.
    pub readers: Vec<String>,
    /// Messages of it that wait for a worker, for their backoff, or for their turn.
    pub waiting: usize,
    /// Messages of it that workers have.
    pub leased: usize,
    /// Messages of it that collectors hold.
    pub held: usize,
    /// Messages of it in the dead-letter queue.
    pub dead: usize,
    /// The lowest block among the live ones.
    pub lowest: Option<u64>,
    /// Waiting tasks at which producers wait.
    pub q_max: usize,
}

/// Which tasks to list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TasksQuery {
    /// Only of this stage.
    pub stage: Option<String>,
    /// Only of this block.
    pub block: Option<u64>,
    /// At most so many.
    pub limit: Option<usize>,
}

/// A live task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSummary {
    /// Its id, `STAGE/BLOCK/PART`.
    pub task: String,
    /// The last block that it spans.
    pub last: u64,
    /// The queue it came by.
    pub queue: String,
    /// `waiting`, `delayed`, `leased`, `held`, `queued` or `recording`.
    pub phase: String,
    /// Who has it.
    pub worker: Option<String>,
    /// Failed attempts so far.
    pub failed_attempts: usize,
    /// Bytes of payload.
    pub payload_bytes: u64,
    /// When it was accepted, milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
}

/// A dead letter, in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadSummary {
    /// Its id, `STAGE/BLOCK/PART`.
    pub task: String,
    /// Why it is here.
    pub reason: String,
    /// Attempts made.
    pub attempts: usize,
    /// Since when, milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
}

/// A dead letter with all that is known of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetter {
    /// In short.
    pub summary: DeadSummary,
    /// The queue it came by.
    pub queue: String,
    /// The last block that it spans.
    pub last: u64,
    /// Every attempt.
    pub attempts: Vec<FailedAttempt>,
    /// The payload: JSON as text, anything else as hexadecimal digits, cut after 64 KiB.
    pub payload: String,
    /// Whether `payload` is JSON text.
    pub payload_is_json: bool,
    /// Bytes of the whole payload.
    pub payload_bytes: u64,
}

/// One failed attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedAttempt {
    /// Its number, from 1.
    pub number: u32,
    /// Who tried.
    pub worker: String,
    /// When it failed, milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// In words.
    pub reason: String,
    /// Whether it said that no other attempt can succeed.
    pub permanent: bool,
    /// The program's exit code, if it exited.
    pub exit: Option<i32>,
    /// Its standard output, cut in the middle if it was long.
    pub stdout: String,
    /// Its standard error, cut in the middle if it was long.
    pub stderr: String,
    /// How long it ran, milliseconds.
    pub wall_ms: u64,
}

/// What is left when a dead letter has been dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// Its id, `STAGE/BLOCK/PART`.
    pub task: String,
    /// What the sequencer waits for now, if it does.
    #[serde(default)]
    pub gap: Option<Gap>,
}

/// Blocks that have not been emitted, and whose message has been dropped: the sequencer waits for them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The first of them.
    pub first: u64,
    /// The last, inclusive.
    pub last: u64,
    /// The queue by which the message had come: another one there is taken, and goes its way.
    pub queue: String,
    /// The queue that the sequencer reads: what comes there is emitted in the blocks' place.
    pub sequencer_queue: String,
}

/// Which live tasks to stop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cancellation {
    /// This one, `STAGE/BLOCK/PART`.
    Task(String),
    /// Those that are about this block, also where they are about others too.
    Block(u64),
    /// All.
    All,
}

/// A message from outside the workflow.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Submission {
    /// The queue.
    pub queue: String,
    /// First block it is about.
    pub first: u64,
    /// Last block it is about, inclusive.
    pub last: u64,
    /// Which part of the block; a whole block if absent.
    #[serde(default)]
    pub part: Option<String>,
    /// What it carries, as JSON.
    pub payload: Box<serde_json::value::RawValue>,
    /// Labels that a worker must have, instead of the stage's.
    #[serde(default)]
    pub requires: Option<BTreeSet<String>>,
}

/// What became of a submission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum SubmitAnswer {
    /// Durably recorded.
    Accepted,
    /// Known, or finished, already: nothing was recorded.
    Duplicate {
        /// Whether what is known, or was finished, carried the same; `None` if that is not remembered:
        /// the block has left long ago, or an earlier release finished it.
        #[serde(default)]
        same: Option<bool>,
    },
    /// Recorded in the dead-letter queue.
    Rejected {
        /// Why.
        why: String,
    },
    /// The same message is in the dead-letter queue.
    Dead {
        /// The task.
        task: String,
        /// Why it is there.
        why: String,
    },
}
