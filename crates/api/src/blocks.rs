//! Status and history of blocks.

use proofmill_orchestrator::core::{
    BLOCKS_MAX, BlockState, BlockSummary, BlockView, DeadStep, LiveStep, WaitReason,
};
use proofmill_orchestrator::record::{FailedAttemptSummary, HistoryEntry, TaskEnd, TaskOutcome};
use serde::{Deserialize, Serialize};

use crate::operations::{OperationError, Operations, failed_attempt, phase_name};
use crate::types::FailedAttempt;

/// Most history entries shown for a block; older ones are left out.
const SHOWN_ENTRIES_MAX: usize = 2000;

/// A range of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlocksQuery {
    /// The first block.
    pub first: u64,
    /// The last block, inclusive.
    pub last: u64,
}

/// Status and history of a block. All times are milliseconds since 1970-01-01 UTC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockStatus {
    /// Summary of the block's state.
    #[serde(flatten)]
    pub summary: BlockSummary,
    /// An explanation of the state, if there is one.
    pub note: Option<String>,
    /// The block's live tasks, each with the event that it waits for.
    pub tasks: Vec<BlockTask>,
    /// The block's dead letters.
    pub dead_letters: Vec<BlockDeadLetter>,
    /// The remembered part of the block's history, oldest first.
    pub history: Vec<BlockEntry>,
}

/// A live task of a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockTask {
    /// The task's id, `STAGE/BLOCK/PART`.
    pub task: String,
    /// The last block that the task spans.
    pub last: u64,
    /// `waiting`, `delayed`, `leased`, `held`, `queued` or `recording`.
    pub phase: String,
    /// The event that the task waits for, in words.
    pub waits_for: String,
    /// The same for programs.
    pub why: WaitReason,
    /// The workers that have the task.
    pub workers: Vec<BlockWorker>,
    /// Failed attempts so far.
    pub failed_attempts: u32,
    /// The last failed attempts, with the ends of their streams.
    #[serde(default)]
    pub failures: Vec<FailedAttempt>,
    /// Time of acceptance.
    pub accepted_ms: u64,
}

/// A dead letter of a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockDeadLetter {
    /// The task's id, `STAGE/BLOCK/PART`.
    pub task: String,
    /// The last block that the task spans.
    #[serde(default)]
    pub last: u64,
    /// The reason that the task is dead.
    pub reason: String,
    /// Number of attempts made.
    pub attempts: usize,
    /// The last failed attempts, with the ends of their streams.
    #[serde(default)]
    pub failures: Vec<FailedAttempt>,
    /// Time of acceptance.
    #[serde(default)]
    pub accepted_ms: u64,
    /// Time at which it died.
    pub at_ms: u64,
}

/// A worker, and its attempt at a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockWorker {
    /// The worker's name.
    pub worker: String,
    /// The attempt, from 1.
    pub attempt: u32,
    /// Beginning of the lease of a live task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<u64>,
}

/// An entry in a block's history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockEntry {
    /// The kind of event.
    #[serde(rename = "what")]
    pub kind: BlockEventKind,
    /// The time of the event.
    pub at_ms: u64,
    /// The first block of the event.
    pub first: u64,
    /// The last block of the event, inclusive.
    pub last: u64,
    /// For the end of a task: the task and its times.
    pub step: Option<BlockStep>,
    /// The reason in words, if there is one.
    pub reason: Option<String>,
    /// For a task that became part of a group: the group's key.
    pub group: Option<String>,
    /// For an emission: the sinks that have the block.
    pub places: Vec<String>,
    /// For blocks that were taken back: the source.
    pub source: Option<String>,
}

/// A kind of event in a block's history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockEventKind {
    /// Workers completed a task.
    Completed,
    /// A task became part of a group.
    Grouped,
    /// A task came too late for its group, and went on alone.
    PassedOn,
    /// A strategy or the sequencer did not need a task.
    Skipped,
    /// An operator dropped a dead letter.
    Dropped,
    /// A task went to the dead-letter queue.
    #[serde(rename = "died")]
    DeadLettered,
    /// The block left the workflow.
    Emitted,
    /// The block's deadline was met.
    DeadlineMet,
    /// The block's deadline passed.
    DeadlineMissed,
    /// The source took the block back.
    TakenBack,
    /// The source took the block back after it had been emitted.
    Stale,
}

