//! Workers, their leases, and what becomes of them.

use super::event::{Action, Complete, Fail, Join, LeaseRef, Timing};
use super::ready::TaskNo;
use super::state::{Change, Core, Phase, Then, Timer, Worker};
use crate::id::{TaskId, WorkerId};
use crate::message::{Message, tasks_of};
use crate::record::{Attempt, DeadRecord, Failure, Finish, Record, RecordKey};

/// Marks of finished tasks removed with one result, at most.
const OUTDATED_MAX: usize = 8;

impl Core {
    pub(super) fn join(&mut self, join: Join) {
        let Some(group) = self.groups.iter().position(|group| *group == join.group) else { return };
        let before = self.workers.remove(&join.worker);
        let (batches, last_used) =
            before.map_or_else(Default::default, |worker| (worker.batches, worker.last_used));
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
        self.workers.insert(join.worker, worker);
    }

    pub(super) fn leave(&mut self, worker: &WorkerId) {
        for no in self.tasks_held_by(worker) {
            self.attempt_failed(no, &reason("the worker left or died while it had the task"));
        }
        self.workers.remove(worker);
    }

    fn tasks_held_by(&self, worker: &WorkerId) -> Vec<TaskNo> {
        let batches = self.workers.get(worker).into_iter().flat_map(|w| w.batches.values());
        batches.flatten().copied().collect()
    }

    /// Renews the leases that the worker says it holds, adopts those that nobody holds, and tells
    /// it to stop what is not wanted.
    pub(super) fn heartbeat(&mut self, name: &WorkerId, running: Vec<LeaseRef>) {
        let now = self.now.mono;
        let Some(worker) = self.workers.get_mut(name) else {
            self.actions.push(Action::Unknown { worker: name.clone() });
            return;
        };
        worker.heard = now;
        for lease in running {
            let no = self.by_id.get(&lease.task).copied();
            let Some(task) = no.and_then(|no| self.tasks.get_mut(&no)) else {
                self.actions.push(Action::Cancel { worker: name.clone(), lease });
                continue;
            };
            let no = task.no;
            let Some(dispatcher) = self.plan.stages[task.stage.0].dispatcher() else { continue };
            let expires = now.plus(dispatcher.t_ack);
            match &mut task.phase {
                Phase::Leased(held) if held.worker == *name && held.attempt == lease.attempt => {
                    held.expires = expires;
                }
                Phase::Ready | Phase::Delayed { .. } => {
                    let batch = self.next_batch;
                    self.next_batch += 1;
                    self.lease(no, name, lease.attempt, batch, expires);
                }
                Phase::Leased(_) => {
                    self.actions.push(Action::Cancel { worker: name.clone(), lease });
                }
                _ => {}
            }
        }
    }

    /// The lease's timer fired: it has ended, unless it was renewed.
    pub(super) fn lease_due(&mut self, no: TaskNo, attempt: u32) {
        let Some(task) = self.tasks.get(&no) else { return };
        let Phase::Leased(held) = &task.phase else { return };
        if held.attempt != attempt {
            return;
        }
        if held.expires > self.now.mono {
            self.timers.insert((held.expires, Timer::Lease(no, attempt)));
            return;
        }
        let worker = held.worker.clone();
        let lease = LeaseRef { task: task.record.id.clone(), attempt };
        self.counters[task.stage.0].expired += 1;
        self.attempt_failed(no, &reason("the lease ended without a heartbeat (T_ack)"));
        self.actions.push(Action::Cancel { worker, lease });
    }

    pub(super) fn release(&mut self, worker: &WorkerId, lease: &LeaseRef) {
        if let Some(no) = self.held_under(worker, lease) {
            self.set_phase(no, Phase::Ready);
        }
    }

