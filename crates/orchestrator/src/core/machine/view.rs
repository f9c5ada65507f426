//! Answers to queries about the whole state.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::Core;
use crate::core::change::Change;
use crate::core::tasks::{ActiveLease, Phase, Task};
use crate::core::view::{
    DistrustedUser, GAPS_MAX, PausedWorker, SourceStatus, StageStatus, Status, TaskPhase, TaskView,
    WorkerView,
};
use crate::core::workers::Worker;
use crate::id::{TaskId, WorkerId};
use crate::plan::StageIx;
use crate::record::{DeadRecord, TaskRecord};

/// Maximum number of messages in front of the sequencer that are looked at for gaps.
const QUEUED_EXAMINED_MAX: usize = 4096;

impl Core {
    /// The workers that have joined, by name.
    pub fn workers(&self) -> Vec<WorkerView> {
        let view = |(name, worker): (&Arc<str>, &Worker)| {
            let held = self.leases_of(name, worker);
            let held = held.map(|(task, held)| (task.id().clone(), held.attempt(), held.expires()));
            WorkerView {
                worker: name.clone(),
                group: self.layout.groups()[worker.group()].clone(),
                labels: worker.labels().clone(),
                memory: worker.memory(),
                slots: worker.slots(),
                retired: worker.is_retired(),
                heard: worker.heard(),
                leases: held.collect(),
            }
        };
        self.workers.iter().map(view).collect()
    }

    /// Whether a worker has joined, and has not been forgotten since.
    pub fn knows_worker(&self, worker: &WorkerId) -> bool {
        self.workers.get(worker).is_some()
    }

