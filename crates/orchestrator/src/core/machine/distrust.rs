//! False results: the worker that sent one gets no further task.

use std::sync::Arc;

use super::Core;
use crate::core::event::FalseResult;
use crate::core::limits::{REASON_MAX, truncate};
use crate::core::tasks::{ActiveLease, TaskNo};
use crate::id::WorkerId;
use crate::record::Failure;
use crate::traces::AttemptEnd;

impl Core {
    /// Handles a result that the coordinator's check has refused: the attempt has failed, its task is claimable
    /// at once, and so are all tasks that the worker and others of its user have. The distrust is not recorded:
    /// after a change of the leader it begins anew with the next false result.
    pub(super) fn false_result(&mut self, result: &FalseResult) {
        if self.leased_task(&result.worker, &result.lease).is_none() {
            // The task has ended, or was taken back, while the result was checked.
            self.refuse(result.worker.clone(), result.lease.clone());
            return;
        }
        let mut why = result.why.clone();
        truncate(&mut why, REASON_MAX);
        if let Some(no) = self.held_under(&result.worker, &result.lease) {
            self.tasks.set_retry_immediately(no);
            let failure = Failure::retryable(format!("the result is false: {why}"));
            self.attempt_failed(no, &result.worker, &failure);
            let attempt = result.lease.attempt;
            self.tasks.note_reported(no, &result.worker, attempt);
        }
        for worker in self.workers.distrust(&result.worker, Arc::from(why)) {
            self.end_leases_of(&worker);
        }
    }

    /// Ends all leases of a worker. The worker did not report a failure, so no attempt is counted.
    fn end_leases_of(&mut self, worker: &WorkerId) {
        let Some(known) = self.workers.get(worker) else {
            return;
        };
        let held = self.leases_of(worker, known);
        let held: Vec<(TaskNo, ActiveLease)> =
            held.map(|(task, held)| (task.no(), held.clone())).collect();
        for (no, lease) in held {
            let id = self.tasks.get(no).map(|task| task.id().clone());
            self.end_copy(no, worker, || AttemptEnd::Cancelled);
            self.update_after_copy(no);
            if let Some(id) = id {
                self.cancel_copy(&lease, &id);
            }
        }
    }
}
