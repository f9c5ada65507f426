//! Which event does what.

use super::event::{Action, Event, Reply, Token};
use super::state::{Change, Core, Phase, Then, Timer};
use crate::record::RecordKey;

impl Core {
    pub(super) fn dispatch(&mut self, event: Event) {
        match event {
            Event::Submit(submit) => self.submit(submit),
            Event::Join(join) => self.join(join),
            Event::Retire { worker } => {
                if let Some(worker) = self.workers.get_mut(&worker) {
                    worker.retired = true;
                }
            }
            Event::Leave { worker } => self.leave(&worker),
            Event::Heartbeat { worker, running } => self.heartbeat(&worker, running),
            Event::Complete(complete) => self.complete(complete),
            Event::Fail(fail) => self.fail(fail),
            Event::Release { worker, lease } => self.release(&worker, &lease),
            Event::Accepted { token, seq } => self.accepted(token, seq),
            Event::Conflicted { token, key } => self.conflicted(token, &key),
            Event::Emitted { task } => self.emitted(&task),
            Event::RetryDead { request, task } => self.retry_dead(request, &task),
            Event::DropDead { request, task } => self.drop_dead(request, &task),
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
    }

    pub(super) fn run_timers(&mut self) {
        while let Some((due, timer)) = self.timers.first().cloned() {
            if due > self.now.mono {
                return;
            }
            self.timers.pop_first();
            match timer {
                Timer::Lease(no, attempt) => self.lease_due(no, attempt),
                Timer::Wake(no) => self.wake(no),
                Timer::Overdue(stage, key) => self.group_overdue(stage, &key, due),
                Timer::Adopted => self.adopting_until = None,
            }
        }
    }

    fn wake(&mut self, no: super::ready::TaskNo) {
        let Some(task) = self.tasks.get(&no) else { return };
        if !matches!(task.phase, Phase::Delayed { until } if until <= self.now.mono) {
            return;
        }
        if self.plan.stage(task.stage).collector().is_some() {
            self.set_phase(no, Phase::New);
            self.enter(no);
        } else {
            self.set_phase(no, Phase::Ready);
        }
    }

    /// The log holds a record that an append expected not to be there. What that record settles is
    /// left out, and the rest is appended again.
    fn conflicted(&mut self, token: Token, key: &str) {
        let Some(mut pending) = self.pending.remove(&token) else { return };
        let Ok(key) = RecordKey::parse(key) else { return };
        if matches!(key, RecordKey::Done(_) | RecordKey::Group(..)) {
            // Another coordinator's result came first; its records say what follows from it.
            return;
        }
        let before = pending.changes.len();
        pending.changes.retain(|(other, _)| *other != key);
        if pending.changes.len() == before {
            return;
        }
        let puts = pending.changes.iter().any(|(_, change)| matches!(change, Change::Put { .. }));
        match pending.then {
            Then::Reply { request, .. } if !puts => {
                self.actions.push(Action::Reply {
                    request,
                    after: self.applied,
                    reply: Reply::Duplicate,
                });
            }
            then => self.append(pending.changes, then),
        }
    }
}