    pub(super) fn fail(&mut self, fail: Fail) {
        self.heard_from(&fail.worker);
        if let Some(no) = self.held_under(&fail.worker, &fail.lease) {
            self.attempt_failed(no, &fail.failure);
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
        let Some(task) = self.tasks.get(&no) else { return };
        let Phase::Leased(held) = &task.phase else { return };
        let Some(dispatcher) = self.plan.stage(task.stage).dispatcher() else { return };
        let mut attempts = task.attempts.clone();
        attempts.push(Attempt {
            number: held.attempt,
            worker: held.worker.clone(),
            at_ms: self.now.wall_ms,
            failure: failure.clone(),
        });
        let (id, stage) = (task.record.id.clone(), task.stage);
        let used_up = attempts.len() > dispatcher.r_max as usize;
        self.counters[stage.0].failed += 1;
        if failure.permanent {
            self.bury(no, format!("permanent failure: {}", failure.reason), attempts);
        } else if used_up {
            let reason = format!("{} attempts failed; last: {}", attempts.len(), failure.reason);
            self.bury(no, reason, attempts);
        } else {
            self.set_phase(no, Phase::Recording);
            let tries = Change::put(Record::Tries(attempts));
            self.append(vec![(RecordKey::Tries(id), tries)], Then::Nothing);
        }
    }

    /// Moves a live task to the dead-letter queue.
    pub(super) fn bury(&mut self, no: TaskNo, reason: String, attempts: Vec<Attempt>) {
        let Some(task) = self.tasks.get(&no) else { return };
        let id = task.record.id.clone();
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
        let Some(task) = self.tasks.get(&no) else { return };
        if task.phase != Phase::Recording {
            return;
        }
        let Some(dispatcher) = self.plan.stage(task.stage).dispatcher() else { return };
        let retry = u32::try_from(task.attempts.len()).unwrap_or(u32::MAX);
        let until = self.now.mono.plus(dispatcher.backoff.delay(retry, draw(&task.record.id, retry)));
        self.counters[task.stage.0].retried += 1;
        self.set_phase(no, Phase::Delayed { until });
        self.timers.insert((until, Timer::Wake(no)));
    }

    /// A result. The first for a task wins, whoever brings it, and whatever its lease.
    pub(super) fn complete(&mut self, complete: Complete) {
        self.heard_from(&complete.worker);
        let id = complete.lease.task.clone();
        let task = self.by_id.get(&id).and_then(|no| self.tasks.get(no));
        let stale = task.is_none_or(|task| {
            matches!(task.phase, Phase::Finishing)
                || self.plan.stage(task.stage).dispatcher().is_none()
        });
        let Some(task) = task.filter(|_| !stale) else {
            if let Some(stage) = self.stage_of(&id) {
                self.counters[stage.0].stale_results += 1;
            }
            self.actions.push(Action::Cancel { worker: complete.worker, lease: complete.lease });
            return;
        };
        let (no, stage, record) = (task.no, task.stage, task.record.clone());
        let mut since = task.accepted;
        if let Phase::Leased(held) = &task.phase {
            since = held.since;
            if held.worker != complete.worker || held.attempt != complete.lease.attempt {
                self.actions.push(Action::Cancel {
                    worker: held.worker.clone(),
                    lease: LeaseRef { task: id.clone(), attempt: held.attempt },
                });
            }
        }
        let timing = Timing {
            waited: task.accepted.until(since),
            leased: since.until(self.now.mono),
            ran: complete.ran,
            at: self.now.mono,
        };
        let had_tries = !task.attempts.is_empty();
        let finish =
            Finish::Completed { worker: complete.worker, attempt: complete.lease.attempt };
        let mut changes = vec![
            (RecordKey::Done(id.clone()), self.done(finish)),
            (RecordKey::Task(id.clone()), Change::Delete),
        ];
        if had_tries {
            changes.push((RecordKey::Tries(id.clone()), Change::Delete));
        }
        for output in complete.outputs {
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
        changes.extend(self.outdated(stage));
        self.set_phase(no, Phase::Finishing);
        self.append(changes, Then::Settle { task: id, timing: Some(timing) });
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
                if known || self.is_finished(reader, &id, record.last) {
                    continue;
                }
                changes.push(match task {
                    Ok(record) => (RecordKey::Task(id), Change::put_new(Record::Task(record))),
                    Err((task, reason)) => {
                        let at_ms = self.now.wall_ms;
                        let dead = DeadRecord { task, reason, attempts: Vec::new(), at_ms };
                        (RecordKey::Dead(id), Change::put_new(Record::Dead(dead)))
                    }
                });
            }
        }
    }

    /// For a stage that no path leads from to the sequencer: the marks of finished tasks that are
    /// older than is remembered.
    pub(super) fn outdated(&self, stage: crate::plan::StageIx) -> Vec<(RecordKey, Change)> {
        if self.leads[stage.0] {
            return Vec::new();
        }
        let finished = &self.finished[stage.0];
        let floor = finished.newest.saturating_sub(self.plan.retain_blocks);
        let name = &self.plan.stage(stage).name;
        let of_block = |(block, parts): (&u64, &std::collections::BTreeSet<crate::id::Part>)| {
            let ids = parts.iter().map(|part| TaskId {
                stage: name.clone(),
                block: *block,
                part: part.clone(),
            });
            ids.map(|id| (RecordKey::Done(id), Change::Delete)).collect::<Vec<_>>()
        };
        finished.by_block.range(..floor).flat_map(of_block).take(OUTDATED_MAX).collect()
    }
}

fn reason(text: &str) -> Failure {
    Failure { reason: text.to_owned(), ..Failure::default() }
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
