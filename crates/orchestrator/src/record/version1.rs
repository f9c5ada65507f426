//! Records of version 1, in which tasks have no origins. They are read, and never written.

use std::sync::Arc;

use serde::Deserialize;

use super::version2::DoneRecord2;
use super::{Attempt, DeadRecord, GroupRecord, PartialResult, Record, SlotRecord, TaskRecord};
use crate::id::TaskId;
use crate::origin::Origins;
use crate::payload::Payload;
use crate::plan::Needs;
use crate::traces::TaskTrace;

/// Version byte of these records.
pub(super) const VERSION: u8 = 1;

/// [`Record`] in version 1, without the kinds that were added later.
#[derive(Deserialize)]
#[serde(rename = "Record")]
#[cfg_attr(test, derive(serde::Serialize))]
pub(super) enum Record1 {
    Task(TaskRecord1),
    Attempts(Vec<Attempt>),
    Done(DoneRecord2),
    Dead(DeadRecord1),
    Group(GroupRecord),
    Cursor(u64),
    Source(u64),
    PartialResult(PartialResult),
    Slot(SlotRecord),
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
pub(super) struct TaskRecord1 {
    id: TaskId,
    queue: Arc<str>,
    last: u64,
    group: Option<Arc<str>>,
    needs: Option<Needs>,
    payload: Payload,
    at_ms: u64,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
pub(super) struct DeadRecord1 {
    task: TaskRecord1,
    reason: String,
    attempts: Vec<Attempt>,
    at_ms: u64,
}

impl From<Record1> for Record {
    fn from(record: Record1) -> Self {
        match record {
            Record1::Task(task) => Self::Task(task.into()),
            Record1::Attempts(attempts) => Self::Attempts(attempts),
            Record1::Done(done) => Self::Done(done.into()),
            Record1::Dead(dead) => Self::Dead(DeadRecord {
                task: dead.task.into(),
                reason: dead.reason,
                attempts: dead.attempts,
                at_ms: dead.at_ms,
                late: false,
            }),
            Record1::Group(group) => Self::Group(group),
            Record1::Cursor(next) => Self::Cursor(next),
            Record1::Source(next) => Self::Source(next),
            Record1::PartialResult(part) => Self::PartialResult(part),
            Record1::Slot(slot) => Self::Slot(slot),
        }
    }
}

impl From<TaskRecord1> for TaskRecord {
    fn from(task: TaskRecord1) -> Self {
        Self {
            id: task.id,
            queue: task.queue,
            last: task.last,
            group: task.group,
            needs: task.needs,
            payload: task.payload,
            at_ms: task.at_ms,
            // The core adds the origins that are certain.
            origins: Origins::default(),
            trace: TaskTrace::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Part;

    #[test]
    fn records_of_version_1_are_read() {
        let task = || TaskRecord1 {
            id: TaskId {
                stage: "prove".into(),
                block: 7,
                part: Part::whole(),
            },
            queue: "blocks".into(),
            last: 8,
            group: Some("g".into()),
            needs: None,
            payload: Payload::json("{}"),
            at_ms: 5,
        };
        let read = |record: &Record1| {
            let bytes = postcard::to_extend(record, vec![VERSION]).expect("encodes");
            Record::decode("key", &bytes).expect("is read")
        };
        let expected = TaskRecord::from(task());
        assert_eq!(read(&Record1::Task(task())), Record::Task(expected.clone()));
        let dead = DeadRecord1 {
            task: task(),
            reason: "why".into(),
            attempts: Vec::new(),
            at_ms: 6,
        };
        let Record::Dead(read_dead) = read(&Record1::Dead(dead)) else {
            panic!("another kind");
        };
        assert_eq!(read_dead.task, expected);
        assert_eq!(read(&Record1::Cursor(9)), Record::Cursor(9));
        // Written by a release of that version, byte for byte.
        let bytes = b"\x01\x00\x05prove\x07\x010\x06blocks\x08\x01\x01g\x00\x00\x00\x02{}\x05";
        assert_eq!(
            Record::decode("key", bytes).expect("is read"),
            Record::Task(expected)
        );
    }
}
