//! Answers to what is asked of the core.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use super::{Change, Core, Phase, Task, Worker};
use crate::core::ready::ReadyQueue;
use crate::core::view::{
    GAPS_MAX, PausedWorker, StageStatus, Status, TaskPhase, TaskView, WorkerView,
};
use crate::id::TaskId;
use crate::plan::StageKind;
use crate::record::{DeadRecord, TaskRecord};

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
