//! The timeline and the end of tasks, as marks and the history record them.

use std::time::Duration;

use super::limits::truncate;
use crate::id::{TaskId, WorkerId};
use crate::record::{
    Attempt, DeadRecord, DoneRecord, EndKind, FailedAttemptSummary, HISTORY_FAILURES_MAX,
    HISTORY_TEXT_MAX, PLACE_MAX, PLACES_MAX, TaskEnd, TaskOutcome, TaskRecord, TaskTimeline,
};
use crate::text::beginning_of;

/// Details of a task's end, collected before the end is recorded.
#[derive(Default)]
pub(super) struct EndDetails {
    by: Vec<(WorkerId, u32)>,
    begun_ms: Option<u64>,
    ran_ms: Option<u64>,
    places: Vec<String>,
}

// === impl EndDetails ===

impl EndDetails {
    /// The end of a task by results of these workers' attempts. `begun_ms` is the beginning of the last
    /// attempt, `None` if it is not known; `ran` is the executor's own run time.
    pub(super) fn by(by: Vec<(WorkerId, u32)>, begun_ms: Option<u64>, ran: Duration) -> Self {
        Self {
            by,
            begun_ms,
            ran_ms: Some(millis(ran)),
            places: Vec::new(),
        }
    }

    /// Sets the places that the task's message was emitted to, within [`PLACES_MAX`] and [`PLACE_MAX`].
    pub(super) fn set_places(&mut self, mut places: Vec<String>) {
        places.truncate(PLACES_MAX);
        places
            .iter_mut()
            .for_each(|place| truncate(place, PLACE_MAX));
        self.places = places;
    }

    /// Timeline of the task until now; `attempts` are the failed ones.
    pub(super) fn timeline(&self, record: &TaskRecord, attempts: &[Attempt]) -> TaskTimeline {
        TaskTimeline {
            begun_ms: self.begun_ms,
            ran_ms: self.ran_ms,
            by: self.by.clone(),
            ..timeline(record, attempts)
        }
    }

    /// History entry of the task, as emitted at `now_ms`.
    pub(super) fn emitted(
        &self,
        record: &TaskRecord,
        timeline: TaskTimeline,
        now_ms: u64,
    ) -> TaskEnd {
        let places = self.places.clone();
        let outcome = TaskOutcome::Emitted { places };
        task_end(&record.id, record.last, now_ms, timeline, outcome)
    }
}

/// Timeline of a task that did not end by a worker's result; `attempts` are the failed ones.
pub(super) fn timeline(task: &TaskRecord, attempts: &[Attempt]) -> TaskTimeline {
    let last = attempts.len().saturating_sub(HISTORY_FAILURES_MAX);
    let failures = attempts[last..].iter().map(|attempt| FailedAttemptSummary {
        attempt: attempt.number,
        worker: attempt.worker.clone(),
        at_ms: attempt.at_ms,
        ran_ms: attempt.failure.wall_ms,
        reason: clipped(&attempt.failure.reason),
    });
    TaskTimeline {
        accepted_ms: task.at_ms,
        failed: attempts.last().map_or(0, |attempt| attempt.number),
        failures: failures.collect(),
        trace: task.trace.clone(),
        ..TaskTimeline::default()
    }
}

/// History entry from the mark of a finished task; `None` if an earlier release wrote the mark.
pub(super) fn end_from_mark(id: &TaskId, done: &DoneRecord) -> Option<TaskEnd> {
    let timeline = done.timeline.clone()?;
    let outcome = match &done.end {
        EndKind::Completed { .. } => TaskOutcome::Completed {
            by: timeline.by.clone(),
        },
        EndKind::Grouped { key } => TaskOutcome::Grouped { key: clipped(key) },
        EndKind::Skipped { why } => TaskOutcome::Skipped { why: clipped(why) },
        EndKind::Dropped => TaskOutcome::Dropped,
        EndKind::Late { why, passed_on } => match passed_on {
            true => TaskOutcome::PassedOn { why: clipped(why) },
            false => TaskOutcome::Skipped { why: clipped(why) },
        },
    };
    Some(task_end(id, done.last, done.at_ms, timeline, outcome))
}

/// History entry from a dead letter.
pub(super) fn end_from_dead_letter(dead: &DeadRecord) -> TaskEnd {
    let why = clipped(&dead.reason);
    let timeline = timeline(&dead.task, &dead.attempts);
    let task = &dead.task;
    task_end(
        &task.id,
        task.last,
        dead.at_ms,
        timeline,
        TaskOutcome::Died { why },
    )
}

fn task_end(
    id: &TaskId,
    last: u64,
    ended_ms: u64,
    timeline: TaskTimeline,
    outcome: TaskOutcome,
) -> TaskEnd {
    TaskEnd {
        task: id.clone(),
        last,
        accepted_ms: timeline.accepted_ms,
        begun_ms: timeline.begun_ms,
        ran_ms: timeline.ran_ms,
        ended_ms,
        recorded_ms: None,
        failed: timeline.failed,
        failures: timeline.failures,
        outcome,
        trace: timeline.trace,
    }
}

fn clipped(text: &str) -> String {
    beginning_of(text, HISTORY_TEXT_MAX).to_owned()
}

/// The duration in whole milliseconds, rounded down.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