    /// The leases that a worker holds.
    pub(super) fn leases_of<'a>(
        &'a self,
        name: &'a WorkerId,
        worker: &'a Worker,
    ) -> impl Iterator<Item = (&'a Task, &'a ActiveLease)> {
        let tasks = worker.tasks().filter_map(|no| self.tasks.get(no));
        tasks.flat_map(move |task| {
            let copies = task
                .copies()
                .iter()
                .filter(move |held| held.worker() == name);
            copies.map(move |held| (task, held))
        })
    }

    /// The hosts that have joined, with the session of each.
    pub fn host_sessions(&self) -> BTreeMap<Arc<str>, u64> {
        self.hosts.sessions()
    }

    /// State of the whole workflow.
    pub fn status(&self) -> Status {
        let stages = self.plan.stages.iter().enumerate();
        let stages = stages.map(|(ix, plan)| {
            let stage = StageIx(ix);
            let counts = self.stage_counts(stage, None);
            StageStatus {
                stage: plan.name.clone(),
                kind: self.stage_kind(stage),
                waiting: counts.waiting,
                leased: counts.leased,
                held: counts.held,
                dead: counts.dead,
                lowest: self.tasks.present(stage).lowest(),
                oldest_ms: self.tasks.oldest(stage).map(|task| task.record().at_ms),
                counters: self.counts.of(stage),
            }
        });
        let sources = self.sources.positions();
        let sources = sources.map(|(source, next)| SourceStatus {
            source: source.clone(),
            next,
        });
        let totals = self.counts.totals();
        Status {
            blocks_met: totals.met,
            blocks_missed: totals.missed,
            blocks_stale: totals.stale,
            workflow: self.plan.workflow.clone(),
            stages: stages.collect(),
            live: self.tasks.len(),
            dead: self.dead.len(),
            workers: self.workers.len(),
            paused: self.paused_workers(),
            distrusted: self.distrusted_users(),
            pauses: self
                .pauses
                .iter()
                .chain(self.workers.drains())
                .cloned()
                .collect(),
            hosts: self.hosts.status(),
            next_block: self.plan.sequencer().map(|_| self.sequencer.cursor()),
            sources: sources.collect(),
            gaps: self.gaps(),
            producers_waiting: self.submissions.parked() + self.submissions.held(),
            draining: self.draining,
            scaling: self.scaling.status(),
        }
    }

    fn gaps(&self) -> Vec<(u64, u64)> {
        let mut next = self.sequencer.next();
        let mut gaps = Vec::new();
        for (first, last) in self.tasks.queued().take(QUEUED_EXAMINED_MAX) {
            if gaps.len() == GAPS_MAX {
                break;
            }
            if first > next {
                gaps.push((next, first - 1));
            }
            next = next.max(last.saturating_add(1));
        }
        gaps
    }

    fn distrusted_users(&self) -> Vec<DistrustedUser> {
        let view = |(user, reason): (&Arc<str>, &Arc<str>)| DistrustedUser {
            user: user.clone(),
            reason: reason.clone(),
        };
        self.workers.distrusted().map(view).collect()
    }

    fn paused_workers(&self) -> Vec<PausedWorker> {
        let workers = self.workers.iter().filter_map(|(name, worker)| {
            Some(PausedWorker {
                worker: name.clone(),
                group: self.layout.groups()[worker.group()].clone(),
                reason: worker.paused()?.clone(),
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
            .iter()
            .filter(|task| keep(task.record()))
            .map(task_view)
            .collect();
        views.sort_by(|a, b| a.record.id.cmp(&b.record.id));
        views
    }

    /// The dead letters, by stage, block and part.
    pub fn dead_letters(&self) -> impl Iterator<Item = &DeadRecord> {
        self.dead.iter()
    }

    /// The dead letter of a task.
    pub fn dead_letter(&self, id: &TaskId) -> Option<&DeadRecord> {
        self.dead.get(id)
    }

    /// Whether the task was completed, grouped, skipped or dropped, as far as marks reach back.
    pub fn has_finished(&self, id: &TaskId, last: u64) -> bool {
        self.layout
            .stage_of(id)
            .is_some_and(|stage| self.is_finished(stage, id, last))
    }

    /// Position of a source: the block after the last that it recorded.
    pub fn source_next(&self, source: &str) -> Option<u64> {
        self.sources.position(source)
    }

    /// Whether nothing moves until an input from outside: no task is leased, delayed, being recorded or being
    /// emitted, and the claimable ones are all held back by a full queue. Messages that a collector holds or
    /// that wait for a lower block, and dead letters, may be left. If a dead letter blocks the way, claimable
    /// tasks and waiting producers may be left too. While a paused stage has work, something is still to come.
    pub fn is_idle(&self) -> bool {
        self.appends.is_empty()
            && self.collectors.is_untimed()
            && self.hosts.none_pending()
            && self.tasks.only_claimable_move()
            && (0..self.layout.groups().len()).all(|group| self.is_kept_back(group))
            && !self.has_paused_work()
    }

    /// Whether a full queue keeps back every claimable task of a worker group.
    fn is_kept_back(&self, group: usize) -> bool {
        let mut partially_assigned = self.tasks.partially_assigned(group);
        let partially_assigned = partially_assigned.all(|priority| {
            let task = self.tasks.get(priority.no());
            task.is_some_and(|task| {
                task.copies().is_empty() && self.is_gated(task.stage(), priority.block())
            })
        });
        let mut heads = self.tasks.heads(group);
        partially_assigned && heads.all(|(class, head)| self.is_gated(class.0, head.block()))
    }

    /// Whether no work is under way: no task is leased, being recorded or being emitted. Tasks may still wait
    /// for a worker. A drain ends in this state.
    pub fn is_drained(&self) -> bool {
        let mut stages = (0..self.layout.stages()).map(StageIx);
        self.appends.is_empty()
            && self.sequencer.is_idle()
            && stages.all(|stage| self.tasks.leased(stage).total() == 0)
    }

    /// Digests of all blobs that the state may still refer to: through a live task, one of its results, a
    /// dead letter, a pending append, or a producer's message that waits.
    pub fn live_blobs(&self) -> HashSet<[u8; 32]> {
        let live = self.tasks.iter().map(|task| &task.record().payload);
        let dead = self.dead.iter().map(|dead| &dead.task.payload);
        let mut blobs = HashSet::new();
        let results = self.tasks.iter().flat_map(|task| task.results().values());
        let results = results.map(|result| &result.payload);
        let brought = self.submissions.iter();
        let brought = brought.map(|submission| &submission.submit().message.payload);
        let coming = self.appends.changes();
        let coming = coming.filter_map(|(_, change)| match change {
            Change::Put { record, .. } => record.payload(),
            Change::Delete => None,
        });
        let recorded = live.chain(dead).chain(results);
        for payload in recorded.chain(brought).chain(coming) {
            payload.each_blob(&mut |digest| {
                blobs.insert(*digest);
            });
        }
        blobs
    }
}

/// State of a live task, as shown to users.
pub(super) fn phase_of(task: &Task) -> TaskPhase {
    match task.phase() {
        Phase::Ready | Phase::Delayed { .. } | Phase::Recording if !task.copies().is_empty() => {
            TaskPhase::Leased
        }
        Phase::New | Phase::Ready => TaskPhase::Waiting,
        Phase::Delayed { .. } => TaskPhase::Delayed,
        Phase::Leased => TaskPhase::Leased,
        Phase::Held => TaskPhase::Held,
        Phase::Queued | Phase::Emitting => TaskPhase::Queued,
        Phase::Recording | Phase::Finishing => TaskPhase::Recording,
    }
}

pub(super) fn task_view(task: &Task) -> TaskView {
    let copies = task.copies();
    let workers = copies
        .iter()
        .map(|held| (held.worker().clone(), held.attempt()));
    let results = task.results();
    let result_workers = results.values().map(|part| part.worker.clone());
    TaskView {
        record: task.record().clone(),
        phase: phase_of(task),
        worker: copies.first().map(|held| held.worker().clone()),
        workers: workers.collect(),
        results: results.keys().cloned().collect(),
        result_workers: result_workers.collect(),
        claimable: task.phase() == Phase::Ready,
        attempts: task.attempts().to_vec(),
    }
}
