//! Failed attempts: each is recorded, then the task is retried or dies.

use std::sync::Arc;

use super::trace::end_of;
use super::{Core, OnAccepted};
use crate::conversation::{WorkerCommand, WorkerFailure};
use crate::core::change::Change;
use crate::core::event::TaskReportKind;
use crate::core::limits::fit;
use crate::core::tasks::{Phase, TaskNo};
use crate::core::timers::Timer;
use crate::id::{TaskId, WorkerId};
use crate::record::{Attempt, Failure, Record, RecordKey};

impl Core {
    pub(super) fn fail(&mut self, fail: WorkerFailure) {
        self.workers.hear(&fail.worker, self.now.mono);
        if let Some(no) = self.held_under(&fail.worker, &fail.lease) {
            self.attempt_failed(no, &fail.worker, &fail.failure);
            let attempt = fail.lease.attempt;
            self.tasks.note_reported(no, &fail.worker, attempt);
        } else {
            self.tell_worker(&fail.worker, WorkerCommand::Cancel(fail.lease));
        }
    }

    /// Ends a worker's copy after a failed attempt and records the failure. The other copies go on. The task
    /// dies when no further attempt is allowed and the remaining copies are too few.
    pub(super) fn attempt_failed(&mut self, no: TaskNo, worker: &WorkerId, failure: &Failure) {
        self.end_copy(no, worker, || end_of(failure));
        self.record_failure(no, worker, failure);
    }

    /// Records a failed attempt.
    pub(super) fn record_failure(&mut self, no: TaskNo, worker: &WorkerId, failure: &Failure) {
        let Some(task) = self.tasks.get(no) else {
            return;
        };
        if self.plan.stage(task.stage()).dispatcher().is_none() {
            return;
        }
        let record = Arc::clone(task.record());
        let mut attempts = task.attempts().to_vec();
        let number = task.failed_count().saturating_add(1);
        attempts.push(Attempt {
            number,
            worker: worker.clone(),
            at_ms: self.now.wall_ms,
            failure: failure.clone(),
        });
        fit(&mut attempts);
        let id = task.id().clone();
        self.counts.add(task.stage(), |of| &mut of.failed);
        let kind = TaskReportKind::Failed {
            worker: worker.clone(),
            attempt: number,
            why: failure.reason.clone(),
        };
        self.report(&id, &record.trace, kind);
        // The task is not claimable until the attempt is recorded.
        self.tasks.note_failure(no, attempts.clone());
        if self.dead_letter_if_hopeless(no) {
            return;
        }
        let tries = Change::put(Record::Attempts(attempts));
        self.append(vec![(RecordKey::Attempts(id), tries)], OnAccepted::Nothing);
    }

    /// Handles the record of a failed attempt: waits for the backoff, then makes the task claimable.
    pub(super) fn retry_later(&mut self, no: TaskNo) {
        let Some(task) = self.tasks.get(no) else {
            return;
        };
        if task.phase() != Phase::Recording {
            return;
        }
        let retry_immediately = self.tasks.take_retry_immediately(no);
        let task = &self.tasks[no];
        let stage = task.stage();
        let Some(dispatcher) = self.plan.stage(stage).dispatcher() else {
            return;
        };
        if task.workers_missing() == 0 {
            // Other workers, perhaps a hedge among them, have it.
            self.set_phase(no, Phase::Ready);
            self.update_after_copy(no);
            return;
        }
        let retry = task.failed_count();
        let draw = draw(task.id(), retry);
        self.counts.add(stage, |of| &mut of.retried);
        if retry_immediately {
            self.set_phase(no, Phase::Ready);
            return;
        }
        let until = self.now.mono.plus(dispatcher.backoff.delay(retry, draw));
        self.set_phase(no, Phase::Delayed { until });
        self.timers.set(until, Timer::Wake(no));
    }
}

/// Pseudo-random number that depends only on the task and the attempt (FNV-1a with a finaliser), so that
/// jitter needs no random source.
pub(super) fn draw(id: &TaskId, attempt: u32) -> u64 {
    let text = format!("{id}#{attempt}");
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mixed = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    mixed ^ (mixed >> 33)
}
