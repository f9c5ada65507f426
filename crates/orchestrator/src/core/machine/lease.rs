//! Leases: their verification, their expiry, and their return by workers.

use std::sync::Arc;
use std::time::Duration;

use super::Core;
use crate::conversation::{LeaseRef, WorkerCommand};
use crate::core::tag::LeaseTag;
use crate::core::tasks::{Task, TaskNo};
use crate::core::timers::Timer;
use crate::id::WorkerId;
use crate::plan::StageIx;
use crate::record::{Failure, TaskRecord};
use crate::traces::AttemptEnd;

/// Least time for which a lease is renewed whose report waits.
const LEAST_RENEWAL: Duration = Duration::from_secs(1);

impl Core {
    /// Handles a lease's timer: the lease has ended, unless it was renewed.
    pub(super) fn lease_due(&mut self, no: TaskNo, batch: u64) {
        let Some(task) = self.tasks.get(no) else {
            return;
        };
        let mut copies = task.copies().iter();
        let Some(held) = copies.find(|held| held.batch() == batch) else {
            return;
        };
        if held.expires() > self.now.mono {
            self.timers.set(held.expires(), Timer::Lease(no, batch));
            return;
        }
        if held.is_reported() {
            let dispatcher = self.plan.stage(task.stage()).dispatcher();
            let t_ack = dispatcher.map(|of| of.t_ack).unwrap_or_default();
            let expires = self.now.mono.plus(t_ack.max(LEAST_RENEWAL));
            let (worker, attempt) = (held.worker().clone(), held.attempt());
            self.tasks.renew(no, &worker, attempt, expires);
            self.timers.set(expires, Timer::Lease(no, batch));
            return;
        }
        let (held, id) = (held.clone(), task.id().clone());
        self.counts.add(task.stage(), |of| &mut of.expired);
        let failure = Failure::retryable("the lease ended without a heartbeat (T_ack)");
        self.attempt_failed(no, held.worker(), &failure);
        self.cancel_copy(&held, &id);
    }

    /// Keeps a lease until the report on it counts, which waits for a check: the worker names the lease in no heartbeat any
    /// more, and may be gone by then.
    pub(super) fn report_waits(&mut self, worker: &WorkerId, lease: &LeaseRef, is_result: bool) {
        if is_result && self.knows_worker(worker) {
            self.keep_lease(worker, lease);
        }
        if let Some(no) = self.held_under(worker, lease) {
            self.tasks.note_report_waits(no, worker, lease.attempt);
        }
    }

    pub(super) fn release(&mut self, worker: &WorkerId, lease: &LeaseRef) {
        self.workers.hear(worker, self.now.mono);
        if let Some(no) = self.held_under(worker, lease) {
            self.end_copy(no, worker, || AttemptEnd::Released);
            self.update_after_copy(no);
            self.tasks.note_reported(no, worker, lease.attempt);
        } else {
            if let Some(no) = self.leased_task(worker, lease).map(|task| task.no()) {
                self.tasks.confirm_attempt(no, worker, lease.attempt);
            }
            self.tell_worker(worker, WorkerCommand::Cancel(lease.clone()));
        }
    }

    /// The task that a worker has under this lease.
    pub(super) fn held_under(&self, worker: &WorkerId, lease: &LeaseRef) -> Option<TaskNo> {
        let task = self.tasks.with_id(&lease.task)?;
        let mut copies = task.copies().iter();
        let named = copies.any(|held| {
            held.worker() == worker && held.attempt() == lease.attempt && held.tag() == lease.tag
        });
        named.then_some(task.no())
    }

    /// The live task of a lease, if some coordinator gave the worker that lease and the task's content is
    /// unchanged.
    pub(super) fn leased_task(&self, worker: &WorkerId, lease: &LeaseRef) -> Option<&Task> {
        let task = self.tasks.with_id(&lease.task)?;
        let key = self.lease_key.as_ref()?;
        let (record, content) = (task.record(), task.content());
        let given = key.verify(lease.tag, worker, record, content, lease.attempt);
        given.then_some(task)
    }

    /// The stage and the record of a live task, if the worker was given this lease of it.
    pub fn leased_record(
        &self,
        worker: &WorkerId,
        lease: &LeaseRef,
    ) -> Option<(StageIx, Arc<TaskRecord>)> {
        let task = self.leased_task(worker, lease)?;
        Some((task.stage(), task.record().clone()))
    }

    /// Tag of a lease of the task for this worker and attempt.
    pub(super) fn tag_for(&self, task: &Task, worker: &WorkerId, attempt: u32) -> LeaseTag {
        let key = self.lease_key.as_ref().expect("set when the core starts");
        key.tag(worker, task.record(), task.content(), attempt)
    }
}
