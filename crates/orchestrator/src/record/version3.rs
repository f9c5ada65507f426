//! Records of version 3, in which tasks have no place in a trace. They are read, and never written.

use std::sync::Arc;

use serde::Deserialize;

use super::{
    Attempt, AttemptsInProgress, DeadRecord, DoneRecord, EndKind, FailedAttemptSummary,
    GroupRecord, HistoryEntry, HistoryRecord, PartialResult, Record, RewindRecord, SlotRecord,
    TaskEnd, TaskOutcome, TaskRecord, TaskTimeline,
};
use crate::id::{TaskId, WorkerId};
use crate::origin::Origins;
use crate::payload::Payload;
use crate::plan::Needs;
use crate::traces::TaskTrace;

/// Version byte of these records.
pub(super) const VERSION: u8 = 3;

/// [`Record`] in version 3.
#[derive(Deserialize)]
#[serde(rename = "Record")]
#[cfg_attr(test, derive(serde::Serialize))]
pub(super) enum Record3 {
    Task(TaskRecord3),
    Attempts(Vec<Attempt>),
    Done(DoneRecord3),
    Dead(DeadRecord3),
    Group(GroupRecord),
    Cursor(u64),
    Source(u64),
    PartialResult(PartialResult),
    Slot(SlotRecord),
    LeaseKey([u8; 32]),
    Run(AttemptsInProgress),
    GroupStart(u64),
    Opened(u64),
    History(HistoryRecord3),
    Counts(Vec<u64>),
    Rewind(RewindRecord),
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
pub(super) struct TaskRecord3 {
    id: TaskId,
    queue: Arc<str>,
    last: u64,
    group: Option<Arc<str>>,
    needs: Option<Needs>,
    payload: Payload,
    at_ms: u64,
    origins: Origins,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
pub(super) struct DoneRecord3 {
    end: EndKind,
    last: u64,
    at_ms: u64,
    content: Option<[u8; 16]>,
    timeline: Option<TaskTimeline3>,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
pub(super) struct TaskTimeline3 {
    accepted_ms: u64,
    begun_ms: Option<u64>,
    ran_ms: Option<u64>,
    by: Vec<(WorkerId, u32)>,
    failed: u32,
    failures: Vec<FailedAttemptSummary>,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
pub(super) struct DeadRecord3 {
    task: TaskRecord3,
    reason: String,
    attempts: Vec<Attempt>,
    at_ms: u64,
    late: bool,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
pub(super) struct HistoryRecord3 {
    number: u64,
    marks_to: u64,
    entries: Vec<HistoryEntry3>,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
pub(super) enum HistoryEntry3 {
    TaskEnd(TaskEnd3),
    Deadline {
        first: u64,
        last: u64,
        at_ms: u64,
        missed: bool,
    },
    TakenBack {
        source: Arc<str>,
        first: u64,
        last: u64,
        emitted: bool,
        at_ms: u64,
    },
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
pub(super) struct TaskEnd3 {
    task: TaskId,
    last: u64,
    accepted_ms: u64,
    begun_ms: Option<u64>,
    ran_ms: Option<u64>,
    ended_ms: u64,
    failed: u32,
    failures: Vec<FailedAttemptSummary>,
    outcome: TaskOutcome,
}

impl From<Record3> for Record {
    fn from(record: Record3) -> Self {
        match record {
            Record3::Task(task) => Self::Task(task.into()),
            Record3::Attempts(attempts) => Self::Attempts(attempts),
            Record3::Done(done) => Self::Done(done.into()),
            Record3::Dead(dead) => Self::Dead(DeadRecord {
                task: dead.task.into(),
                reason: dead.reason,
                attempts: dead.attempts,
                at_ms: dead.at_ms,
                late: dead.late,
            }),
            Record3::Group(group) => Self::Group(group),
            Record3::Cursor(next) => Self::Cursor(next),
            Record3::Source(next) => Self::Source(next),
            Record3::PartialResult(part) => Self::PartialResult(part),
            Record3::Slot(slot) => Self::Slot(slot),
            Record3::LeaseKey(key) => Self::LeaseKey(key),
            Record3::Run(run) => Self::Run(run),
            Record3::GroupStart(since_ms) => Self::GroupStart(since_ms),
            Record3::Opened(opened_ms) => Self::Opened(opened_ms),
            Record3::History(history) => Self::History(HistoryRecord {
                number: history.number,
                marks_to: history.marks_to,
                entries: history.entries.into_iter().map(Into::into).collect(),
            }),
            Record3::Counts(numbers) => Self::Counts(numbers),
            Record3::Rewind(rewind) => Self::Rewind(rewind),
        }
    }
}

impl From<TaskRecord3> for TaskRecord {
    fn from(task: TaskRecord3) -> Self {
        Self {
            id: task.id,
            queue: task.queue,
            last: task.last,
            group: task.group,
            needs: task.needs,
            payload: task.payload,
            at_ms: task.at_ms,
            origins: task.origins,
            // The core adds the trace of the block.
            trace: TaskTrace::default(),
        }
    }
}

impl From<DoneRecord3> for DoneRecord {
    fn from(done: DoneRecord3) -> Self {
        Self {
            end: done.end,
            last: done.last,
            at_ms: done.at_ms,
            content: done.content,
            timeline: done.timeline.map(|timeline| TaskTimeline {
                accepted_ms: timeline.accepted_ms,
                begun_ms: timeline.begun_ms,
                ran_ms: timeline.ran_ms,
                by: timeline.by,
                failed: timeline.failed,
                failures: timeline.failures,
                trace: TaskTrace::default(),
            }),
        }
    }
}

impl From<HistoryEntry3> for HistoryEntry {
    fn from(entry: HistoryEntry3) -> Self {
        match entry {
            HistoryEntry3::TaskEnd(end) => Self::TaskEnd(TaskEnd {
                task: end.task,
                last: end.last,
                accepted_ms: end.accepted_ms,
                begun_ms: end.begun_ms,
                ran_ms: end.ran_ms,
                ended_ms: end.ended_ms,
                recorded_ms: None,
                failed: end.failed,
                failures: end.failures,
                outcome: end.outcome,
                trace: TaskTrace::default(),
            }),
            HistoryEntry3::Deadline {
                first,
                last,
                at_ms,
                missed,
            } => Self::Deadline {
                first,
                last,
                at_ms,
                missed,
            },
            HistoryEntry3::TakenBack {
                source,
                first,
                last,
                emitted,
                at_ms,
            } => Self::TakenBack {
                source,
                first,
                last,
                emitted,
                at_ms,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Part;

    fn id() -> TaskId {
        TaskId {
            stage: "prove".into(),
            block: 7,
            part: Part::whole(),
        }
    }

    fn read(record: &Record3) -> Record {
        let bytes = postcard::to_extend(record, vec![VERSION]).expect("encodes");
        Record::decode("key", &bytes).expect("is read")
    }

    #[test]
    fn records_of_version_3_are_read() {
        let task = TaskRecord3 {
            id: id(),
            queue: "blocks".into(),
            last: 8,
            group: None,
            needs: None,
            payload: Payload::json("{}"),
            at_ms: 5,
            origins: Origins::default(),
        };
        let Record::Task(task) = read(&Record3::Task(task)) else {
            panic!("another kind");
        };
        assert_eq!((task.id, task.last, task.at_ms), (id(), 8, 5));
        assert_eq!(task.trace, TaskTrace::default());
        let end = TaskEnd3 {
            task: id(),
            last: 8,
            accepted_ms: 1,
            begun_ms: Some(2),
            ran_ms: None,
            ended_ms: 3,
            failed: 0,
            failures: Vec::new(),
            outcome: TaskOutcome::Dropped,
        };
        let taken_back = HistoryEntry3::TakenBack {
            source: "chain".into(),
            first: 1,
            last: 2,
            emitted: true,
            at_ms: 9,
        };
        let deadline = HistoryEntry3::Deadline {
            first: 1,
            last: 2,
            at_ms: 9,
            missed: true,
        };
        let history = HistoryRecord3 {
            number: 1,
            marks_to: 2,
            entries: vec![HistoryEntry3::TaskEnd(end), taken_back, deadline],
        };
        let Record::History(history) = read(&Record3::History(history)) else {
            panic!("another kind");
        };
        assert_eq!(history.entries.len(), 3);
        assert_eq!(history.entries[0].at_ms(), 3);
        assert_eq!(read(&Record3::Counts(vec![4])), Record::Counts(vec![4]));
        // Written by a release of that version, byte for byte: a task that an operator dropped.
        let bytes = b"\x03\x02\x03\x08\x05\x00\x01\x01\x00\x00\x00\x00\x00";
        let Record::Done(done) = Record::decode("key", bytes).expect("is read") else {
            panic!("another kind");
        };
        assert_eq!((done.end, done.last), (EndKind::Dropped, 8));
        assert_eq!(done.timeline.expect("some").accepted_ms, 1);
    }
}