/// A task that has ended, with its times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockStep {
    /// The task's id, `STAGE/BLOCK/PART`.
    pub task: String,
    /// The workers that completed the task.
    pub workers: Vec<BlockWorker>,
    /// Time of acceptance.
    pub accepted_ms: u64,
    /// Milliseconds from acceptance to the assignment that led to the result, or to the end of the task if no worker
    /// ended it.
    pub waited_ms: u64,
    /// Milliseconds that this assignment lasted; `None` if no worker ended it.
    pub leased_ms: Option<u64>,
    /// Milliseconds that the executor itself ran.
    pub ran_ms: Option<u64>,
    /// Milliseconds from the end until the log had it; `None` if that is not known.
    pub recorded_ms: Option<u64>,
    /// Number of failed attempts before the result.
    pub failed_attempts: u32,
    /// The last failed attempts.
    pub failures: Vec<BlockFailure>,
}

/// A failed attempt, in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockFailure {
    /// The attempt's number, from 1.
    pub attempt: u32,
    /// The worker of the attempt.
    pub worker: String,
    /// Time of the failure.
    pub at_ms: u64,
    /// Milliseconds that the attempt ran.
    pub ran_ms: u64,
    /// The reason of the failure.
    pub reason: String,
}

impl Operations {
    /// Status and history of a block.
    pub async fn block(&self, block: u64) -> Result<BlockStatus, OperationError> {
        let view = self.port().block(block).await?;
        Ok(status(view))
    }

    /// The states of a range of blocks, in short.
    pub async fn blocks(&self, query: BlocksQuery) -> Result<Vec<BlockSummary>, OperationError> {
        let BlocksQuery { first, last } = query;
        if last < first {
            let why = format!("the last block, {last}, is before the first, {first}");
            return Err(OperationError::Invalid(why));
        }
        if last - first >= BLOCKS_MAX {
            let why = format!("more than {BLOCKS_MAX} blocks: ask for fewer at a time");
            return Err(OperationError::Invalid(why));
        }
        Ok(self.port().blocks(first..=last).await?)
    }
}

fn status(view: BlockView) -> BlockStatus {
    let left_out = view.history.len().saturating_sub(SHOWN_ENTRIES_MAX);
    BlockStatus {
        note: note(&view),
        tasks: view.live.iter().map(task).collect(),
        dead_letters: view.dead.iter().map(dead_letter).collect(),
        history: view.history[left_out..].iter().map(entry).collect(),
        summary: view.summary,
    }
}

/// The explanation of a block's state.
fn note(view: &BlockView) -> Option<String> {
    let block = view.summary.block;
    let from = |next: u64| match next > block {
        true => {
            format!("is past this block: after a restart the source continues with block {next}")
        }
        false => format!(
            "has not reached this block: after a restart the source continues with block {next}"
        ),
    };
    let sources = view.sources.iter();
    let sources: Vec<String> = sources
        .map(|(name, next)| format!("source {name} {}", from(*next)))
        .collect();
    match view.summary.state {
        BlockState::NeverSeen | BlockState::TakenBack if !sources.is_empty() => {
            Some(sources.join("; "))
        }
        BlockState::Dropped => Some(
            "tasks that wait for this block continue when its message is submitted again, or its \
             result is submitted to the next queue"
                .to_owned(),
        ),
        _ if !view.is_remembered => Some(
            "its history is no longer kept: [history] in the workflow file sets how much is kept"
                .to_owned(),
        ),
        _ => None,
    }
}

fn task(live: &LiveStep) -> BlockTask {
    let leases = live.leases.iter().map(|lease| BlockWorker {
        since_ms: Some(lease.since_ms),
        ..worker(&lease.worker, lease.attempt)
    });
    BlockTask {
        task: live.task.to_string(),
        last: live.last,
        phase: phase_name(&live.phase).to_owned(),
        waits_for: live.waits_for.to_string(),
        why: live.waits_for.clone(),
        workers: leases.collect(),
        failed_attempts: live.failed,
        failures: live.attempts.iter().map(failed_attempt).collect(),
        accepted_ms: live.accepted_ms,
    }
}

