//! Which event does what.

use super::{Change, Core, Phase, Then, Timer};
use crate::core::event::{Event, Reply, Token};
use crate::record::{Record, RecordKey};

impl Core {
    pub(super) fn dispatch(&mut self, event: Event) {
        match event {
            Event::Submit(submit) => self.submit(submit),
            Event::Join(join) => self.join(join),
            Event::Retire { worker } => self.retire(&worker),
            Event::Leave { worker } => self.leave(&worker),
            Event::Heartbeat {
                worker,
                running,
                retired,
                paused,
            } => self.heartbeat(&worker, running, retired, paused),
            Event::Complete(complete) => self.complete(complete),
            Event::Fail(fail) => self.fail(fail),
            Event::Release { worker, lease } => self.release(&worker, &lease),
            Event::HostJoin(join) => self.host_join(join),
            Event::HostBeat { host } => self.host_beat(&host),
            Event::HostLeave { host } => self.host_leave(&host),
            Event::Verdicts(verdicts) => self.verdicts(verdicts),
            Event::Accepted { token, seq } => self.accepted(token, seq),
            Event::Conflicted { token, key } => self.conflicted(token, &key),
            Event::Emitted { task, places } => self.emitted(&task, places),
            Event::RetryDead { request, task } => self.retry_dead(request, &task),
            Event::DropDead { request, task } => self.drop_dead(request, &task),
            Event::Cancel { request, target } => self.cancel(request, target),
            Event::Rewind(rewind) => self.rewind(rewind),
            Event::Drain => self.drain(),
            Event::Tick => {}
        }
    }

    fn drain(&mut self) {
        self.draining = true;
        for (_, submits) in std::mem::take(&mut self.parked) {
            for submit in submits.into_values() {
                self.reply(submit.request, self.applied, Reply::Draining);
            }
        }
        self.resume_deferred();
        self.flush_counts();
    }

    pub(super) fn run_timers(&mut self) {
        while self
            .timers
            .first()
            .is_some_and(|(due, _)| *due <= self.now.mono)
        {
            let Some((due, timer)) = self.timers.pop_first() else {
                return;
            };
            match timer {
                Timer::Lease(no, batch) => self.lease_due(no, batch),
                Timer::Wake(no) => self.wake(no),
                Timer::Lost(no) => self.lost_due(no),
                Timer::Begun => self.begun_due(),
                Timer::Slot(first) => self.slot_due(first),
                // What is overdue is looked for after each event.
                Timer::Hedge(stage) => self.hedge_due[stage.0] = None,
                Timer::Overdue(stage, key) => self.group_overdue(stage, &key, due),
                Timer::Silent(worker) => self.silent(worker),
                Timer::Host(host) => self.host_due(host),
                Timer::Adopted => self.adopting_until = None,
                Timer::Counts => self.counts_due(),
            }
        }
    }

    fn wake(&mut self, no: crate::core::ready::TaskNo) {
        let Some(task) = self.tasks.get(&no) else {
            return;
        };
        if !matches!(task.phase, Phase::Delayed { until } if until <= self.now.mono) {
            return;
        }
        if self.plan.stage(task.stage).collector().is_some() {
            self.set_phase(no, Phase::New);
            self.enter(no);
        } else {
            // A late result may have made up for what was missing.
            self.set_phase(no, Phase::Ready);
            self.rest(no);
        }
    }

    /// The log holds a record that an append expected not to be there. What that record settles is
    /// left out, and the rest is appended again.
    pub(super) fn conflicted(&mut self, token: Token, key: &str) {
        let Some(mut pending) = self.pending.remove(&token) else {
            return;
        };
        self.note_incoming(&pending.changes, false);
        self.unremember(&pending.changes);
        self.uncount(&pending.changes);
        // What is appended again gets these anew.
        pending.changes.retain(|(key, _)| !key.is_beside());
        let parsed = RecordKey::parse(key);
        let at = pending.changes.iter().position(|(other, change)| {
            let is_put = matches!(change, Change::Put { .. });
            is_put && parsed.as_ref().is_ok_and(|key| key == other)
        });
        let Some((key, refused)) = at.map(|at| pending.changes.remove(at)) else {
            return;
        };
        if matches!(
            key,
            RecordKey::Done(_) | RecordKey::Group(..) | RecordKey::Part(..) | RecordKey::LeaseKey
        ) {
            // Another coordinator's came first; its records say what follows from it.
            return;
        }
        if let Then::Reply { request, .. } = pending.then {
            let Change::Put {
                record: Record::Task(task),
                ..
            } = &refused
            else {
                return;
            };
            let known = self
                .stage_of(&task.id)
                .and_then(|stage| self.known(stage, task));
            let puts = pending
                .changes
                .iter()
                .any(|(_, change)| matches!(change, Change::Put { .. }));
            let differs = matches!(known, Some(Reply::Differs { .. }));
            if differs || !puts {
                for (key, _) in &pending.changes {
                    if let RecordKey::Dead(id) = key {
                        self.deciding.remove(id);
                    }
                }
                self.reply(
                    request,
                    self.applied,
                    known.unwrap_or(Reply::Duplicate { same: None }),
                );
                self.resume_deferred();
                return;
            }
        }
        // What came first may have brought the others of its tasks too, and they may have ended since.
        let replaced: Vec<RecordKey> = (pending.changes.iter())
            .filter(|(_, change)| matches!(change, Change::Delete))
            .map(|(key, _)| key.clone())
            .collect();
        pending.changes.retain(|(key, change)| match (key, change) {
            (RecordKey::Task(id), Change::Put { .. }) => {
                let dead = RecordKey::Dead(id.clone());
                let is_dead = self.dead.contains_key(id) && !replaced.contains(&dead);
                !self.by_id.contains_key(id) && !is_dead
            }
            _ => true,
        });
        self.append(pending.changes, pending.then);
    }
}
