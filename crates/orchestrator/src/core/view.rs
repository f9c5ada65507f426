//! What can be asked of the core.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::event::Time;
use crate::id::TaskId;
use crate::record::{Attempt, Finish, TaskRecord};

/// Spans in [`Status::gaps`], at most.
pub const GAPS_MAX: usize = 16;

/// What a stage has seen since the log was new. After a crash `leased`, `retried`, `expired`, `hedged` and
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
    /// Messages that came to a collector after their group, or their blocks, had been emitted. They
    /// are dead, passed on alone or skipped, as the stage says.
    pub late: u64,
    /// Tasks that an operator dropped.
    pub dropped: u64,
    /// Failed attempts.
    pub failed: u64,
    /// Retries.
    pub retried: u64,
    /// Leases that ended for want of a heartbeat.
    pub expired: u64,
    /// Leases given beside another that lasts long.
    pub hedged: u64,
    /// Tasks that an operator cancelled.
    pub cancelled: u64,
    /// Results that came after another had won, or for no task.
    pub stale_results: u64,
    /// Tasks that went to the dead-letter queue.
    pub died: u64,
    /// Messages that the sequencer emitted.
    pub emitted: u64,
}

/// A stage at this moment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StageStatus {
    /// Its name.
    pub stage: Arc<str>,
    /// `dispatcher`, `collector` or `sequencer`.
    pub kind: Cow<'static, str>,
    /// Tasks that wait for a worker, for their backoff, or for their turn.
    pub waiting: usize,
    /// Tasks that workers have.
    pub leased: usize,
    /// Messages that a collector holds in unfinished groups.
    pub held: usize,
    /// Dead letters.
    pub dead: usize,
    /// The lowest block that is not finished here.
    pub lowest: Option<u64>,
    /// Counts.
    pub counters: Counters,
}

/// A process that keeps partitions of collectors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostStatus {
    /// Its name.
    pub host: Arc<str>,
    /// How many partitions it keeps, over all collectors.
    pub partitions: usize,
    /// Verdicts that it owes.
    pub owes: usize,
}

/// A worker that takes nothing for now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PausedWorker {
    /// Its name.
    pub worker: Arc<str>,
    /// Its group.
    pub group: Arc<str>,
    /// Reason for the pause, as the worker reports it: what its machine lacks.
    pub reason: Arc<str>,
}

/// The whole at this moment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    /// The workflow.
    pub workflow: Arc<str>,
    /// Each stage, in the order of the file.
    pub stages: Vec<StageStatus>,
    /// Live tasks: neither finished nor dead.
    pub live: usize,
    /// Dead letters.
    pub dead: usize,
    /// Workers that have joined.
    pub workers: usize,
    /// Those of them that take nothing for now, by name.
    pub paused: Vec<PausedWorker>,
    /// The next block that the sequencer will emit.
    pub next_block: Option<u64>,
    /// Blocks, first and last, that have not come to the sequencer while it has later ones: the
    /// lowest [`GAPS_MAX`] of such spans.
    pub gaps: Vec<(u64, u64)>,
    /// Processes that keep partitions of collectors; none: the coordinator does.
    pub hosts: Vec<HostStatus>,
    /// Producers that wait for room in a queue.
    pub producers_waiting: usize,
    /// Blocks that were done within their deadline.
    pub blocks_met: u64,
    /// Blocks that were not.
    pub blocks_missed: u64,
    /// Blocks that had been emitted when the chain that their source follows was reorganised.
    pub blocks_stale: u64,
    /// Whether the core leases nothing more.
    pub draining: bool,
}

/// What a live task is doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskPhase {
    /// Claimable.
    Waiting,
    /// Waits for its backoff, or was postponed.
    Delayed,
    /// A worker has it.
    Leased,
    /// A collector holds it.
    Held,
    /// Waits for lower blocks to be emitted.
    Queued,
    /// Its end, or a failed attempt, is being recorded.
    Recording,
}

/// A live task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TaskView {
    /// What was accepted.
    pub record: Arc<TaskRecord>,
    /// What it is doing.
    pub phase: TaskPhase,
    /// Who has it; of several, who was given it first.
    pub worker: Option<Arc<str>>,
    /// Everybody who has it, and the attempt of each, in the order in which they were given it.
    pub workers: Vec<(Arc<str>, u32)>,
    /// What the workers count as whose results are kept until there are as many as it takes.
    pub results: Vec<Arc<str>>,
    /// The workers that brought those.
    pub result_workers: Vec<Arc<str>>,
    /// Whether a worker is to get it now, besides those that have it.
    pub claimable: bool,
    /// Its failed attempts.
    pub attempts: Vec<Attempt>,
}

/// A worker that has joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerView {
    /// Its name.
    pub worker: Arc<str>,
    /// Its worker group.
    pub group: Arc<str>,
    /// The labels it has.
    pub labels: BTreeSet<String>,
    /// Bytes of memory it offers.
    pub memory: u64,
    /// Assignments that it works on at once (F_max).
    pub slots: usize,
    /// Whether it takes no new tasks.
    pub retired: bool,
    /// When it was last heard from.
    pub heard: Time,
    /// Leases that it holds: the task, the attempt, and the time at which the lease ends if it is
    /// not renewed.
    pub leases: Vec<(TaskId, u32, Time)>,
}

// === impl Counters ===

impl Counters {
    /// The counter of those that ended so.
    pub(super) fn of(&mut self, finish: &Finish) -> [Option<&mut u64>; 2] {
        match finish {
            Finish::Completed { .. } => [Some(&mut self.completed), None],
            Finish::Grouped { .. } => [Some(&mut self.grouped), None],
            Finish::Skipped { .. } => [Some(&mut self.skipped), None],
            Finish::Dropped => [Some(&mut self.dropped), None],
            Finish::Late {
                passed_on: true, ..
            } => [Some(&mut self.late), None],
            Finish::Late { .. } => [Some(&mut self.late), Some(&mut self.skipped)],
        }
    }

    /// The counters of those that died, as members that came too late, or otherwise.
    pub(super) fn of_dead(&mut self, late: bool) -> [Option<&mut u64>; 2] {
        [Some(&mut self.died), late.then_some(&mut self.late)]
    }
}
