//! Reports for traces. They follow from what is recorded and from what happens at workers, and change nothing.
//!
//! A leader that ends abruptly may take reports with it that were not exported. So the next one reports the
//! latest of them again at its start, from the log; identifiers of spans are derived from names, so that a
//! span that was exported before is the same span.

use std::sync::Arc;

use proofmill_bus::Seq;
use proofmill_trace::LINKS_MAX;

use super::Core;
use crate::conversation::WorkerResult;
use crate::core::ending::millis;
use crate::core::event::Action;
use crate::core::tasks::{ActiveLease, TaskNo};
use crate::id::{TaskId, WorkerId};
use crate::plan::StageIx;
use crate::record::{Failure, HistoryEntry, StartedAttempt, TaskEnd, TaskRecord};
use crate::traces::{
    AttemptEnd, AttemptReport, BarrierReport, Cause, EndReport, TaskTrace, TraceEvent,
};

/// Age of the oldest report that a new leader repeats, before the last record of the log: longer than an
/// exporter keeps spans.
const REPEATED_MS: u64 = 60_000;

/// Maximum number of ended tasks that a new leader reports again: the last ones.
const REPEATED_MAX: usize = 1_024;

impl Core {
    /// Reports a message from outside that has become a task.
    pub(super) fn trace_submission(&mut self, no: TaskNo, seq: Seq) {
        if !self.options.traces || !self.started {
            return;
        }
        if let Some(task) = self.tasks.get(no)
            && matches!(task.record().trace.cause, Cause::Submission(_))
        {
            let record = Arc::clone(task.record());
            self.trace(seq, TraceEvent::Submitted(record));
        }
    }

    /// Reports the end of a lease.
    pub(super) fn trace_lease(&mut self, no: TaskNo, held: &ActiveLease, end: AttemptEnd) {
        if self.options.traces {
            let (worker, begun_ms) = (held.worker(), held.since_wall_ms());
            self.trace_attempt(no, worker, held.attempt(), begun_ms, end);
        }
    }

    /// Reports a result whose lease had ended, or was given by an earlier leader.
    pub(super) fn trace_unheld_result(&mut self, no: TaskNo, result: &WorkerResult) {
        let (worker, attempt) = (&result.worker, result.lease.attempt);
        if !self.options.traces || self.tasks[no].copy(worker, attempt).is_some() {
            return;
        }
        let ran_ms = millis(result.ran);
        let mut begun = self.tasks[no].unconfirmed().iter();
        let begun = begun.find(|begun| begun.worker == *worker && begun.attempt == attempt);
        let begun_ms = begun.map_or(self.now.wall_ms.saturating_sub(ran_ms), |it| it.at_ms);
        let worker = worker.clone();
        self.trace_attempt(no, &worker, attempt, begun_ms, AttemptEnd::Completed);
    }

    /// Reports an attempt of which nothing is known since a restart.
    pub(super) fn trace_lost(&mut self, no: TaskNo, begun: &StartedAttempt, failure: &Failure) {
        if self.options.traces {
            let end = end_of(failure);
            self.trace_attempt(no, &begun.worker, begun.attempt, begun.at_ms, end);
        }
    }

    fn trace_attempt(
        &mut self,
        no: TaskNo,
        worker: &WorkerId,
        attempt: u32,
        begun_ms: u64,
        end: AttemptEnd,
    ) {
        let Some(task) = self.tasks.get(no) else {
            return;
        };
        let report = AttemptReport {
            task: Arc::clone(task.record()),
            worker: worker.clone(),
            attempt,
            begun_ms,
            ended_ms: self.now.wall_ms,
            end,
        };
        // It has happened, whatever becomes of its record.
        self.trace(Seq(0), TraceEvent::Attempt(report));
    }

    /// Reports the end of a task, once the log has it at `seq`.
    pub(super) fn trace_end(&mut self, seq: Seq, end: impl FnOnce(&Self) -> Option<TaskEnd>) {
        if self.options.traces
            && self.started
            && let Some(end) = end(self)
        {
            self.trace_ended(seq, end, false);
        }
    }

