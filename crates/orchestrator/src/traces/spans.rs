//! Spans, from the core's reports and from what dispatchers and the sink measure.

use std::sync::Arc;
use std::time::Duration;

use proofmill_trace::{LINKS_MAX, Recorder, Span, SpanId, SpanKind};

use super::event::{AttemptEnd, AttemptReport, BarrierReport, EndReport, TraceEvent};
use super::task::{Cause, TaskTrace};
use crate::id::{TaskId, WorkerId};
use crate::plan::Plan;
use crate::record::{TaskEnd, TaskOutcome, TaskRecord};

/// Names of attributes.
mod name {
    pub(super) const WORKFLOW: &str = "proofmill.workflow";
    pub(super) const STAGE: &str = "proofmill.stage";
    pub(super) const BLOCK: &str = "proofmill.block";
    pub(super) const LAST_BLOCK: &str = "proofmill.last_block";
    pub(super) const PART: &str = "proofmill.part";
    pub(super) const QUEUE: &str = "proofmill.queue";
    pub(super) const WORKER: &str = "proofmill.worker";
    pub(super) const ATTEMPT: &str = "proofmill.attempt";
    pub(super) const OUTCOME: &str = "proofmill.outcome";
    pub(super) const REASON: &str = "proofmill.reason";
    pub(super) const FAILED: &str = "proofmill.failed_attempts";
    pub(super) const GROUP: &str = "proofmill.group";
    pub(super) const MEMBERS: &str = "proofmill.members";
    pub(super) const PERMANENT: &str = "proofmill.permanent";
    pub(super) const PLACE: &str = "proofmill.place";
    pub(super) const EXIT: &str = "process.exit.code";
}

/// Records the spans of a report, if this process exports traces and the trace is sampled. `durable_ms` is the
/// present time: that at which the log has what is reported.
///
/// The exporter makes the spans: the next task waits for whoever reports.
pub fn record(plan: &Arc<Plan>, event: TraceEvent, durable_ms: u64) {
    let Some(recorder) = proofmill_trace::recorder() else {
        return;
    };
    let place = match &event {
        TraceEvent::Submitted(task) => &task.trace,
        TraceEvent::Attempt(report) => &report.task.trace,
        TraceEvent::Ended(report) => &report.end.trace,
        TraceEvent::Barrier(report) => &report.place,
    };
    if place.is_recorded(recorder) {
        let plan = plan.clone();
        recorder.record_later(move || spans_of(&plan, &event, durable_ms));
    }
}

/// The spans of a report.
pub fn spans_of(plan: &Plan, event: &TraceEvent, durable_ms: u64) -> Vec<Span> {
    match event {
        TraceEvent::Submitted(task) => {
            let queue = Some(&*task.queue);
            let times = (task.at_ms, durable_ms);
            submission(plan, &task.trace, &task.id, task.last, queue, times)
                .into_iter()
                .collect()
        }
        TraceEvent::Attempt(report) => vec![attempt(plan, report)],
        TraceEvent::Ended(report) => ended(plan, report, durable_ms),
        TraceEvent::Barrier(report) => vec![barrier(plan, report)],
    }
}

/// The ingestion of a message: from its admission until the log has it. `None` for a task that follows from
/// another one.
fn submission(
    plan: &Plan,
    place: &TaskTrace,
    task: &TaskId,
    last: u64,
    queue: Option<&str>,
    times: (u64, u64),
) -> Option<Span> {
    let Cause::Submission(id) = place.cause else {
        return None;
    };
    let parent = place.caller.as_ref().map(|caller| caller.span());
    let span = Span::new(place.trace, id, parent, "submit", times);
    let span = described(span, plan, place, task, last);
    let mut span = match queue {
        Some(queue) => span.with_text(name::QUEUE, queue),
        None => span,
    };
    span.kind = SpanKind::Consumer;
    Some(span)
}

fn attempt(plan: &Plan, report: &AttemptReport) -> Span {
    let (task, place) = (&report.task.id, &report.task.trace);
    let id = place.attempt_span(task, &report.worker, report.attempt);
    let times = (report.begun_ms, report.ended_ms);
    let parent = Some(place.task_span(task));
    let span = Span::new(place.trace, id, parent, "attempt", times);
    let span = described(span, plan, place, task, report.task.last);
    let span = of_worker(span, &report.worker, report.attempt);
    match &report.end {
        AttemptEnd::Completed => span.with_text(name::OUTCOME, "completed"),
        AttemptEnd::Released => span.with_text(name::OUTCOME, "released"),
        AttemptEnd::Cancelled => span.with_text(name::OUTCOME, "cancelled"),
        AttemptEnd::Failed {
            reason,
            exit,
            permanent,
        } => {
            let span = span
                .with_text(name::OUTCOME, "failed")
                .with_flag(name::PERMANENT, *permanent)
                .failed(reason);
            match exit {
                Some(exit) => span.with_number(name::EXIT, *exit),
                None => span,
            }
        }
    }
}

