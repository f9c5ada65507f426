//! The types of requests and answers of a mill, which the command line prints with `--json`.

use std::collections::BTreeSet;
use std::sync::Arc;

use proofmill_trace::TraceContext;
use serde::{Deserialize, Serialize};

/// The current state of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueStatus {
    /// The queue's name.
    pub queue: String,
    /// The stages that read the queue.
    pub readers: Vec<String>,
    /// Messages that wait for a worker, for their backoff or for their turn.
    pub waiting: usize,
    /// Messages that workers have.
    pub leased: usize,
    /// Messages that collectors hold.
    pub held: usize,
    /// Messages in the dead-letter queue.
    pub dead: usize,
    /// The lowest block among the queue's live messages.
    pub lowest: Option<u64>,
    /// Number of waiting tasks at which producers must wait.
    pub q_max: usize,
}

/// A selection of tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TasksQuery {
    /// Only tasks of this stage.
    pub stage: Option<String>,
    /// Only tasks of this block.
    pub block: Option<u64>,
    /// Most tasks to list.
    pub limit: Option<usize>,
}

/// A live task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskSummary {
    /// The task's id, `STAGE/BLOCK/PART`.
    pub task: String,
    /// The last block that the task spans.
    pub last: u64,
    /// The queue of the task.
    pub queue: String,
    /// `waiting`, `delayed`, `leased`, `held`, `queued` or `recording`.
    pub phase: String,
    /// The worker that has the task.
    pub worker: Option<String>,
    /// Failed attempts so far.
    pub failed_attempts: usize,
    /// Size of the payload in bytes.
    pub payload_bytes: u64,
    /// Time of acceptance, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
}

/// A dead letter, in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadSummary {
    /// The task's id, `STAGE/BLOCK/PART`.
    pub task: String,
    /// The reason that the task is dead.
    pub reason: String,
    /// Number of attempts made.
    pub attempts: usize,
    /// Time at which it died, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
}

/// A dead letter in full.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetter {
    /// The entry in a list.
    pub summary: DeadSummary,
    /// The queue of the task.
    pub queue: String,
    /// The last block that the task spans.
    pub last: u64,
    /// All failed attempts.
    pub attempts: Vec<FailedAttempt>,
    /// The payload: JSON as text, anything else as hexadecimal digits, cut after 64 KiB.
    pub payload: String,
    /// Whether `payload` is JSON text.
    pub payload_is_json: bool,
    /// Size of the whole payload in bytes.
    pub payload_bytes: u64,
}

/// One failed attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedAttempt {
    /// The attempt's number, from 1.
    pub number: u32,
    /// The worker of the attempt.
    pub worker: String,
    /// Time of the failure, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The reason, in words.
    pub reason: String,
    /// Whether the attempt reported that no other attempt can succeed.
    pub permanent: bool,
    /// The program's exit code, if it exited.
    pub exit: Option<i32>,
    /// The program's standard output, cut in the middle if it was long.
    pub stdout: String,
    /// The program's standard error, cut in the middle if it was long.
    pub stderr: String,
    /// Duration of the attempt, in milliseconds.
    pub wall_ms: u64,
}

/// Dead letters to bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundleQuery {
    /// The task, `STAGE/BLOCK/PART`; every dead letter if absent.
    pub task: Option<String>,
    /// Whether the programs of the stages are put in.
    #[serde(default)]
    pub with_programs: bool,
}

// === impl BundleQuery ===

impl BundleQuery {
    /// Name for the bundle's file, such as `prove-12-0.bundle`, of letters, digits, `_`, `-`, `=` and `.` only.
    pub fn file_name(&self) -> String {
        let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-' | '=');
        let name = self.task.as_deref().unwrap_or("dead-letters").chars();
        let name: String = name.map(|it| if is_plain(it) { it } else { '-' }).collect();
        format!("{name}.bundle")
    }
}

/// The consequences of dropping a dead letter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// The task's id, `STAGE/BLOCK/PART`.
    pub task: String,
    /// The gap for which the sequencer now waits, if there is one.
    #[serde(default)]
    pub gap: Option<Gap>,
}

/// Blocks that have not been emitted, and whose message was dropped: the sequencer waits for them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The first block of the gap.
    pub first: u64,
    /// The last block of the gap, inclusive.
    pub last: u64,
    /// The queue of the dropped message. Another message may be submitted there, and takes the same way.
    pub queue: String,
    /// The queue that the sequencer reads. A message there is emitted in the blocks' place.
    pub sequencer_queue: String,
}

/// A selection of live tasks to stop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cancellation {
    /// The task of this id, `STAGE/BLOCK/PART`.
    Task(String),
    /// All tasks that span this block, even if they span others too.
    Block(u64),
    /// All live tasks.
    All,
}

/// A message from outside the workflow.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Submission {
    /// The queue.
    pub queue: String,
    /// The first block of the message.
    pub first: u64,
    /// The last block of the message, inclusive.
    pub last: u64,
    /// The part of the block; none for a whole block.
    #[serde(default)]
    pub part: Option<String>,
    /// The payload, as JSON.
    pub payload: Box<serde_json::value::RawValue>,
    /// Labels that a worker must have, instead of the stage's.
    #[serde(default)]
    pub requires: Option<BTreeSet<String>>,
    /// The trace that the block continues, as the header `traceparent`; a malformed one is ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// The header `tracestate` with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracestate: Option<String>,
}

// === impl Submission ===

impl Submission {
    /// The context of the trace that the block continues.
    pub(crate) fn trace(&self) -> Option<Arc<TraceContext>> {
        let parent = self.traceparent.as_deref()?;
        TraceContext::parse(parent, self.tracestate.as_deref()).map(Arc::new)
    }
}

/// The outcome of a submission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum SubmitAnswer {
    /// The message was durably recorded.
    Accepted,
    /// The message was known or finished already, and nothing was recorded.
    Duplicate {
        /// Whether the existing message has the same content; `None` if that is not remembered, because the block was
        /// emitted long ago or an earlier release finished it.
        #[serde(default)]
        same: Option<bool>,
    },
    /// The message was recorded in the dead-letter queue.
    Rejected {
        /// The reason.
        why: String,
    },
    /// The same message is in the dead-letter queue.
    Dead {
        /// The task.
        task: String,
        /// The reason that it is there.
        why: String,
    },
}
