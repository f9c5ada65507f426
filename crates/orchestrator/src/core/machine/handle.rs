//! The dispatch of events to the code for each.

use super::Core;
use crate::core::event::{Event, Reply};
use crate::core::timers::Timer;

impl Core {
    pub(super) fn dispatch(&mut self, event: Event) {
        match event {
            Event::Submit(submit) => self.submit(submit),
            Event::Join(join) => self.join(join),
            Event::Retire { worker } => self.workers.retire(&worker),
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
        for submit in self.submissions.take_parked() {
            self.reply(submit.request, self.applied, Reply::Draining);
        }
        self.resume_deferred();
        self.flush_counts();
    }

    pub(super) fn run_timers(&mut self) {
        while let Some((due, timer)) = self.timers.pop_due(self.now.mono) {
            match timer {
                Timer::Lease(no, batch) => self.lease_due(no, batch),
                Timer::Wake(no) => self.wake(no),
                Timer::Lost(no) => self.lost_due(no),
                Timer::Begun => self.begun_due(),
                Timer::Slot(first) => self.slot_due(first),
                // What is overdue is looked for after each event.
                Timer::Hedge(stage) => self.speculation.woken(stage),
                Timer::Overdue(stage, key) => self.group_overdue(stage, &key, due),
                Timer::Silent(worker) => self.silent(worker),
                Timer::Host(host) => self.host_due(host),
                Timer::Adopted => self.adopting_until = None,
                Timer::Counts => {
                    self.counts.note_fired();
                    self.flush_counts();
                }
            }
        }
    }
}
