//! Workers: joining, heartbeats, silence and leaving.

use std::sync::Arc;
use std::time::Duration;

use super::Core;
use crate::conversation::{LeaseRef, PAUSE_REASON_MAX, WorkerCommand, WorkerJoin};
use crate::core::event::Action;
use crate::core::limits::truncate;
use crate::core::tasks::{Phase, TaskNo};
use crate::core::timers::Timer;
use crate::core::workers::Worker;
use crate::id::WorkerId;
use crate::record::Failure;
use crate::traces::AttemptEnd;

/// Factor of the longest T_ack of a worker's group; a worker without leases that is silent for longer than
/// the product is forgotten. A worker that is still alive joins again.
const SILENCE: u32 = 10;

/// State of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorkerState {
    /// Its user has sent a false result.
    Distrusted,
    /// It ends.
    Leaving,
    /// It was not heard of for longer than a lease lasts.
    Silent,
    /// Its machine lacks a resource, or an operator drains it.
    Paused,
    /// It has no assignment.
    Idle,
    /// It has an assignment.
    Working,
}

// === impl WorkerState ===

impl WorkerState {
    /// Name of the state, as in the metrics.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Distrusted => "distrusted",
            Self::Leaving => "leaving",
            Self::Silent => "silent",
            Self::Paused => "paused",
            Self::Idle => "idle",
            Self::Working => "working",
        }
    }
}

impl Core {
    pub(super) fn join(&mut self, join: WorkerJoin) {
        let Some(group) = self.layout.group_named(&join.group) else {
            return;
        };
        let due = self.now.mono.plus(self.silence_of(group));
        self.timers.set(due, Timer::Silent(join.worker.clone()));
        self.workers.join(join, group, self.now.mono);
    }

    pub(super) fn tell_worker(&mut self, worker: &WorkerId, command: WorkerCommand) {
        self.actions.push(Action::Worker {
            after: None,
            worker: worker.clone(),
            command,
        });
    }

    /// Silence after which a worker of this group is forgotten.
    pub(super) fn silence_of(&self, group: usize) -> Duration {
        self.t_ack_of(group).saturating_mul(SILENCE)
    }

    /// The longest T_ack of a worker group's stages.
    pub(super) fn t_ack_of(&self, group: usize) -> Duration {
        let dispatchers = self
            .plan
            .stages
            .iter()
            .filter_map(|stage| stage.dispatcher());
        let of_group = dispatchers.filter(|plan| plan.group == self.layout.groups()[group]);
        of_group.map(|plan| plan.t_ack).max().unwrap_or_default()
    }

    /// The state of a worker: the first that applies.
    pub(super) fn worker_state(&self, name: &WorkerId, worker: &Worker) -> WorkerState {
        if self.workers.is_distrusted(name) {
            WorkerState::Distrusted
        } else if worker.is_retired() {
            WorkerState::Leaving
        } else if worker.heard().until(self.now.mono) > self.t_ack_of(worker.group()) {
            WorkerState::Silent
        } else if worker.paused().is_some() || self.workers.drained(name).is_some() {
            WorkerState::Paused
        } else if worker.busy() == 0 {
            WorkerState::Idle
        } else {
            WorkerState::Working
        }
    }

    /// Forgets a worker that has been silent for too long.
    pub(super) fn silent(&mut self, name: WorkerId) {
        let Some(worker) = self.workers.get(&name) else {
            self.forget_drain(&name);
            return;
        };
        let silence = self.silence_of(worker.group());
        let due = worker.heard().plus(silence);
        if due <= self.now.mono && worker.busy() == 0 {
            self.workers.remove(&name);
            self.forget_drain(&name);
        } else {
            let due = if due > self.now.mono {
                due
            } else {
                self.now.mono.plus(silence)
            };
            self.timers.set(due, Timer::Silent(name));
        }
    }

