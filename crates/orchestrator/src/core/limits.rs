//! Limits that keep appends within what the log accepts. A log that refused an append would stop the
//! coordinator.

use proofmill_bus::{MAX_BATCH_OPS, MAX_VALUE_BYTES};

use super::change::Change;
use crate::id::TaskId;
use crate::payload::{NESTING_MAX, Payload};
use crate::record::{Attempt, PartialResult, Record, RecordKey, TaskRecord};
use crate::text::{beginning_of, end_of};

/// Maximum size of a task's record, bytes. Leaves room for the failed attempts in its dead letter.
pub const TASK_MAX: usize = MAX_VALUE_BYTES - ATTEMPTS_MAX - 32 * 1024;

/// Maximum number of records that an append may gain on top of its own: its history records, and counters.
pub(super) const BESIDE_MAX: usize = 8;

/// Maximum number of records removed in one append; a batch of the log is bounded.
pub(super) const FORGET_MAX: usize = 500;

/// Maximum length of the reason in a dead letter, bytes.
pub(super) const REASON_MAX: usize = 8 * 1024;

/// Maximum number of records of an append, before history and counters are added.
const CHANGES_MAX: usize = MAX_BATCH_OPS - BESIDE_MAX;

/// Maximum size of a task's attempts, bytes.
const ATTEMPTS_MAX: usize = 128 * 1024;

/// Maximum number of attempts kept of a task: the first [`FIRST_KEPT`], and the last ones.
const ATTEMPTS_KEPT: usize = 256;
const FIRST_KEPT: usize = 16;

/// Estimated size of an attempt besides its texts, bytes.
const ATTEMPT_OVERHEAD: usize = 64;

/// Reason for which the log would refuse these changes; `None` if it would accept them.
pub(super) fn excess(changes: &[(RecordKey, Change)]) -> Option<String> {
    if changes.len() > CHANGES_MAX {
        return Some(format!(
            "{} records would have to be written at once; the log takes {CHANGES_MAX}: \
             make fewer messages at a time, in two stages",
            changes.len()
        ));
    }
    changes.iter().find_map(|(key, change)| {
        if let Err(error) = key.to_key() {
            return Some(format!("its record cannot be named: {error}"));
        }
        match change {
            Change::Put {
                record: Record::Task(task),
                ..
            } => excess_of_task(task),
            _ => None,
        }
    })
}

/// Reason for which a task's record is too large for the log; `None` if it fits.
pub(super) fn excess_of_task(task: &TaskRecord) -> Option<String> {
    if task.payload.nesting() > NESTING_MAX {
        return Some(format!(
            "task {} would carry groups within groups, more than {NESTING_MAX} deep: let a stage make \
             one message of a group before it is gathered again",
            task.id
        ));
    }
    let size = size_of(task);
    (size > TASK_MAX).then(|| {
        format!(
            "task {} has {size} bytes, the limit is {TASK_MAX}: keep large payloads as blobs",
            task.id
        )
    })
}

/// Reason for which one of several results is too large; `None` if it fits.
pub(super) fn excess_of_part(id: &TaskId, part: &PartialResult) -> Option<String> {
    let size = size_of_payload(&part.payload);
    (size > TASK_MAX).then(|| {
        format!(
            "a result of task {id} has {size} bytes, the limit is {TASK_MAX}: keep large payloads \
             as blobs"
        )
    })
}

/// Upper estimate of the encoded record's size, bytes.
fn size_of(task: &TaskRecord) -> usize {
    let labels = task.needs.iter().flat_map(|needs| &needs.labels);
    let names = task.id.stage.len() + task.queue.len() + task.id.part.as_str().len();
    let group = task.group.as_ref().map_or(0, |group| group.len());
    let labels: usize = labels.map(|label| label.len() + 5).sum();
    let origins = task.origins.iter();
    let stages: usize = origins
        .map(|origin| 64 + origin.stage.as_ref().map_or(0, |stage| stage.len()))
        .sum();
    128 + names + group + labels + stages + size_of_payload(&task.payload)
}

fn size_of_payload(payload: &Payload) -> usize {
    match payload {
        Payload::Inline { bytes, .. } => 8 + bytes.len(),
        Payload::Blob { .. } => 48,
        Payload::Group { members, .. } => {
            let each = members
                .iter()
                .map(|(queue, member)| 8 + queue.len() + size_of_payload(member));
            8 + each.sum::<usize>()
        }
    }
}

/// Drops and shortens attempts until they fit beside their task. Output streams keep their end, where a
/// program usually reports its error.
pub(super) fn fit(attempts: &mut Vec<Attempt>) {
    if attempts.len() > ATTEMPTS_KEPT {
        let surplus = attempts.len() - ATTEMPTS_KEPT;
        attempts.drain(FIRST_KEPT..FIRST_KEPT + surplus);
    }
    let size: usize = attempts.iter().map(size_of_attempt).sum();
    if size <= ATTEMPTS_MAX {
        return;
    }
    let share = ATTEMPTS_MAX / attempts.len() - ATTEMPT_OVERHEAD;
    for attempt in attempts.iter_mut() {
        let failure = &mut attempt.failure;
        if attempt.worker.len() > share / 4 {
            attempt.worker = crate::id::Part::from_text(&attempt.worker).as_str().into();
        }
        truncate(&mut failure.reason, share / 4);
        keep_end(&mut failure.stdout, share / 4);
        keep_end(&mut failure.stderr, share / 4);
    }
}

fn size_of_attempt(attempt: &Attempt) -> usize {
    let failure = &attempt.failure;
    let texts = failure.reason.len() + failure.stdout.len() + failure.stderr.len();
    ATTEMPT_OVERHEAD + attempt.worker.len() + texts
}

/// Cuts a text to at most `limit` bytes, at a character boundary.
pub(super) fn truncate(text: &mut String, limit: usize) {
    text.truncate(beginning_of(text, limit).len());
}

fn keep_end(text: &mut String, limit: usize) {
    text.drain(..text.len() - end_of(text, limit).len());
}
