//! Workers, their leases, and what becomes of them.

use super::accept::forget_parts;
use super::{Change, Core, Phase, Task, Then, Timer, Worker};
use crate::core::event::{Action, Fail, Join, LeaseRef, PAUSE_REASON_MAX};
use crate::core::limits::{fit, truncate};
use crate::core::ready::TaskNo;
use crate::core::tag::LeaseTag;
use crate::id::{TaskId, WorkerId};
use crate::record::{Attempt, DeadRecord, Failure, Record, RecordKey};

/// A worker without leases is forgotten when it was silent for so many times the longest T_ack of
/// its group; if it lives, it joins again.
const SILENCE: u32 = 10;

/// Bytes of a reason in a dead letter, at most.
pub(super) const REASON_MAX: usize = 8 * 1024;

impl Core {
    pub(super) fn join(&mut self, join: Join) {
        let Some(group) = self.groups.iter().position(|group| *group == join.group) else {
            return;
        };
        let before = self.workers.remove(&join.worker);
        if let Some(before) = &before {
            self.free[before.group].remove(&join.worker);
        }
        let (batches, last_used) = before.map_or_else(Default::default, |worker| {
            (worker.batches, worker.last_used)
        });
        let worker = Worker {
            group,
            labels: join.labels,
            memory: join.memory,
            slots: join.slots,
            retired: false,
            paused: None,
            batches,
            heard: self.now.mono,
            last_used,
        };
        let due = self.now.mono.plus(self.silence_of(group));
        self.timers
            .insert((due, Timer::Silent(join.worker.clone())));
        self.workers.insert(join.worker.clone(), worker);
        self.note_free(&join.worker);
    }

    /// How long a worker of this group may be silent before it is forgotten.
    fn silence_of(&self, group: usize) -> std::time::Duration {
        let dispatchers = self
            .plan
            .stages
            .iter()
            .filter_map(|stage| stage.dispatcher());
        let of_group = dispatchers.filter(|plan| plan.group == self.groups[group]);
        let longest = of_group.map(|plan| plan.t_ack).max().unwrap_or_default();
        longest.saturating_mul(SILENCE)
    }

    /// A worker may have been silent for long.
    pub(super) fn silent(&mut self, name: WorkerId) {
        let Some(worker) = self.workers.get(&name) else {
            return;
        };
        let silence = self.silence_of(worker.group);
        let due = worker.heard.plus(silence);
        if due <= self.now.mono && worker.batches.is_empty() {
            self.remove_worker(&name);
        } else {
            let due = if due > self.now.mono {
                due
            } else {
                self.now.mono.plus(silence)
            };
            self.timers.insert((due, Timer::Silent(name)));
        }
    }

    pub(super) fn retire(&mut self, name: &WorkerId) {
        if let Some(worker) = self.workers.get_mut(name) {
            worker.retired = true;
        }
        self.note_free(name);
    }

    pub(super) fn leave(&mut self, worker: &WorkerId) {
        let mut held = self.tasks_held_by(worker);
        // The head of the chain is recorded, and so claimable again, before the rest.
        held.sort_by_key(|no| self.tasks.get(no).map(|task| task.record.id.block));
        for no in held {
            // The task may well be innocent: there is no reason to wait.
            if let Some(task) = self.tasks.get_mut(&no) {
                task.at_once = true;
            }
            let failure = reason("the worker left or died while it had the task");
            self.attempt_failed(no, worker, &failure);
        }
        self.remove_worker(worker);
    }

    fn remove_worker(&mut self, name: &WorkerId) {
        if let Some(worker) = self.workers.remove(name) {
            self.free[worker.group].remove(name);
        }
    }

    fn tasks_held_by(&self, worker: &WorkerId) -> Vec<TaskNo> {
        let batches = self
            .workers
            .get(worker)
            .into_iter()
            .flat_map(|w| w.batches.values());
        batches.flatten().copied().collect()
    }

    /// Renews the leases that the worker says it holds, adopts those that nobody holds, and tells
    /// it to stop what is not wanted.
    pub(super) fn heartbeat(
        &mut self,
        name: &WorkerId,
        running: Vec<LeaseRef>,
        retired: bool,
        paused: Option<String>,
    ) {
        let now = self.now.mono;
        let Some(worker) = self.workers.get_mut(name) else {
            self.actions.push(Action::Unknown {
                worker: name.clone(),
            });
            return;
        };
        worker.heard = now;
        worker.retired = retired;
        worker.paused = paused.map(|mut reason| {
            truncate(&mut reason, PAUSE_REASON_MAX);
            reason.into()
        });
        self.note_free(name);
        for lease in running {
            let no = self.leased_task(name, &lease).map(|task| task.no);
            let Some(task) = no.and_then(|no| self.tasks.get_mut(&no)) else {
                self.actions.push(Action::Cancel {
                    worker: name.clone(),
                    lease,
                });
                continue;
            };
            let no = task.no;
            self.found_again(no, name, lease.attempt);
            let Some(task) = self.tasks.get_mut(&no) else {
                continue;
            };
            let Some(dispatcher) = self.plan.stages[task.stage.0].dispatcher() else {
                continue;
            };
            let expires = now.plus(dispatcher.t_ack);
            let held = task.copies.iter_mut();
            let mut held = held.filter(|held| held.worker == *name);
            if let Some(held) = held.find(|held| held.attempt == lease.attempt) {
                held.expires = expires;
                continue;
            }
            if !matches!(
                task.phase,
                Phase::Ready | Phase::Delayed { .. } | Phase::Leased
            ) {
                continue;
            }
            if self.is_adoptable(no, name, &lease) {
                let batch = self.next_batch;
                self.next_batch += 1;
                self.lease(no, name, lease.attempt, lease.tag, batch, expires);
            } else {
                self.actions.push(Action::Cancel {
                    worker: name.clone(),
                    lease,
                });
            }
        }
    }

