//! Types of the answers to queries about the core.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::event::Time;
use super::scaling::PoolStatus;
use crate::id::TaskId;
use crate::record::{Attempt, EndKind, PauseRecord, TaskRecord};

/// Maximum number of spans in [`Status::gaps`].
pub const GAPS_MAX: usize = 16;

/// Counts of a stage since the log was new. After a crash `leased`, `retried`, `expired`, `hedged` and
/// `stale_results` may lack their last seconds; the others are exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Tasks accepted.
    pub accepted: u64,
    /// Leases given.
    pub leased: u64,
    /// Tasks that a worker completed.
    pub completed: u64,
    /// Tasks that became part of a group.
    pub grouped: u64,
    /// Tasks consumed without effect.
    pub skipped: u64,
    /// Messages that reached a collector after their group, or their blocks, had been emitted. The stage's
    /// `late` setting decides whether they die, are passed on alone or are skipped.
    pub late: u64,
    /// Tasks that an operator dropped.
    pub dropped: u64,
    /// Failed attempts.
    pub failed: u64,
    /// Retries.
    pub retried: u64,
    /// Leases that ended because no heartbeat renewed them.
    pub expired: u64,
    /// Additional leases for tasks whose lease lasts unusually long.
    pub hedged: u64,
    /// Tasks that an operator cancelled.
    pub cancelled: u64,
    /// Results that came after another had won, or that match no leased task.
    pub stale_results: u64,
    /// Tasks that went to the dead-letter queue.
    pub died: u64,
    /// Messages that the sequencer emitted.
    pub emitted: u64,
}

/// State of a stage.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StageStatus {
    /// Name of the stage.
    pub stage: Arc<str>,
    /// `dispatcher`, `collector` or `sequencer`.
    pub kind: Cow<'static, str>,
    /// Tasks that no worker has and that wait for a worker, for their backoff, or for their turn.
    pub waiting: usize,
    /// Tasks that at least one worker has.
    pub leased: usize,
    /// Messages that a collector holds in unfinished groups.
    pub held: usize,
    /// Dead letters.
    pub dead: usize,
    /// Lowest first block of the stage's live tasks; `None` if it has none.
    pub lowest: Option<u64>,
    /// Acceptance of the live task that the stage has had for longest, in milliseconds since 1970-01-01 UTC; `None` if it
    /// has none.
    pub oldest_ms: Option<u64>,
    /// Counts since the log was new.
    pub counters: Counters,
}

/// Position of a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceStatus {
    /// Name of the source.
    pub source: Arc<str>,
    /// Next block that it will bring; the next line for a source of lines.
    pub next: u64,
}

/// State of a host: a process that keeps partitions of collectors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostStatus {
    /// Name of the host.
    pub host: Arc<str>,
    /// Number of partitions that the host keeps, over all collectors.
    pub partitions: usize,
    /// Verdicts that the host has been asked for and has not sent.
    #[serde(rename = "owes")]
    pub pending_verdicts: usize,
}

/// A worker that takes no tasks for now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PausedWorker {
    /// Name of the worker.
    pub worker: Arc<str>,
    /// Worker group.
    pub group: Arc<str>,
    /// Reason for the pause, as the worker reports it: the resource that its machine lacks.
    pub reason: Arc<str>,
}

/// A user of the bus whose workers get no tasks, since one of them has sent a false result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DistrustedUser {
    /// Worker group and user, `GROUP.USER`; the worker's name for a worker in the coordinator's process.
    pub user: Arc<str>,
    /// Fault of the result.
    pub reason: Arc<str>,
}

