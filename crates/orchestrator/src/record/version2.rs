//! Records of version 2, in which marks have no content digest and dead letters do not say whether they came
//! late. They are read, and never written.

use serde::Deserialize;

use super::version3::TaskRecord3;
use super::{
    Attempt, AttemptsInProgress, DeadRecord, DoneRecord, EndKind, GroupRecord, PartialResult,
    Record, SlotRecord,
};

/// Version byte of these records.
pub(super) const VERSION: u8 = 2;

/// [`Record`] in version 2.
#[derive(Deserialize)]
#[serde(rename = "Record")]
#[cfg_attr(test, derive(serde::Serialize))]
pub(super) enum Record2 {
    Task(TaskRecord3),
    Attempts(Vec<Attempt>),
    Done(DoneRecord2),
    Dead(DeadRecord2),
    Group(GroupRecord),
    Cursor(u64),
    Source(u64),
    PartialResult(PartialResult),
    Slot(SlotRecord),
    LeaseKey([u8; 32]),
    Run(AttemptsInProgress),
    GroupStart(u64),
    Opened(u64),
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
pub(super) struct DoneRecord2 {
    end: EndKind,
    last: u64,
    at_ms: u64,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
pub(super) struct DeadRecord2 {
    task: TaskRecord3,
    reason: String,
    attempts: Vec<Attempt>,
    at_ms: u64,
}

impl From<Record2> for Record {
    fn from(record: Record2) -> Self {
        match record {
            Record2::Task(task) => Self::Task(task.into()),
            Record2::Attempts(attempts) => Self::Attempts(attempts),
            Record2::Done(done) => Self::Done(done.into()),
            Record2::Dead(dead) => Self::Dead(DeadRecord {
                task: dead.task.into(),
                reason: dead.reason,
                attempts: dead.attempts,
                at_ms: dead.at_ms,
                late: false,
            }),
            Record2::Group(group) => Self::Group(group),
            Record2::Cursor(next) => Self::Cursor(next),
            Record2::Source(next) => Self::Source(next),
            Record2::PartialResult(part) => Self::PartialResult(part),
            Record2::Slot(slot) => Self::Slot(slot),
            Record2::LeaseKey(key) => Self::LeaseKey(key),
            Record2::Run(run) => Self::Run(run),
            Record2::GroupStart(since_ms) => Self::GroupStart(since_ms),
            Record2::Opened(opened_ms) => Self::Opened(opened_ms),
        }
    }
}

impl From<DoneRecord2> for DoneRecord {
    fn from(done: DoneRecord2) -> Self {
        Self {
            end: done.end,
            last: done.last,
            at_ms: done.at_ms,
            content: None,
            timeline: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_version_2_are_read() {
        let read = |record: &Record2| {
            let bytes = postcard::to_extend(record, vec![VERSION]).expect("encodes");
            Record::decode("key", &bytes).expect("is read")
        };
        let done = DoneRecord2 {
            end: EndKind::Grouped { key: "7".into() },
            last: 8,
            at_ms: 5,
        };
        let expected = DoneRecord {
            end: EndKind::Grouped { key: "7".into() },
            last: 8,
            at_ms: 5,
            content: None,
            timeline: None,
        };
        assert_eq!(read(&Record2::Done(done)), Record::Done(expected));
        assert_eq!(read(&Record2::Opened(9)), Record::Opened(9));
        // Written by a release of that version, byte for byte: a task that an operator dropped, and the time
        // at which a log was opened.
        for (bytes, expected) in [
            (
                &b"\x02\x02\x03\x08\x05"[..],
                Record::Done(DoneRecord {
                    end: EndKind::Dropped,
                    last: 8,
                    at_ms: 5,
                    content: None,
                    timeline: None,
                }),
            ),
            (b"\x02\x0c\x09", Record::Opened(9)),
        ] {
            assert_eq!(Record::decode("key", bytes).expect("is read"), expected);
        }
    }
}
