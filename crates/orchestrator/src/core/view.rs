//! What can be asked of the core.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::event::Time;
use super::ready::ReadyQueue;
use super::state::{Change, Core, Phase, Task, Worker};
use crate::id::TaskId;
use crate::plan::StageKind;
use crate::record::{Attempt, DeadRecord, Finish, TaskRecord};

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
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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
#[derive(Clone, Debug)]
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

impl Core {
    /// The workers that have joined, by name.
    pub fn workers(&self) -> Vec<WorkerView> {
        let view = |(name, worker): (&Arc<str>, &Worker)| {
            let held = worker.batches.values().flatten();
            let held = held.filter_map(|no| self.tasks.get(no)).flat_map(|task| {
                let copies = task.copies.iter().filter(|held| held.worker == *name);
                copies.map(|held| (task.record.id.clone(), held.attempt, held.expires))
            });
            WorkerView {
                worker: name.clone(),
                group: self.groups[worker.group].clone(),
                labels: worker.labels.clone(),
                memory: worker.memory,
                slots: worker.slots,
                retired: worker.retired,
                heard: worker.heard,
                leases: held.collect(),
            }
        };
        self.workers.iter().map(view).collect()
    }

    /// The hosts that have joined, and the session of each.
    pub fn host_sessions(&self) -> BTreeMap<Arc<str>, u64> {
        let hosts = self.hosts.iter();
        hosts
            .map(|(name, host)| (name.clone(), host.session))
            .collect()
    }

    /// The whole at this moment.
    pub fn status(&self) -> Status {
        let stages: Vec<StageStatus> = self
            .plan
            .stages
            .iter()
            .enumerate()
            .map(|(ix, stage)| StageStatus {
                stage: stage.name.clone(),
                kind: Cow::Borrowed(match stage.kind {
                    StageKind::Dispatcher(_) => "dispatcher",
                    StageKind::Collector(_) => "collector",
                    StageKind::Sequencer { .. } => "sequencer",
                }),
                waiting: self.waiting[ix].total(),
                leased: self.leased[ix].total(),
                held: self.held[ix],
                dead: self.buried[ix],
                lowest: self.present[ix].lowest(),
                counters: self.counters[ix],
            })
            .collect();
        let (blocks_met, blocks_missed) = self.deadlines();
        Status {
            blocks_met,
            blocks_missed,
            blocks_stale: self.blocks_stale,
            workflow: self.plan.workflow.clone(),
            stages,
            live: self.tasks.len(),
            dead: self.dead.len(),
            workers: self.workers.len(),
            paused: self.paused_workers(),
            hosts: self.hosts_status(),
            next_block: self.plan.sequencer().map(|_| self.cursor),
            gaps: self.gaps(),
            producers_waiting: self.parked.values().map(BTreeMap::len).sum(),
            draining: self.draining,
        }
    }

    fn gaps(&self) -> Vec<(u64, u64)> {
        let mut next = self.emit_next;
        let mut gaps = Vec::new();
        for ((first, _), no) in &self.emission {
            if gaps.len() == GAPS_MAX {
                break;
            }
            if *first > next {
                gaps.push((next, *first - 1));
            }
            let last = self.tasks.get(no).map_or(*first, |task| task.record.last);
            next = next.max(last.saturating_add(1));
        }
        gaps
    }

    fn paused_workers(&self) -> Vec<PausedWorker> {
        let workers = self.workers.iter().filter_map(|(name, worker)| {
            Some(PausedWorker {
                worker: name.clone(),
                group: self.groups[worker.group].clone(),
                reason: worker.paused.clone()?,
            })
        });
        let mut paused: Vec<PausedWorker> = workers.collect();
        paused.sort_by(|a, b| a.worker.cmp(&b.worker));
        paused
    }

    /// Live tasks for which `keep` holds, by stage, block and part.
    pub fn tasks(&self, keep: impl Fn(&TaskRecord) -> bool) -> Vec<TaskView> {
        let mut views: Vec<TaskView> = self
            .tasks
            .values()
            .filter(|task| keep(&task.record))
            .map(task_view)
            .collect();
        views.sort_by(|a, b| a.record.id.cmp(&b.record.id));
        views
    }

    /// The dead letters, by stage, block and part.
    pub fn dead_letters(&self) -> impl Iterator<Item = &DeadRecord> {
        self.dead.values().map(|(dead, _)| dead)
    }