/// The spans of a task that has ended: the task, its wait for a worker, and the recording of its end.
fn ended(plan: &Plan, report: &EndReport, durable_ms: u64) -> Vec<Span> {
    let end = &report.end;
    let (task, place) = (&end.task, &end.trace);
    let id = place.task_span(task);
    let begun_ms = first_begun(end);
    let mut spans = Vec::new();
    if report.is_repeated {
        let at_ms = end.accepted_ms;
        spans.extend(submission(
            plan,
            place,
            task,
            end.last,
            None,
            (at_ms, at_ms),
        ));
        spans.extend(repeated_attempts(plan, report));
    }
    if let Some(begun_ms) = begun_ms {
        let waiting = place.derive("wait", task, []);
        let times = (end.accepted_ms, begun_ms);
        let span = Span::new(place.trace, waiting, Some(id), "wait", times);
        spans.push(described(span, plan, place, task, end.last));
    }
    if !report.is_repeated {
        let recording = place.derive("record", task, []);
        let times = (end.ended_ms, durable_ms);
        let span = Span::new(place.trace, recording, Some(id), "record", times);
        spans.push(described(span, plan, place, task, end.last));
    }
    let times = (end.accepted_ms, end.ended_ms);
    let span = Span::new(place.trace, id, place.parent(), &*task.stage, times);
    let span = described(span, plan, place, task, end.last);
    let span = span.with_number(name::FAILED, end.failed);
    let mut span = match &end.outcome {
        TaskOutcome::Completed { .. } => span.with_text(name::OUTCOME, "completed"),
        TaskOutcome::Grouped { key } => span
            .with_text(name::OUTCOME, "grouped")
            .with_text(name::GROUP, key),
        TaskOutcome::Skipped { why } => span
            .with_text(name::OUTCOME, "skipped")
            .with_text(name::REASON, why),
        TaskOutcome::Dropped => span.with_text(name::OUTCOME, "dropped"),
        TaskOutcome::Died { why } => span.with_text(name::OUTCOME, "dead").failed(why),
        TaskOutcome::Emitted { .. } => span.with_text(name::OUTCOME, "emitted"),
        TaskOutcome::PassedOn { why } => span
            .with_text(name::OUTCOME, "passed on")
            .with_text(name::REASON, why),
    };
    if matches!(end.outcome, TaskOutcome::Emitted { .. }) {
        span.kind = SpanKind::Producer;
    }
    spans.push(span);
    spans
}

/// Beginning of the first attempt, as far as the history knows it.
fn first_begun(end: &TaskEnd) -> Option<u64> {
    let first = end.failures.first().filter(|first| first.attempt == 1);
    let begun_ms = match (end.failed, first) {
        (0, _) => end.begun_ms,
        (_, Some(first)) => Some(first.at_ms.saturating_sub(first.ran_ms)),
        (_, None) => None,
    };
    begun_ms.map(|begun_ms| begun_ms.clamp(end.accepted_ms, end.ended_ms))
}

/// The attempts at a task, from its end in the history: an earlier leader may have ended before its own
/// reports of them were exported.
fn repeated_attempts(plan: &Plan, report: &EndReport) -> Vec<Span> {
    let end = &report.end;
    let place = &end.trace;
    let of = |worker: &WorkerId, number: u32, times: (u64, u64)| {
        let id = place.attempt_span(&end.task, worker, number);
        let parent = Some(place.task_span(&end.task));
        let span = Span::new(place.trace, id, parent, "attempt", times);
        let span = described(span, plan, place, &end.task, end.last);
        of_worker(span, worker, number)
    };
    let mut spans = Vec::new();
    if let TaskOutcome::Completed { by } = &end.outcome {
        let ran_ms = end.ran_ms.unwrap_or(0);
        let begun_ms = end.begun_ms.unwrap_or(end.ended_ms.saturating_sub(ran_ms));
        let spans_of_results = by.iter().map(|(worker, number)| {
            of(worker, *number, (begun_ms, end.ended_ms)).with_text(name::OUTCOME, "completed")
        });
        spans.extend(spans_of_results);
    }
    if report.single {
        let failures = end.failures.iter().map(|failure| {
            let times = (failure.at_ms.saturating_sub(failure.ran_ms), failure.at_ms);
            of(&failure.worker, failure.attempt, times)
                .with_text(name::OUTCOME, "failed")
                .failed(&failure.reason)
        });
        spans.extend(failures);
    }
    spans
}