/// State of the whole workflow.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    /// Name of the workflow.
    pub workflow: Arc<str>,
    /// Stages, in the order of the workflow file.
    pub stages: Vec<StageStatus>,
    /// Live tasks: neither finished nor dead.
    pub live: usize,
    /// Dead letters.
    pub dead: usize,
    /// Workers that have joined.
    pub workers: usize,
    /// Joined workers that take no tasks for now, by name.
    pub paused: Vec<PausedWorker>,
    /// Users whose workers get no tasks, by name.
    pub distrusted: Vec<DistrustedUser>,
    /// Stages, sources and workers that an operator has paused.
    pub pauses: Vec<PauseRecord>,
    /// Next block that the sequencer will emit; `None` if the workflow has no sequencer.
    pub next_block: Option<u64>,
    /// Sources that have recorded a position, by name.
    pub sources: Vec<SourceStatus>,
    /// Spans of blocks, first and last, that have not reached the sequencer while later ones have: the lowest
    /// [`GAPS_MAX`] of them, as far as the first 4,096 messages that wait there show them.
    pub gaps: Vec<(u64, u64)>,
    /// Processes that keep partitions of collectors; empty if the coordinator evaluates all strategies
    /// itself.
    pub hosts: Vec<HostStatus>,
    /// Messages of producers that wait for room in a queue, or for an operator to resume their source.
    pub producers_waiting: usize,
    /// Blocks that were done within their deadline.
    pub blocks_met: u64,
    /// Blocks whose deadline passed before they were done.
    pub blocks_missed: u64,
    /// Blocks that had been emitted when a reorganisation of the chain took them back.
    pub blocks_stale: u64,
    /// Whether the core drains: it leases nothing more.
    pub draining: bool,
    /// Pools of workers: how many each has and should have. Empty if it is not computed.
    pub scaling: Vec<PoolStatus>,
}

/// State of a live task, as shown to users.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskPhase {
    /// Claimable.
    Waiting,
    /// Waits for its backoff, or for the delay of the strategy that postponed it.
    Delayed,
    /// A worker has the task.
    Leased,
    /// A collector holds it.
    Held,
    /// Waits for lower blocks to be emitted.
    Queued,
    /// The end of the task, or a failed attempt, is being written to the log.
    Recording,
}

/// A live task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TaskView {
    /// Record of the task, as accepted.
    pub record: Arc<TaskRecord>,
    /// State of the task.
    pub phase: TaskPhase,
    /// Worker that has the task; if several have it, the one that was given it first.
    pub worker: Option<Arc<str>>,
    /// All workers that have the task, each with its attempt number, in the order of assignment.
    pub workers: Vec<(Arc<str>, u32)>,
    /// Distinct names of the workers whose results are kept until the stage's `accept` count is reached.
    pub results: Vec<Arc<str>>,
    /// Workers that sent those results, in the same order.
    pub result_workers: Vec<Arc<str>>,
    /// Whether the task is to be leased to a worker now, besides those that have it.
    pub claimable: bool,
    /// Failed attempts that are kept.
    pub attempts: Vec<Attempt>,
}

/// A worker that has joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerView {
    /// Name of the worker.
    pub worker: Arc<str>,
    /// Worker group.
    pub group: Arc<str>,
    /// Labels that the worker offers.
    pub labels: BTreeSet<String>,
    /// Memory that the worker offers, bytes.
    pub memory: u64,
    /// Maximum number of concurrent assignments (F_max).
    pub slots: usize,
    /// Whether the worker takes no new tasks.
    pub retired: bool,
    /// Time of the worker's last message.
    pub heard: Time,
    /// Leases that the worker holds: the task, the attempt, and the time at which the lease ends unless it is
    /// renewed.
    pub leases: Vec<(TaskId, u32, Time)>,
}

// === impl Counters ===

impl Counters {
    /// Counters to increment for a task that finished in this way.
    pub(super) fn of(&mut self, end: &EndKind) -> [Option<&mut u64>; 2] {
        match end {
            EndKind::Completed { .. } => [Some(&mut self.completed), None],
            EndKind::Grouped { .. } => [Some(&mut self.grouped), None],
            EndKind::Skipped { .. } => [Some(&mut self.skipped), None],
            EndKind::Dropped => [Some(&mut self.dropped), None],
            EndKind::Late {
                passed_on: true, ..
            } => [Some(&mut self.late), None],
            EndKind::Late { .. } => [Some(&mut self.late), Some(&mut self.skipped)],
        }
    }

    /// Counters to increment for a task that died; `late` if it came too late for its group.
    pub(super) fn of_dead(&mut self, late: bool) -> [Option<&mut u64>; 2] {
        [Some(&mut self.died), late.then_some(&mut self.late)]
    }
}