    /// The dead letter of a task.
    pub fn dead_letter(&self, id: &TaskId) -> Option<&DeadRecord> {
        self.dead.get(id).map(|(dead, _)| dead)
    }

    /// Whether the task was completed, grouped, skipped or dropped, as far as is remembered.
    pub fn has_finished(&self, id: &TaskId, last: u64) -> bool {
        self.stage_of(id)
            .is_some_and(|stage| self.is_finished(stage, id, last))
    }

    /// Where a source goes on: the block after the last that it recorded.
    pub fn source_next(&self, source: &str) -> Option<u64> {
        self.sources.get(source).copied()
    }

    /// Whether nothing moves until something comes from outside: no task is leased, delayed, being
    /// recorded or emitted, and none is claimable but those that a full queue keeps back. Messages
    /// that a collector holds or that wait for a lower block, and dead letters, may be left; and
    /// where a dead letter blocks the way, so may claimable tasks and producers that wait.
    pub fn is_idle(&self) -> bool {
        self.pending.is_empty()
            && self
                .collectors
                .iter()
                .flatten()
                .all(|collector| collector.deadlines.is_empty())
            && self.hosts.values().all(|host| host.owes == 0)
            && self.moving
                == self.ready.iter().map(ReadyQueue::len).sum::<usize>()
                    + self.begun.iter().map(BTreeSet::len).sum::<usize>()
            && self.begun.iter().flatten().all(|priority| {
                let task = self.tasks.get(&priority.no);
                task.is_some_and(|task| {
                    task.copies.is_empty() && self.is_gated(task.stage, priority.block)
                })
            })
            && self
                .ready
                .iter()
                .flat_map(ReadyQueue::heads)
                .all(|(class, head)| self.is_gated(class.0, head.block))
    }

    /// Whether nothing is under way: no task is leased, being recorded or being emitted. What
    /// waits for a worker still waits; this is what a drain comes to.
    pub fn is_drained(&self) -> bool {
        self.pending.is_empty()
            && self.emitting.is_empty()
            && self.leased.iter().all(|leased| leased.total() == 0)
    }

    /// Every blob that may still be named here: by a live task, one of its results or a dead letter,
    /// by what is on its way to the log, and by what producers have brought and no queue has room
    /// for yet.
    pub fn live_blobs(&self) -> HashSet<[u8; 32]> {
        let live = self.tasks.values().map(|task| &task.record.payload);
        let dead = self.dead.values().map(|(dead, _)| &dead.task.payload);
        let mut blobs = HashSet::new();
        let parts = self.tasks.values().flat_map(|task| task.parts.values());
        let parts = parts.map(|part| &part.payload);
        let parked = self.parked.values().flat_map(|submits| submits.values());
        let brought = parked.chain(&self.deferred);
        let brought = brought.map(|submit| &submit.message.payload);
        let changes = self.pending.values().flat_map(|pending| &pending.changes);
        let coming = changes.filter_map(|(_, change)| match change {
            Change::Put { record, .. } => record.payload(),
            Change::Delete => None,
        });
        let recorded = live.chain(dead).chain(parts);
        for payload in recorded.chain(brought).chain(coming) {
            payload.each_blob(&mut |digest| {
                blobs.insert(*digest);
            });
        }
        blobs
    }
}

pub(super) fn task_view(task: &Task) -> TaskView {
    TaskView {
        record: task.record.clone(),
        phase: match &task.phase {
            Phase::Ready | Phase::Delayed { .. } | Phase::Recording if !task.copies.is_empty() => {
                TaskPhase::Leased
            }
            Phase::New | Phase::Ready => TaskPhase::Waiting,
            Phase::Delayed { .. } => TaskPhase::Delayed,
            Phase::Leased => TaskPhase::Leased,
            Phase::Held => TaskPhase::Held,
            Phase::Queued | Phase::Emitting => TaskPhase::Queued,
            Phase::Recording | Phase::Finishing => TaskPhase::Recording,
        },
        worker: task.copies.first().map(|held| held.worker.clone()),
        workers: task
            .copies
            .iter()
            .map(|held| (held.worker.clone(), held.attempt))
            .collect(),
        results: task.parts.keys().cloned().collect(),
        result_workers: task
            .parts
            .values()
            .map(|part| part.worker.clone())
            .collect(),
        claimable: task.phase == Phase::Ready,
        attempts: task.attempts.clone(),
    }
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