fn barrier(plan: &Plan, report: &BarrierReport) -> Span {
    let (place, first) = (&report.place, &report.first);
    let id = place.derive("barrier", first, [report.key.as_bytes()]);
    let times = (report.begun_ms, report.fired_ms);
    let parent = Some(place.task_span(first));
    let span = Span::new(place.trace, id, parent, "barrier", times)
        .with_text(name::WORKFLOW, &plan.workflow)
        .with_text(name::STAGE, &plan.stage(report.stage).name)
        .with_text(name::GROUP, &report.key)
        .with_number(name::MEMBERS, report.count as u64);
    Span {
        links: report.members.iter().take(LINKS_MAX).copied().collect(),
        state: state_of(place),
        ..span
    }
}

/// Records the work of a dispatcher on an attempt: fetching the input, running, and storing the result.
pub fn run_span(
    plan: &Arc<Plan>,
    task: &Arc<TaskRecord>,
    (worker, attempt): (&WorkerId, u32),
    times: (u64, u64),
    outcome: Result<Duration, &str>,
) {
    with_recorder(&task.trace, |recorder| {
        let (plan, task, worker) = (plan.clone(), task.clone(), worker.clone());
        let outcome = outcome.map_err(str::to_owned);
        recorder.record_later(move || {
            let place = &task.trace;
            let parent = place.attempt_span(&task.id, &worker, attempt);
            let number = attempt.to_le_bytes();
            let id = place.derive("run", &task.id, [worker.as_bytes(), &number]);
            let span = Span::new(place.trace, id, Some(parent), "run", times);
            let span = described(span, &plan, place, &task.id, task.last);
            let span = of_worker(span, &worker, attempt);
            vec![match outcome {
                Ok(ran) => span.with_number("proofmill.ran_us", ran.as_micros()),
                Err(why) => span.failed(&why),
            }]
        });
    });
}

/// Records the delivery of a message to one sink.
pub fn delivery_span(
    workflow: &str,
    task: &TaskRecord,
    place_name: &str,
    times: (u64, u64),
    tries: u32,
) {
    with_recorder(&task.trace, |recorder| {
        let place = &task.trace;
        let parent = Some(place.task_span(&task.id));
        let id: SpanId = place.derive("deliver", &task.id, [place_name.as_bytes()]);
        let span = Span::new(place.trace, id, parent, "deliver", times)
            .with_text(name::WORKFLOW, workflow)
            .with_text(name::STAGE, &task.id.stage)
            .with_number(name::BLOCK, task.id.block)
            .with_text(name::PLACE, place_name)
            .with_number("proofmill.tries", tries);
        recorder.record(Span {
            kind: SpanKind::Producer,
            state: state_of(place),
            ..span
        });
    });
}

fn with_recorder(place: &TaskTrace, then: impl FnOnce(&Recorder)) {
    if let Some(recorder) = proofmill_trace::recorder().filter(|it| place.is_recorded(it)) {
        then(recorder);
    }
}

fn of_worker(span: Span, worker: &WorkerId, attempt: u32) -> Span {
    span.with_text(name::WORKER, worker)
        .with_number(name::ATTEMPT, attempt)
}

/// The span with the attributes of its task.
fn described(span: Span, plan: &Plan, place: &TaskTrace, task: &TaskId, last: u64) -> Span {
    let span = span
        .with_text(name::WORKFLOW, &plan.workflow)
        .with_text(name::STAGE, &task.stage)
        .with_number(name::BLOCK, task.block)
        .with_text(name::PART, task.part.as_str());
    let span = match last == task.block {
        true => span,
        false => span.with_number(name::LAST_BLOCK, last),
    };
    Span {
        state: state_of(place),
        ..span
    }
}

fn state_of(place: &TaskTrace) -> Option<std::sync::Arc<str>> {
    let caller = place.caller.as_ref()?;
    caller.tracestate().cloned()
}