    /// Hands back what the worker still has: it has begun none of it, or it would have reported on it before.
    pub(super) fn leave(&mut self, worker: &WorkerId) {
        for no in self.tasks_of(worker) {
            self.end_copy(no, worker, || AttemptEnd::Released);
            self.update_after_copy(no);
        }
        self.forget_worker(worker);
    }

    /// Fails the attempts of a worker that is gone.
    pub(super) fn lost(&mut self, worker: &WorkerId) {
        for no in self.tasks_of(worker) {
            // The task may well be innocent, so there is no reason to wait.
            self.tasks.set_retry_immediately(no);
            let failure =
                Failure::retryable("the worker died, or was cut off, while it had the task");
            self.attempt_failed(no, worker, &failure);
        }
        self.forget_worker(worker);
    }

    /// The tasks that the worker has. The lowest block is first, so that it is recorded and claimable again first.
    fn tasks_of(&self, worker: &WorkerId) -> Vec<TaskNo> {
        let held = self.workers.get(worker).into_iter();
        let mut held: Vec<TaskNo> = held.flat_map(|worker| worker.tasks()).collect();
        held.sort_by_key(|no| self.tasks.get(*no).map(|task| task.id().block));
        held
    }

    fn forget_worker(&mut self, worker: &WorkerId) {
        self.workers.remove(worker);
        self.forget_drain(worker);
    }

    /// Renews the leases that the worker reports, adopts those of which no copy is known, and cancels the
    /// unwanted ones.
    pub(super) fn heartbeat(
        &mut self,
        name: &WorkerId,
        running: Vec<LeaseRef>,
        retired: bool,
        paused: Option<String>,
    ) {
        let paused = paused.map(|mut reason| {
            truncate(&mut reason, PAUSE_REASON_MAX);
            Arc::from(reason)
        });
        if !self.workers.beat(name, self.now.mono, retired, paused) {
            self.tell_worker(name, WorkerCommand::Unknown);
            return;
        }
        for lease in running {
            if !self.keep_lease(name, &lease) {
                self.tell_worker(name, WorkerCommand::Cancel(lease));
            }
        }
    }

    /// Renews or adopts a lease that a worker reports. Returns whether the worker may go on.
    pub(super) fn keep_lease(&mut self, name: &WorkerId, lease: &LeaseRef) -> bool {
        let Some(no) = self.leased_task(name, lease).map(|task| task.no()) else {
            return false;
        };
        let begun_ms = self.tasks.confirm_attempt(no, name, lease.attempt);
        let (stage, phase) = (self.tasks[no].stage(), self.tasks[no].phase());
        let Some(dispatcher) = self.plan.stages[stage.0].dispatcher() else {
            return true;
        };
        let expires = self.now.mono.plus(dispatcher.t_ack);
        if self.tasks.renew(no, name, lease.attempt, expires) {
            return true;
        }
        if !matches!(phase, Phase::Ready | Phase::Delayed { .. } | Phase::Leased) {
            return true;
        }
        let adopts = self.is_adoptable(no, name, lease);
        if adopts {
            let batch = self.workers.begin_batch();
            self.lease(no, name, lease.attempt, lease.tag, batch, expires);
            if let Some(begun_ms) = begun_ms {
                self.tasks.note_begun(no, name, begun_ms);
            }
        }
        adopts
    }

    /// Whether a worker may go on with a reported task of which the core knows no copy.
    fn is_adoptable(&self, no: TaskNo, worker: &WorkerId, lease: &LeaseRef) -> bool {
        let Some(task) = self.tasks.get(no) else {
            return false;
        };
        // The worker has itself ended this attempt: the heartbeat is older.
        let ended = task.has_reported(worker, lease.attempt);
        // After a restart the last worker that has the task may go on, even if no further attempt is allowed.
        let wanted = task.workers_missing() > 0 || task.is_hedgeable() || !task.can_complete();
        !ended && wanted && self.may_take(task, worker).is_some()
    }
}
