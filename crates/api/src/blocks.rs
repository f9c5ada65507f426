//! What became of a block.

use proofmill_orchestrator::core::{BLOCKS_MAX, BlockState, BlockSummary, BlockView, LiveStep};
use proofmill_orchestrator::record::{FailedStep, Outcome, Past, StepRecord};
use serde::{Deserialize, Serialize};

use crate::operations::{OperationError, Operations, dead_summary, phase_name};
use crate::types::DeadSummary;

/// Entries of the history that are shown of one block, at most: the last ones.
const ENTRIES_SHOWN: usize = 2000;

/// Blocks, from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlocksQuery {
    /// The first.
    pub first: u64,
    /// The last, inclusive.
    pub last: u64,
}

/// What became of a block; all times are milliseconds since 1970-01-01 UTC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockStatus {
    /// In short.
    #[serde(flatten)]
    pub summary: BlockSummary,
    /// What there is to say about that, if anything.
    pub note: Option<String>,
    /// Its live tasks, and what each waits for.
    pub tasks: Vec<BlockTask>,
    /// Its dead letters.
    pub dead_letters: Vec<DeadSummary>,
    /// What is remembered of it, oldest first.
    pub history: Vec<BlockEntry>,
}

/// A live task of a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockTask {
    /// Its id, `STAGE/BLOCK/PART`.
    pub task: String,
    /// The last block that it spans.
    pub last: u64,
    /// `waiting`, `delayed`, `leased`, `held`, `queued` or `recording`.
    pub phase: String,
    /// What has to happen before it goes on, in words.
    pub waits_for: String,
    /// Who has it.
    pub workers: Vec<BlockWorker>,
    /// Failed attempts so far.
    pub failed_attempts: u32,
    /// When it was accepted.
    pub accepted_ms: u64,
}

/// A worker, and its attempt at a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockWorker {
    /// Its name.
    pub worker: String,
    /// The attempt, from 1.
    pub attempt: u32,
}

/// What happened to a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockEntry {
    /// What.
    pub what: Happened,
    /// When.
    pub at_ms: u64,
    /// The first block that it is about.
    pub first: u64,
    /// The last block that it is about, inclusive.
    pub last: u64,
    /// Of a task that has ended: how it went.
    pub step: Option<BlockStep>,
    /// Why, in words, where there is a reason.
    pub reason: Option<String>,
    /// Of a task that became part of a group: the group's key.
    pub group: Option<String>,
    /// Of an emission: the sinks that have it.
    pub places: Vec<String>,
    /// Of blocks that were taken back: the source.
    pub source: Option<String>,
}

/// What can happen to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Happened {
    /// Workers completed a task.
    Completed,
    /// A task became part of a group.
    Grouped,
    /// A task came too late for its group, and went on alone.
    PassedOn,
    /// A strategy or the sequencer had no use for a task.
    Skipped,
    /// An operator dropped a dead letter.
    Dropped,
    /// A task went to the dead-letter queue.
    Died,
    /// It left the workflow.
    Emitted,
    /// Its deadline was met.
    DeadlineMet,
    /// Its deadline passed.
    DeadlineMissed,
    /// Its source took it back.
    TakenBack,
    /// Its source took it back after it had been emitted.
    Stale,
}

/// How a task went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockStep {
    /// Its id, `STAGE/BLOCK/PART`.
    pub task: String,
    /// Who completed it.
    pub workers: Vec<BlockWorker>,
    /// When it was accepted.
    pub accepted_ms: u64,
    /// For how long it waited, from acceptance to the assignment that led to its result, or to its end
    /// where no worker ended it, milliseconds.
    pub waited_ms: u64,
    /// For how long that assignment lasted, milliseconds; `None` if no worker ended it.
    pub leased_ms: Option<u64>,
    /// For how long the executor itself ran, milliseconds.
    pub ran_ms: Option<u64>,
    /// Attempts that failed before.
    pub failed_attempts: u32,
    /// The last of them.
    pub failures: Vec<BlockFailure>,
}

/// A failed attempt, in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockFailure {
    /// Its number, from 1.
    pub attempt: u32,
    /// Who tried.
    pub worker: String,
    /// When it failed.
    pub at_ms: u64,
    /// How long it ran, milliseconds.
    pub ran_ms: u64,
    /// What went wrong.
    pub reason: String,
}

