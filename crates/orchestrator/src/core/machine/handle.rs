//! Dispatch of events to their handlers.

use super::Core;
use crate::conversation::{HostEvent, Reply, Request, SinkEvent, WorkerEvent};
use crate::core::event::{Event, RequestId};
use crate::core::submissions::Submission;
use crate::core::timers::Timer;

impl Core {
    pub(super) fn dispatch(&mut self, event: Event) {
        match event {
            Event::Worker(event) => self.hear_worker(event),
            Event::Host(event) => self.hear_host(event),
            Event::Sink(SinkEvent::Emitted { task, places }) => self.emitted(&task, places),
            Event::Sink(SinkEvent::Attach { .. }) | Event::Tick => {}
            Event::Request { id, request } => self.hear_request(id, request),
            Event::Accepted { token, seq } => self.accepted(token, seq),
            Event::Conflicted { token, key } => self.conflicted(token, &key),
            Event::ReportWaits {
                worker,
                lease,
                is_result,
            } => self.report_waits(&worker, &lease, is_result),
            Event::FalseResult(result) => self.false_result(&result),
            Event::Drain => self.drain(),
        }
    }

    fn hear_worker(&mut self, event: WorkerEvent) {
        match event {
            WorkerEvent::Join(join) => self.join(join),
            WorkerEvent::Retire { worker } => self.workers.retire(&worker),
            WorkerEvent::Leave { worker } => self.leave(&worker),
            WorkerEvent::Lost { worker } => self.lost(&worker),
            WorkerEvent::Heartbeat {
                worker,
                running,
                retired,
                paused,
            } => self.heartbeat(&worker, running, retired, paused),
            WorkerEvent::Complete(complete) => self.complete(complete),
            WorkerEvent::Fail(fail) => self.fail(fail),
            WorkerEvent::Release { worker, lease } => self.release(&worker, &lease),
        }
    }

    fn hear_host(&mut self, event: HostEvent) {
        match event {
            HostEvent::Join(join) => self.host_join(join),
            HostEvent::Heartbeat { host } => self.host_heartbeat(&host),
            HostEvent::Leave { host } => self.host_leave(&host),
            HostEvent::Verdicts(verdicts) => self.verdicts(verdicts),
        }
    }

    fn hear_request(&mut self, id: RequestId, request: Request) {
        match request {
            Request::Submit(submit) => self.submit(Submission::new(id, submit)),
            Request::RetryDead(task) => self.retry_dead(id, &task),
            Request::DropDead(task) => self.drop_dead(id, &task),
            Request::Cancel(target) => self.cancel(id, target),
            Request::Rewind(rewind) => self.rewind(id, rewind),
            Request::RunNow(task) => self.run_now(id, &task),
            Request::Pause { kind, name, by } => self.pause(id, kind, &name, &by),
            Request::Resume { kind, name } => self.resume(id, kind, &name),
        }
    }

    fn drain(&mut self) {
        self.draining = true;
        let held = self.submissions.take_held(|_| true);
        for submission in self.submissions.take_parked().chain(held) {
            self.reply(submission.request(), self.applied, Reply::Draining);
        }
        self.resume_deferred();
        self.flush_counts();
    }

    pub(super) fn run_timers(&mut self) {
        while let Some((due, timer)) = self.timers.pop_due(self.now.mono) {
            match timer {
                Timer::Lease(no, batch) => self.lease_due(no, batch),
                Timer::Wake(no) => self.wake(no),
                Timer::Unconfirmed(no) => self.unconfirmed_due(no),
                Timer::Begun => self.begun_due(),
                Timer::Slot(first) => self.slot_due(first),
                // Overdue tasks are searched for after each event.
                Timer::Hedge(stage) => self.speculation.timer_fired(stage),
                Timer::Overdue(stage, key) => self.group_overdue(stage, &key, due),
                Timer::Silent(worker) => self.silent(worker),
                Timer::Host(host) => self.host_due(host),
                Timer::Adopted => self.adopting_until = None,
                Timer::Scaling => self.scale(),
                Timer::Counts => {
                    self.counts.note_fired();
                    self.flush_counts();
                }
            }
        }
    }
}