    /// Whether a worker that says it has a task, of which the core does not know, may go on.
    fn is_adoptable(&self, no: TaskNo, worker: &WorkerId, lease: &LeaseRef) -> bool {
        let Some(task) = self.tasks.get(&no) else {
            return false;
        };
        // It has ended this attempt itself: the heartbeat is older than that.
        let ended = task
            .reported
            .iter()
            .any(|(by, attempt)| by == worker && *attempt == lease.attempt);
        // After a restart the last who has it may go on, also where no more may be tried.
        let wanted = task.missing() > 0 || task.is_hedgeable() || !task.is_possible();
        !ended && wanted && self.may_take(task, worker).is_some()
    }

    /// The lease's timer fired: it has ended, unless it was renewed.
    pub(super) fn lease_due(&mut self, no: TaskNo, batch: u64) {
        let Some(task) = self.tasks.get(&no) else {
            return;
        };
        let Some(held) = task.copies.iter().find(|held| held.batch == batch) else {
            return;
        };
        if held.expires > self.now.mono {
            self.timers.insert((held.expires, Timer::Lease(no, batch)));
            return;
        }
        let worker = held.worker.clone();
        let lease = LeaseRef {
            task: task.record.id.clone(),
            attempt: held.attempt,
            tag: held.tag,
        };
        self.counters[task.stage.0].expired += 1;
        let failure = reason("the lease ended without a heartbeat (T_ack)");
        self.attempt_failed(no, &worker, &failure);
        self.actions.push(Action::Cancel { worker, lease });
    }

    pub(super) fn release(&mut self, worker: &WorkerId, lease: &LeaseRef) {
        self.heard_from(worker);
        if let Some(no) = self.held_under(worker, lease) {
            self.end_copy(no, worker);
            self.rest(no);
            self.note_reported(no, worker, lease);
        } else {
            if let Some(no) = self.leased_task(worker, lease).map(|task| task.no) {
                self.found_again(no, worker, lease.attempt);
            }
            self.actions.push(Action::Cancel {
                worker: worker.clone(),
                lease: lease.clone(),
            });
        }
    }

    pub(super) fn fail(&mut self, fail: Fail) {
        self.heard_from(&fail.worker);
        if let Some(no) = self.held_under(&fail.worker, &fail.lease) {
            self.attempt_failed(no, &fail.worker, &fail.failure);
            self.note_reported(no, &fail.worker, &fail.lease);
        } else {
            self.actions.push(Action::Cancel {
                worker: fail.worker,
                lease: fail.lease,
            });
        }
    }

    pub(super) fn note_reported(&mut self, no: TaskNo, worker: &WorkerId, lease: &LeaseRef) {
        if let Some(task) = self.tasks.get_mut(&no) {
            task.reported.push((worker.clone(), lease.attempt));
        }
    }

    pub(super) fn heard_from(&mut self, worker: &WorkerId) {
        if let Some(worker) = self.workers.get_mut(worker) {
            worker.heard = self.now.mono;
        }
    }

    fn held_under(&self, worker: &WorkerId, lease: &LeaseRef) -> Option<TaskNo> {
        let task = self.tasks.get(self.by_id.get(&lease.task)?)?;
        let mut copies = task.copies.iter();
        let named = copies.any(|held| {
            held.worker == *worker && held.attempt == lease.attempt && held.tag == lease.tag
        });
        named.then_some(task.no)
    }

    /// The live task that a lease is of, if the worker was given that lease, by whichever coordinator,
    /// and the task still carries what it did.
    pub(super) fn leased_task(&self, worker: &WorkerId, lease: &LeaseRef) -> Option<&Task> {
        let task = self.tasks.get(self.by_id.get(&lease.task)?)?;
        let key = self.lease_key.as_ref()?;
        let given = key.verify(
            lease.tag,
            worker,
            &task.record,
            &task.content,
            lease.attempt,
        );
        given.then_some(task)
    }

    /// The tag of the lease of a task that a worker is given.
    pub(super) fn tag_for(&self, task: &Task, worker: &WorkerId, attempt: u32) -> LeaseTag {
        let key = self.lease_key.as_ref().expect("set when the core starts");
        key.tag(worker, &task.record, &task.content, attempt)
    }