impl Operations {
    /// What became of a block.
    pub async fn block(&self, block: u64) -> Result<BlockStatus, OperationError> {
        let view = self.port().block(block).await?;
        Ok(status(view))
    }

    /// What became of blocks, in short.
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
    let surplus = view.past.len().saturating_sub(ENTRIES_SHOWN);
    BlockStatus {
        note: note(&view),
        tasks: view.live.iter().map(task).collect(),
        dead_letters: view.dead.iter().map(dead_summary).collect(),
        history: view.past[surplus..].iter().map(entry).collect(),
        summary: view.summary,
    }
}

/// What a person would ask next.
fn note(view: &BlockView) -> Option<String> {
    let block = view.summary.block;
    let from = |next: u64| match next > block {
        true => format!("is beyond it: after a restart it goes on with block {next}"),
        false => format!("has not come to it: after a restart it goes on with block {next}"),
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
            "what waits for it goes on when its message is submitted again, or a result of it to the \
             next queue"
                .to_owned(),
        ),
        _ if !view.is_remembered => Some(
            "how it went is not remembered any more: [history] in the workflow says how much is"
                .to_owned(),
        ),
        _ => None,
    }
}

fn task(live: &LiveStep) -> BlockTask {
    let view = &live.task;
    let workers = view.workers.iter();
    BlockTask {
        task: view.record.id.to_string(),
        last: view.record.last,
        phase: phase_name(&view.phase).to_owned(),
        waits_for: live.waits_for.clone(),
        workers: workers
            .map(|(name, attempt)| worker(name, *attempt))
            .collect(),
        failed_attempts: view.attempts.last().map_or(0, |attempt| attempt.number),
        accepted_ms: view.record.at_ms,
    }
}

fn worker(name: &str, attempt: u32) -> BlockWorker {
    BlockWorker {
        worker: name.to_owned(),
        attempt,
    }
}

fn entry(past: &Past) -> BlockEntry {
    let (first, last) = past.span();
    let blank = BlockEntry {
        what: Happened::Completed,
        at_ms: past.at_ms(),
        first,
        last,
        step: None,
        reason: None,
        group: None,
        places: Vec::new(),
        source: None,
    };
    match past {
        Past::Deadline { missed, .. } => BlockEntry {
            what: match missed {
                true => Happened::DeadlineMissed,
                false => Happened::DeadlineMet,
            },
            ..blank
        },
        Past::TakenBack {
            source, emitted, ..
        } => BlockEntry {
            what: match emitted {
                true => Happened::Stale,
                false => Happened::TakenBack,
            },
            source: Some(source.to_string()),
            ..blank
        },
        Past::Step(ended) => {
            let blank = BlockEntry {
                step: Some(step(ended)),
                ..blank
            };
            step_entry(&ended.outcome, blank)
        }
    }
}

fn step_entry(outcome: &Outcome, blank: BlockEntry) -> BlockEntry {
    match outcome {
        Outcome::Completed { .. } => blank,
        Outcome::Grouped { key } => BlockEntry {
            what: Happened::Grouped,
            group: Some(key.clone()),
            ..blank
        },
        Outcome::Skipped { why } => BlockEntry {
            what: Happened::Skipped,
            reason: Some(why.clone()),
            ..blank
        },
        Outcome::PassedOn { why } => BlockEntry {
            what: Happened::PassedOn,
            reason: Some(why.clone()),
            ..blank
        },
        Outcome::Dropped => BlockEntry {
            what: Happened::Dropped,
            ..blank
        },
        Outcome::Died { why } => BlockEntry {
            what: Happened::Died,
            reason: Some(why.clone()),
            ..blank
        },
        Outcome::Emitted { places } => BlockEntry {
            what: Happened::Emitted,
            places: places.clone(),
            ..blank
        },
    }
}

fn step(step: &StepRecord) -> BlockStep {
    let workers = match &step.outcome {
        Outcome::Completed { by } => by.iter().map(|(name, at)| worker(name, *at)).collect(),
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
        failed_attempts: step.failed,
        failures: step.failures.iter().map(failure).collect(),
    }
}

fn failure(failed: &FailedStep) -> BlockFailure {
    BlockFailure {
        attempt: failed.attempt,
        worker: failed.worker.to_string(),
        at_ms: failed.at_ms,
        ran_ms: failed.ran_ms,
        reason: failed.reason.clone(),
    }
}
