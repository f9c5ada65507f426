//! What fits into the log: its batches and values are bounded, and an append that it must refuse
//! would stop everything.

use proofmill_bus::{MAX_BATCH_OPS, MAX_VALUE_BYTES};

use super::change::Change;
use crate::id::TaskId;
use crate::payload::{NESTING_MAX, Payload};
use crate::record::{Attempt, PartRecord, Record, RecordKey, TaskRecord};

/// Bytes of a task's record, at most: its dead letter has to hold its attempts too.
pub const TASK_MAX: usize = MAX_VALUE_BYTES - ATTEMPTS_MAX - 32 * 1024;

/// Records that an append may get beside those that it is for: its part of the history, and counters.
pub(super) const BESIDE_MAX: usize = 8;

/// Records removed in one append, at most: a batch of the log is bounded.
pub(super) const FORGET_MAX: usize = 500;

/// Bytes of a reason in a dead letter, at most.
pub(super) const REASON_MAX: usize = 8 * 1024;

/// Records that an append is for, at most.
const CHANGES_MAX: usize = MAX_BATCH_OPS - BESIDE_MAX;

/// Bytes of the attempts of a task, at most.
const ATTEMPTS_MAX: usize = 128 * 1024;

/// Attempts kept of a task, at most: the first ones, and the last.
const ATTEMPTS_KEPT: usize = 256;
const FIRST_KEPT: usize = 16;

/// Of an attempt, besides its texts.
const ATTEMPT_OVERHEAD: usize = 64;

/// Why the log would refuse these changes, if it would.
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

/// Why a task's record is too large for the log, if it is.
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

/// Why one of several results is too large, if it is.
pub(super) fn excess_of_part(id: &TaskId, part: &PartRecord) -> Option<String> {
    let size = size_of_payload(&part.payload);
    (size > TASK_MAX).then(|| {
        format!(
            "a result of task {id} has {size} bytes, the limit is {TASK_MAX}: keep large payloads \
             as blobs"
        )
    })
}

/// Bytes of the encoded record, or a few more.
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

/// Shortens the texts of attempts until they fit beside their task. What is kept of a stream is
/// its end: that is where a program says why it failed.
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

/// Cuts a text after `limit` bytes, or a little before.
pub(super) fn truncate(text: &mut String, limit: usize) {
    if let Some(cut) = (0..=limit.min(text.len()))
        .rev()
        .find(|at| text.is_char_boundary(*at))
    {
        text.truncate(cut);
    }
}

fn keep_end(text: &mut String, limit: usize) {
    let from = text.len().saturating_sub(limit);
    if let Some(from) = (from..=text.len()).find(|at| text.is_char_boundary(*at)) {
        text.drain(..from);
    }
}
