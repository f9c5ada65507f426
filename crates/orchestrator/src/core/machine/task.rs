//! Phase changes of tasks, and the updates of other parts that they require.

use super::{Core, OnAccepted};
use crate::conversation::{LeaseRef, WorkerCommand};
use crate::core::change::Change;
use crate::core::event::Settled;
use crate::core::limits::{REASON_MAX, truncate};
use crate::core::tasks::{ActiveLease, Phase, Task, TaskNo};
use crate::id::{Part, TaskId, WorkerId};
use crate::plan::StageKind;
use crate::record::{Attempt, DeadRecord, Record, RecordKey};
use crate::traces::AttemptEnd;

impl Core {
    /// Enters a new task into its stage.
    pub(super) fn enter(&mut self, no: TaskNo) {
        if !self.started {
            return;
        }
        let Some(task) = self.tasks.get(no) else {
            return;
        };
        let stage = task.stage();
        if task.phase() != Phase::New || self.is_given_up(no) {
            return;
        }
        match self.plan.stage(stage).kind {
            StageKind::Dispatcher(_) => {
                if !self.resume_backoff(no) {
                    self.set_phase(no, Phase::Ready);
                }
            }
            StageKind::Collector(_) => self.offer(no),
            StageKind::Sequencer { .. } => self.set_phase(no, Phase::Queued),
        }
    }

    pub(super) fn set_phase(&mut self, no: TaskNo, phase: Phase) {
        let before = self.tasks.set_phase(no, phase);
        if before == Some(Phase::Held) && phase != Phase::Held {
            let stage = self.tasks[no].stage();
            self.collectors.unfile(stage, no);
        }
    }

    /// Handles the end of a task's backoff or postponement.
    pub(super) fn wake(&mut self, no: TaskNo) {
        let Some(task) = self.tasks.get(no) else {
            return;
        };
        if !matches!(task.phase(), Phase::Delayed { until } if until <= self.now.mono) {
            return;
        }
        if self.plan.stage(task.stage()).collector().is_some() {
            self.set_phase(no, Phase::New);
            self.enter(no);
        } else {
            // A late result may have replaced the missing one.
            self.set_phase(no, Phase::Ready);
            self.update_after_copy(no);
        }
    }

    /// Ends a worker's copy of the task.
    pub(super) fn end_copy(
        &mut self,
        no: TaskNo,
        worker: &WorkerId,
        end: impl FnOnce() -> AttemptEnd,
    ) {
        if let Some(ended) = self.tasks.end_copy(no, worker) {
            self.take_copy(no, &ended, end());
        }
    }

    /// Ends all copies of the task, and cancels them at their workers, except the copy (`by`) whose result
    /// has come.
    pub(super) fn end_copies(&mut self, no: TaskNo, by: Option<(&WorkerId, u32)>) {
        let ended = self.tasks.end_copies(no);
        let Some(id) = self.tasks.get(no).map(|task| task.id().clone()) else {
            return;
        };
        for held in ended {
            let is_by = by == Some((held.worker(), held.attempt()));
            let end = match is_by {
                true => AttemptEnd::Completed,
                false => AttemptEnd::Cancelled,
            };
            self.take_copy(no, &held, end);
            if !is_by {
                self.cancel_copy(&held, &id);
            }
        }
    }

    /// Takes a copy that has ended from its worker, and reports its end.
    fn take_copy(&mut self, no: TaskNo, held: &ActiveLease, end: AttemptEnd) {
        let (worker, batch) = (held.worker(), held.batch());
        self.workers.take(worker, batch, no, &end, self.now.mono);
        self.trace_lease(no, held, end);
    }

    /// Tells a worker that its copy of a task is no longer wanted.
    pub(super) fn cancel_copy(&mut self, held: &ActiveLease, id: &TaskId) {
        let lease = LeaseRef {
            task: id.clone(),
            attempt: held.attempt(),
            tag: held.tag(),
        };
        self.tell_worker(held.worker(), WorkerCommand::Cancel(lease));
    }

    /// Sets the phase after a copy has ended: claimable if workers are missing, unless the task waits for a
    /// record.
    pub(super) fn update_after_copy(&mut self, no: TaskNo) {
        let Some(task) = self.tasks.get(no) else {
            return;
        };
        if !matches!(task.phase(), Phase::Ready | Phase::Leased) {
            return;
        }
        if !self.dead_letter_if_hopeless(no) {
            let phase = match self.tasks[no].workers_missing() {
                0 => Phase::Leased,
                _ => Phase::Ready,
            };
            self.set_phase(no, phase);
        }
    }

    /// Moves a task to the dead-letter queue if it cannot be completed any more. Returns whether it did.
    pub(super) fn dead_letter_if_hopeless(&mut self, no: TaskNo) -> bool {
        let Some(task) = self.tasks.get(no) else {
            return false;
        };
        if task.can_complete() {
            return false;
        }
        let attempts = task.attempts().to_vec();
        let mut permanent = attempts.iter().filter(|attempt| attempt.failure.permanent);
        let reason = match (permanent.next(), attempts.last()) {
            (Some(attempt), _) => format!("permanent failure: {}", attempt.failure.reason),
            (None, last) => {
                let last = last.map_or("", |attempt| &attempt.failure.reason);
                format!("{} attempts failed; last: {last}", task.failed_count())
            }
        };
        self.dead_letter_task(no, reason, attempts);
        true
    }

    /// Moves a live task to the dead-letter queue.
    pub(super) fn dead_letter_task(&mut self, no: TaskNo, reason: String, attempts: Vec<Attempt>) {
        self.dead_letter_task_as(no, reason, attempts, false);
    }

    /// Moves a live task to the dead-letter queue; `late` if it came too late for its group.
    pub(super) fn dead_letter_task_as(
        &mut self,
        no: TaskNo,
        mut reason: String,
        attempts: Vec<Attempt>,
        late: bool,
    ) {
        let Some(task) = self.tasks.get(no) else {
            return;
        };
        let id = task.id().clone();
        let settled = Settled::without_result(task.record());
        truncate(&mut reason, REASON_MAX);
        let dead = DeadRecord {
            task: (**task.record()).clone(),
            reason,
            attempts,
            at_ms: self.now.wall_ms,
            late,
        };
        let mut changes = vec![
            (RecordKey::Dead(id.clone()), Change::put(Record::Dead(dead))),
            (RecordKey::Task(id.clone()), Change::Delete),
            (RecordKey::Attempts(id), Change::Delete),
        ];
        changes.extend(forget_parts(task));
        self.end_copies(no, None);
        self.set_phase(no, Phase::Finishing);
        self.append(changes, OnAccepted::Settled(vec![settled]));
    }
}

/// Changes that remove the results and the attempts record of a task that ends.
pub(super) fn forget_parts(task: &Task) -> Vec<(RecordKey, Change)> {
    let id = task.id();
    let parts = task.results().keys().map(|name| {
        let key = RecordKey::PartialResult(id.clone(), Part::from_text(name));
        (key, Change::Delete)
    });
    let run = (RecordKey::Run(id.clone()), Change::Delete);
    parts.chain(task.is_run_recorded().then_some(run)).collect()
}