    /// An attempt has failed, and with it the worker's copy. The others go on: the task dies when
    /// no more may be tried and those that have it are too few.
    pub(super) fn attempt_failed(&mut self, no: TaskNo, worker: &WorkerId, failure: &Failure) {
        self.end_copy(no, worker);
        self.record_failure(no, worker, failure);
    }

    /// Records an attempt that has failed.
    pub(super) fn record_failure(&mut self, no: TaskNo, worker: &WorkerId, failure: &Failure) {
        let Some(task) = self.tasks.get(&no) else {
            return;
        };
        if self.plan.stage(task.stage).dispatcher().is_none() {
            return;
        }
        let mut attempts = task.attempts.clone();
        attempts.push(Attempt {
            number: task.tried().saturating_add(1),
            worker: worker.clone(),
            at_ms: self.now.wall_ms,
            failure: failure.clone(),
        });
        fit(&mut attempts);
        let (id, stage) = (task.record.id.clone(), task.stage);
        self.counters[stage.0].failed += 1;
        // It is not claimable until the attempt is recorded.
        self.update(no, |task| {
            task.attempts.clone_from(&attempts);
            task.phase = Phase::Recording;
        });
        if self.bury_spent(no) {
            return;
        }
        let tries = Change::put(Record::Tries(attempts));
        self.append(vec![(RecordKey::Tries(id), tries)], Then::Nothing);
    }

    /// Moves a task to the dead-letter queue if it cannot be completed any more.
    pub(super) fn bury_spent(&mut self, no: TaskNo) -> bool {
        let Some(task) = self.tasks.get(&no) else {
            return false;
        };
        if task.is_possible() {
            return false;
        }
        let attempts = task.attempts.clone();
        let mut permanent = attempts.iter().filter(|attempt| attempt.failure.permanent);
        let reason = match (permanent.next(), attempts.last()) {
            (Some(attempt), _) => format!("permanent failure: {}", attempt.failure.reason),
            (None, last) => {
                let last = last.map_or("", |attempt| &attempt.failure.reason);
                format!("{} attempts failed; last: {last}", task.tried())
            }
        };
        self.bury(no, reason, attempts);
        true
    }

    /// Moves a live task to the dead-letter queue.
    pub(super) fn bury(&mut self, no: TaskNo, reason: String, attempts: Vec<Attempt>) {
        self.bury_as(no, reason, attempts, false);
    }

    /// As [`Core::bury`]; `late` if it came too late for its group.
    pub(super) fn bury_as(
        &mut self,
        no: TaskNo,
        mut reason: String,
        attempts: Vec<Attempt>,
        late: bool,
    ) {
        let Some(task) = self.tasks.get(&no) else {
            return;
        };
        let id = task.record.id.clone();
        truncate(&mut reason, REASON_MAX);
        let dead = DeadRecord {
            task: (*task.record).clone(),
            reason,
            attempts,
            at_ms: self.now.wall_ms,
            late,
        };
        let mut changes = vec![
            (RecordKey::Dead(id.clone()), Change::put(Record::Dead(dead))),
            (RecordKey::Task(id.clone()), Change::Delete),
            (RecordKey::Tries(id.clone()), Change::Delete),
        ];
        changes.extend(forget_parts(task));
        self.end_copies(no, None);
        self.set_phase(no, Phase::Finishing);
        self.append(changes, Then::Settled(vec![id]));
    }

    /// A failed attempt has been recorded: wait, then try again.
    pub(super) fn retry_later(&mut self, no: TaskNo) {
        let Some(task) = self.tasks.get_mut(&no) else {
            return;
        };
        if task.phase != Phase::Recording {
            return;
        }
        let at_once = std::mem::take(&mut task.at_once);
        let task = &self.tasks[&no];
        let Some(dispatcher) = self.plan.stage(task.stage).dispatcher() else {
            return;
        };
        let retry = task.tried();
        if task.missing() == 0 {
            // Others have it, a hedge among them perhaps.
            self.set_phase(no, Phase::Ready);
            self.rest(no);
            return;
        }
        if at_once {
            self.counters[task.stage.0].retried += 1;
            self.set_phase(no, Phase::Ready);
            return;
        }
        let until = self.now.mono.plus(
            dispatcher
                .backoff
                .delay(retry, draw(&task.record.id, retry)),
        );
        self.counters[task.stage.0].retried += 1;
        self.set_phase(no, Phase::Delayed { until });
        self.timers.insert((until, Timer::Wake(no)));
    }
}

pub(super) fn reason(text: &str) -> Failure {
    Failure {
        reason: text.to_owned(),
        ..Failure::default()
    }
}

/// A number that depends on nothing but the task and the attempt (FNV-1a, then a finaliser), so
/// that jitter needs no random source.
pub(super) fn draw(id: &TaskId, attempt: u32) -> u64 {
    let text = format!("{id}#{attempt}");
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mixed = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    mixed ^ (mixed >> 33)
}