    fn trace_ended(&mut self, seq: Seq, end: TaskEnd, is_repeated: bool) {
        let stage = self.layout.stage_of(&end.task);
        let dispatcher = stage.and_then(|stage| self.plan.stage(stage).dispatcher());
        let single = dispatcher.is_none_or(|of| of.speculation.is_single());
        let report = EndReport {
            end,
            is_repeated,
            single,
        };
        self.trace(seq, TraceEvent::Ended(Box::new(report)));
    }

    /// Reports a barrier that fires.
    pub(super) fn trace_barrier(
        &mut self,
        stage: StageIx,
        key: &str,
        members: &[(TaskNo, Arc<TaskRecord>)],
    ) {
        let Some((_, first)) = members.first().filter(|_| self.options.traces) else {
            return;
        };
        let links = members.iter().take(LINKS_MAX);
        let begun_ms = members.iter().map(|(_, task)| task.at_ms).min();
        let report = BarrierReport {
            stage,
            key: key.to_owned(),
            first: first.id.clone(),
            place: first.trace.clone(),
            members: links.map(|(_, task)| task.trace.link(&task.id)).collect(),
            count: members.len(),
            begun_ms: begun_ms.unwrap_or(self.now.wall_ms),
            fired_ms: self.now.wall_ms,
        };
        self.trace(self.applied, TraceEvent::Barrier(Box::new(report)));
    }

    /// Reports again, after a restart, what an earlier leader may not have exported.
    pub(super) fn repeat_traces(&mut self) {
        if !self.options.traces || !self.reopened {
            return;
        }
        let ends = || {
            let entries = self.history_about(&(0..=u64::MAX));
            entries.filter_map(|entry| match entry {
                HistoryEntry::TaskEnd(end) => Some(end),
                _ => None,
            })
        };
        let live = self.tasks.iter().map(|task| task.record().at_ms);
        let latest = ends().map(|end| end.ended_ms).chain(live).max();
        let since_ms = latest.unwrap_or(0).saturating_sub(REPEATED_MS);
        // The history is long, and its last minute is not.
        let ends = ends().filter(|end| end.ended_ms >= since_ms);
        let mut ends: Vec<TaskEnd> = ends.cloned().collect();
        let surplus = ends.len().saturating_sub(REPEATED_MAX);
        for end in ends.drain(..).skip(surplus) {
            self.trace_ended(Seq(0), end, true);
        }
        for no in self.tasks.select(|task| task.record().at_ms >= since_ms) {
            self.trace_submission(no, Seq(0));
        }
        let failed_since = |attempt: &crate::record::Attempt| attempt.at_ms >= since_ms;
        for no in self
            .tasks
            .select(|task| task.attempts().iter().any(failed_since))
        {
            self.repeat_failures(no, since_ms);
        }
    }

    /// Reports the failed attempts of a live task again, where their numbers are those of their leases.
    fn repeat_failures(&mut self, no: TaskNo, since_ms: u64) {
        let task = &self.tasks[no];
        let dispatcher = self.plan.stage(task.stage()).dispatcher();
        if !dispatcher.is_some_and(|of| of.speculation.is_single()) {
            return;
        }
        let attempts = task.attempts().iter();
        let reports: Vec<AttemptReport> = attempts
            .filter(|attempt| attempt.at_ms >= since_ms)
            .map(|attempt| AttemptReport {
                task: Arc::clone(task.record()),
                worker: attempt.worker.clone(),
                attempt: attempt.number,
                begun_ms: attempt.at_ms.saturating_sub(attempt.failure.wall_ms),
                ended_ms: attempt.at_ms,
                end: end_of(&attempt.failure),
            })
            .collect();
        for report in reports {
            self.trace(Seq(0), TraceEvent::Attempt(report));
        }
    }

    /// Gives a task that an earlier release recorded its place in the trace of its block.
    pub(super) fn mend_trace(&self, id: &TaskId, trace: &mut TaskTrace) {
        if !trace.trace.is_known() {
            *trace = TaskTrace::mended(&self.plan.workflow, id.block);
        }
    }

    fn trace(&mut self, after: Seq, event: TraceEvent) {
        self.actions.push(Action::Trace { after, event });
    }
}

/// The end of an attempt that failed.
pub(super) fn end_of(failure: &Failure) -> AttemptEnd {
    AttemptEnd::Failed {
        reason: failure.reason.clone(),
        exit: failure.exit,
        permanent: failure.permanent,
    }
}
