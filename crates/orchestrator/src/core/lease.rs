//! Workers, their leases, and what becomes of them.

use std::collections::BTreeSet;

use super::event::{Action, Complete, Fail, Join, LeaseRef, Timing};
use super::limits::{excess, fit, truncate};
use super::ready::TaskNo;
use super::state::{Change, Core, Phase, Then, Timer, Worker};
use crate::id::{TaskId, WorkerId};
use crate::message::{Message, tasks_of};
use crate::record::{Attempt, DeadRecord, Failure, Finish, Record, RecordKey};

/// A worker without leases is forgotten when it was silent for so many times the longest T_ack of
/// its group; if it lives, it joins again.
const SILENCE: u32 = 10;

/// Bytes of a reason in a dead letter, at most.
const REASON_MAX: usize = 8 * 1024;

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
            self.attempt_failed(no, &reason("the worker left or died while it had the task"));
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
    pub(super) fn heartbeat(&mut self, name: &WorkerId, running: Vec<LeaseRef>, retired: bool) {
        let now = self.now.mono;
        let Some(worker) = self.workers.get_mut(name) else {
            self.actions.push(Action::Unknown {
                worker: name.clone(),
            });
            return;
        };
        worker.heard = now;
        worker.retired = retired;
        self.note_free(name);
        for lease in running {
            let no = self.by_id.get(&lease.task).copied();
            let Some(task) = no.and_then(|no| self.tasks.get_mut(&no)) else {
                self.actions.push(Action::Cancel {
                    worker: name.clone(),
                    lease,
                });
                continue;
            };
            let no = task.no;
            let Some(dispatcher) = self.plan.stages[task.stage.0].dispatcher() else {
                continue;
            };
            let expires = now.plus(dispatcher.t_ack);
            match &mut task.phase {
                Phase::Leased(held) if held.worker == *name && held.attempt == lease.attempt => {
                    held.expires = expires;
                }
                Phase::Ready | Phase::Delayed { .. }
                    if task.reported.as_ref().is_some_and(|(worker, attempt)| {
                        worker == name && *attempt == lease.attempt
                    }) =>
                {
                    // It has ended this attempt itself: the heartbeat is older than that.
                    self.actions.push(Action::Cancel {
                        worker: name.clone(),
                        lease,
                    });
                }
                Phase::Ready | Phase::Delayed { .. } => {
                    let batch = self.next_batch;
                    self.next_batch += 1;
                    self.lease(no, name, lease.attempt, batch, expires);
                }
                Phase::Leased(_) => {
                    self.actions.push(Action::Cancel {
                        worker: name.clone(),
                        lease,
                    });
                }
                _ => {}
            }
        }
    }

    /// The lease's timer fired: it has ended, unless it was renewed.
    pub(super) fn lease_due(&mut self, no: TaskNo, attempt: u32) {
        let Some(task) = self.tasks.get(&no) else {
            return;
        };
        let Phase::Leased(held) = &task.phase else {
            return;
        };
        if held.attempt != attempt {
            return;
        }
        if held.expires > self.now.mono {
            self.timers
                .insert((held.expires, Timer::Lease(no, attempt)));
            return;
        }
        let worker = held.worker.clone();
        let lease = LeaseRef {
            task: task.record.id.clone(),
            attempt,
        };
        self.counters[task.stage.0].expired += 1;
        self.attempt_failed(no, &reason("the lease ended without a heartbeat (T_ack)"));
        self.actions.push(Action::Cancel { worker, lease });
    }

    pub(super) fn release(&mut self, worker: &WorkerId, lease: &LeaseRef) {
        self.heard_from(worker);
        if let Some(no) = self.held_under(worker, lease) {
            self.set_phase(no, Phase::Ready);
            self.note_reported(no, worker, lease);
        } else {
            self.actions.push(Action::Cancel {
                worker: worker.clone(),
                lease: lease.clone(),
            });
        }
    }

    pub(super) fn fail(&mut self, fail: Fail) {
        self.heard_from(&fail.worker);
        if let Some(no) = self.held_under(&fail.worker, &fail.lease) {
            self.attempt_failed(no, &fail.failure);
            self.note_reported(no, &fail.worker, &fail.lease);
        } else {
            self.actions.push(Action::Cancel {
                worker: fail.worker,
                lease: fail.lease,
            });
        }
    }

    fn note_reported(&mut self, no: TaskNo, worker: &WorkerId, lease: &LeaseRef) {
        if let Some(task) = self.tasks.get_mut(&no) {
            task.reported = Some((worker.clone(), lease.attempt));
        }
    }

    fn heard_from(&mut self, worker: &WorkerId) {
        if let Some(worker) = self.workers.get_mut(worker) {
            worker.heard = self.now.mono;
        }
    }

    fn held_under(&self, worker: &WorkerId, lease: &LeaseRef) -> Option<TaskNo> {
        let no = *self.by_id.get(&lease.task)?;
        match &self.tasks.get(&no)?.phase {
            Phase::Leased(held) if held.worker == *worker && held.attempt == lease.attempt => {
                Some(no)
            }
            _ => None,
        }
    }

    fn attempt_failed(&mut self, no: TaskNo, failure: &Failure) {
        let Some(task) = self.tasks.get(&no) else {
            return;
        };
        let Phase::Leased(held) = &task.phase else {
            return;
        };
        let worker = held.worker.clone();
        self.attempt_failed_by(no, worker, failure);
    }

    fn attempt_failed_by(&mut self, no: TaskNo, worker: WorkerId, failure: &Failure) {
        let Some(task) = self.tasks.get(&no) else {
            return;
        };
        let Some(dispatcher) = self.plan.stage(task.stage).dispatcher() else {
            return;
        };
        let r_max = dispatcher.r_max;
        let number = task.tried().saturating_add(1);
        let mut attempts = task.attempts.clone();
        attempts.push(Attempt {
            number,
            worker,
            at_ms: self.now.wall_ms,
            failure: failure.clone(),
        });
        fit(&mut attempts);
        let (id, stage) = (task.record.id.clone(), task.stage);
        self.counters[stage.0].failed += 1;
        if failure.permanent {
            self.bury(
                no,
                format!("permanent failure: {}", failure.reason),
                attempts,
            );
        } else if number > r_max {
            let reason = format!("{number} attempts failed; last: {}", failure.reason);
            self.bury(no, reason, attempts);
        } else {
            self.set_phase(no, Phase::Recording);
            let tries = Change::put(Record::Tries(attempts));
            self.append(vec![(RecordKey::Tries(id), tries)], Then::Nothing);
        }
    }

    /// Moves a live task to the dead-letter queue.
    pub(super) fn bury(&mut self, no: TaskNo, mut reason: String, attempts: Vec<Attempt>) {
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
        };
        self.set_phase(no, Phase::Finishing);
        let changes = vec![
            (RecordKey::Dead(id.clone()), Change::put(Record::Dead(dead))),
            (RecordKey::Task(id.clone()), Change::Delete),
            (RecordKey::Tries(id.clone()), Change::Delete),
        ];
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
        let task = &*task;
        let Some(dispatcher) = self.plan.stage(task.stage).dispatcher() else {
            return;
        };
        let retry = task.tried();
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

    /// A result. The first for a task wins, whoever brings it, and whatever its lease.
    pub(super) fn complete(&mut self, complete: Complete) {
        self.heard_from(&complete.worker);
        let id = complete.lease.task.clone();
        let task = self.by_id.get(&id).and_then(|no| self.tasks.get(no));
        if task.is_some_and(|task| task.phase == Phase::Finishing) {
            // A result is being recorded, this one perhaps: whoever waits hears when it is.
            return;
        }
        let task = task.filter(|task| self.plan.stage(task.stage).dispatcher().is_some());
        let Some(task) = task else {
            if let Some(stage) = self.stage_of(&id) {
                self.counters[stage.0].stale_results += 1;
            }
            self.actions.push(Action::Cancel {
                worker: complete.worker,
                lease: complete.lease,
            });
            return;
        };
        let (no, stage, record) = (task.no, task.stage, task.record.clone());
        let mut since = task.accepted;
        if let Phase::Leased(held) = &task.phase {
            since = held.since;
            if held.worker != complete.worker || held.attempt != complete.lease.attempt {
                self.actions.push(Action::Cancel {
                    worker: held.worker.clone(),
                    lease: LeaseRef {
                        task: id.clone(),
                        attempt: held.attempt,
                    },
                });
            }
        }
        let timing = Timing {
            waited: task.accepted.until(since),
            leased: since.until(self.now.mono),
            ran: complete.ran,
            at: self.now.mono,
        };
        // A failed attempt may be on its way to the log, ahead of this.
        let had_tries = !task.attempts.is_empty() || task.phase == Phase::Recording;
        let worker = complete.worker;
        let finish = Finish::Completed {
            worker: worker.clone(),
            attempt: complete.lease.attempt,
        };
        let mut changes = vec![
            (RecordKey::Done(id.clone()), self.done(finish, record.last)),
            (RecordKey::Task(id.clone()), Change::Delete),
        ];
        if had_tries {
            changes.push((RecordKey::Tries(id.clone()), Change::Delete));
        }
        let mut elements = BTreeSet::new();
        let mut wrong = None;
        for output in complete.outputs {
            if !elements.insert(output.element) {
                wrong = Some("the result has two messages of the same position".to_owned());
                break;
            }
            let part = match output.element {
                Some(index) => record.id.part.element(index),
                None => record.id.part.clone(),
            };
            let message = Message {
                first: record.id.block,
                last: record.last,
                part,
                payload: output.payload,
                needs: None,
                grouping: output.grouping,
            };
            self.pass_on(stage, &message, &mut changes);
        }
        if let Some(why) = wrong.or_else(|| excess(&changes)) {
            let failure = Failure {
                permanent: true,
                ..reason(&format!("its result: {why}"))
            };
            self.attempt_failed_by(no, worker, &failure);
            return;
        }
        self.set_phase(no, Phase::Finishing);
        self.append(
            changes,
            Then::Settle {
                task: id,
                timing: Some(timing),
            },
        );
    }

    /// The records that put a message into every output queue of `stage`, leaving out what is
    /// there already.
    pub(super) fn pass_on(
        &self,
        stage: crate::plan::StageIx,
        message: &Message,
        changes: &mut Vec<(RecordKey, Change)>,
    ) {
        let stage = self.plan.stage(stage);
        for queue in &stage.outputs {
            for (reader, task) in
                tasks_of(&self.plan, *queue, &stage.name, message, self.now.wall_ms)
            {
                let (Ok(record) | Err((record, _))) = &task;
                let id = record.id.clone();
                let known = self.by_id.contains_key(&id) || self.dead.contains_key(&id);
                if known || self.will_be_finished(reader, &id, record.last) {
                    continue;
                }
                changes.push(match task {
                    Ok(record) => (RecordKey::Task(id), Change::put_new(Record::Task(record))),
                    Err((task, reason)) => {
                        let at_ms = self.now.wall_ms;
                        let dead = DeadRecord {
                            task,
                            reason,
                            attempts: Vec::new(),
                            at_ms,
                        };
                        (RecordKey::Dead(id), Change::put_new(Record::Dead(dead)))
                    }
                });
            }
        }
    }
}

fn reason(text: &str) -> Failure {
    Failure {
        reason: text.to_owned(),
        ..Failure::default()
    }
}

/// A number that depends on nothing but the task and the attempt (FNV-1a, then a finaliser), so
/// that jitter needs no random source.
fn draw(id: &TaskId, attempt: u32) -> u64 {
    let text = format!("{id}#{attempt}");
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mixed = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    mixed ^ (mixed >> 33)
}
