//! The course and the end of tasks, as marks and the history record them.

use std::time::Duration;

use super::limits::truncate;
use crate::id::{TaskId, WorkerId};
use crate::record::{
    Attempt, Course, DeadRecord, DoneRecord, FailedStep, Finish, Outcome, PAST_FAILURES_MAX,
    PAST_TEXT_MAX, PLACE_MAX, PLACES_MAX, StepRecord, TaskRecord,
};

/// Details of a task's end, collected before the end is recorded.
#[derive(Default)]
pub(super) struct Ending {
    by: Vec<(WorkerId, u32)>,
    begun_ms: Option<u64>,
    ran_ms: Option<u64>,
    places: Vec<String>,
}

// === impl Ending ===

impl Ending {
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

    /// Course of the task until now; `attempts` are the failed ones.
    pub(super) fn course(&self, record: &TaskRecord, attempts: &[Attempt]) -> Course {
        Course {
            begun_ms: self.begun_ms,
            ran_ms: self.ran_ms,
            by: self.by.clone(),
            ..course(record, attempts)
        }
    }

    /// History entry of the task, as emitted at `now_ms`.
    pub(super) fn emitted(&self, record: &TaskRecord, course: Course, now_ms: u64) -> StepRecord {
        let places = self.places.clone();
        let outcome = Outcome::Emitted { places };
        step(&record.id, record.last, now_ms, course, outcome)
    }
}

/// Course of a task that did not end by a worker's result; `attempts` are the failed ones.
pub(super) fn course(task: &TaskRecord, attempts: &[Attempt]) -> Course {
    let last = attempts.len().saturating_sub(PAST_FAILURES_MAX);
    let failures = attempts[last..].iter().map(|attempt| FailedStep {
        attempt: attempt.number,
        worker: attempt.worker.clone(),
        at_ms: attempt.at_ms,
        ran_ms: attempt.failure.wall_ms,
        reason: clipped(&attempt.failure.reason),
    });
    Course {
        accepted_ms: task.at_ms,
        failed: attempts.last().map_or(0, |attempt| attempt.number),
        failures: failures.collect(),
        ..Course::default()
    }
}

/// History entry from the mark of a finished task; `None` if an earlier release wrote the mark.
pub(super) fn marked_step(id: &TaskId, done: &DoneRecord) -> Option<StepRecord> {
    let course = done.course.clone()?;
    let outcome = match &done.finish {
        Finish::Completed { .. } => Outcome::Completed {
            by: course.by.clone(),
        },
        Finish::Grouped { key } => Outcome::Grouped { key: clipped(key) },
        Finish::Skipped { why } => Outcome::Skipped { why: clipped(why) },
        Finish::Dropped => Outcome::Dropped,
        Finish::Late { why, passed_on } => match passed_on {
            true => Outcome::PassedOn { why: clipped(why) },
            false => Outcome::Skipped { why: clipped(why) },
        },
    };
    Some(step(id, done.last, done.at_ms, course, outcome))
}

/// History entry from a dead letter.
pub(super) fn died_step(dead: &DeadRecord) -> StepRecord {
    let why = clipped(&dead.reason);
    let course = course(&dead.task, &dead.attempts);
    let task = &dead.task;
    step(
        &task.id,
        task.last,
        dead.at_ms,
        course,
        Outcome::Died { why },
    )
}

fn step(id: &TaskId, last: u64, ended_ms: u64, course: Course, outcome: Outcome) -> StepRecord {
    StepRecord {
        task: id.clone(),
        last,
        accepted_ms: course.accepted_ms,
        begun_ms: course.begun_ms,
        ran_ms: course.ran_ms,
        ended_ms,
        failed: course.failed,
        failures: course.failures,
        outcome,
    }
}

fn clipped(text: &str) -> String {
    let mut text = text.to_owned();
    truncate(&mut text, PAST_TEXT_MAX);
    text
}

/// The duration in whole milliseconds, rounded down.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