fn dead_letter(dead: &DeadStep) -> BlockDeadLetter {
    BlockDeadLetter {
        task: dead.task.to_string(),
        last: dead.last,
        reason: dead.reason.clone(),
        attempts: dead.failed,
        failures: dead.attempts.iter().map(failed_attempt).collect(),
        accepted_ms: dead.accepted_ms,
        at_ms: dead.at_ms,
    }
}

fn worker(name: &str, attempt: u32) -> BlockWorker {
    BlockWorker {
        worker: name.to_owned(),
        attempt,
        since_ms: None,
    }
}

fn entry(entry: &HistoryEntry) -> BlockEntry {
    let (first, last) = entry.span();
    let base = BlockEntry {
        kind: BlockEventKind::Completed,
        at_ms: entry.at_ms(),
        first,
        last,
        step: None,
        reason: None,
        group: None,
        places: Vec::new(),
        source: None,
    };
    match entry {
        HistoryEntry::Deadline { missed, .. } => BlockEntry {
            kind: match missed {
                true => BlockEventKind::DeadlineMissed,
                false => BlockEventKind::DeadlineMet,
            },
            ..base
        },
        HistoryEntry::TakenBack {
            source, emitted, ..
        } => BlockEntry {
            kind: match emitted {
                true => BlockEventKind::Stale,
                false => BlockEventKind::TakenBack,
            },
            source: Some(source.to_string()),
            ..base
        },
        HistoryEntry::TaskEnd(ended) => {
            let base = BlockEntry {
                step: Some(step(ended)),
                ..base
            };
            step_entry(&ended.outcome, base)
        }
    }
}

fn step_entry(outcome: &TaskOutcome, base: BlockEntry) -> BlockEntry {
    match outcome {
        TaskOutcome::Completed { .. } => base,
        TaskOutcome::Grouped { key } => BlockEntry {
            kind: BlockEventKind::Grouped,
            group: Some(key.clone()),
            ..base
        },
        TaskOutcome::Skipped { why } => BlockEntry {
            kind: BlockEventKind::Skipped,
            reason: Some(why.clone()),
            ..base
        },
        TaskOutcome::PassedOn { why } => BlockEntry {
            kind: BlockEventKind::PassedOn,
            reason: Some(why.clone()),
            ..base
        },
        TaskOutcome::Dropped => BlockEntry {
            kind: BlockEventKind::Dropped,
            ..base
        },
        TaskOutcome::Died { why } => BlockEntry {
            kind: BlockEventKind::DeadLettered,
            reason: Some(why.clone()),
            ..base
        },
        TaskOutcome::Emitted { places } => BlockEntry {
            kind: BlockEventKind::Emitted,
            places: places.clone(),
            ..base
        },
    }
}

fn step(step: &TaskEnd) -> BlockStep {
    let workers = match &step.outcome {
        TaskOutcome::Completed { by } => by.iter().map(|(name, at)| worker(name, *at)).collect(),
        _ => Vec::new(),
    };
    let begun = step.begun_ms.unwrap_or(step.ended_ms);
    BlockStep {
        task: step.task.to_string(),
        workers,
        accepted_ms: step.accepted_ms,
        waited_ms: begun.saturating_sub(step.accepted_ms),
        leased_ms: step
            .begun_ms
            .map(|begun| step.ended_ms.saturating_sub(begun)),
        ran_ms: step.ran_ms,
        recorded_ms: step
            .recorded_ms
            .map(|recorded| recorded.saturating_sub(step.ended_ms)),
        failed_attempts: step.failed,
        failures: step.failures.iter().map(failure).collect(),
    }
}

fn failure(failed: &FailedAttemptSummary) -> BlockFailure {
    BlockFailure {
        attempt: failed.attempt,
        worker: failed.worker.to_string(),
        at_ms: failed.at_ms,
        ran_ms: failed.ran_ms,
        reason: failed.reason.clone(),
    }
}
