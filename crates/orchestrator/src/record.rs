//! Records of the log, from which the core is rebuilt.
//!
//! | key | value | meaning |
//! |---|---|---|
//! | `task.STAGE.BLOCK.PART` | [`TaskRecord`] | a live task |
//! | `try.STAGE.BLOCK.PART` | attempts | the failed attempts of a live task |
//! | `done.STAGE.BLOCK.PART` | [`DoneRecord`] | mark of a finished task, with its timeline; appended on condition that no other exists, so the first result wins |
//! | `part.STAGE.BLOCK.PART.NAME` | [`PartialResult`] | one result of a live task that takes several |
//! | `dead.STAGE.BLOCK.PART` | [`DeadRecord`] | a task in the dead-letter queue |
//! | `group.STAGE.KEY` | [`GroupRecord`] | mark of a barrier that fired; appended on the same condition |
//! | `run.STAGE.BLOCK.PART` | [`AttemptsInProgress`] | attempts at a live task that have begun, and the time of the next |
//! | `since.STAGE.KEY` | time | beginning of a group that is being gathered and whose time is limited |
//! | `opened` | time | a coordinator began with an empty log |
//! | `slot.BLOCK` | [`SlotRecord`] | a block whose deadline is counted or missed |
//! | `cursor` | block | the sequencer has emitted every block below this one |
//! | `source.NAME` | block | position of a source: the block that it continues with |
//! | `rewind.NAME` | [`RewindRecord`] | blocks of a source are being taken back; the next leader resumes this |
//! | `lease-key` | 32 bytes | key that leases are tagged with; drawn once |
//! | `past.SLOT` | [`HistoryRecord`] | entries of the history, from marks and from this append; slots are reused in turn, so the history is bounded |
//! | `count.STAGE` | numbers | counters of a stage as of this append; later marks are added to them |
//! | `pause.KIND.NAME` | [`PauseRecord`] | a stage, source or worker that an operator has paused |
//! | `totals` | numbers | counters of the whole workflow as of this append |
//!
//! A value is one version byte and the record in postcard's encoding. Records of versions 1 to 3 are read
//! too: the log of an earlier release is taken over as it is, and its records are written in the present
//! version when they change.

mod key;
mod past;
mod pause;
mod version1;
mod version2;
mod version3;

use std::sync::Arc;
use std::time::Duration;

pub use key::RecordKey;
pub use past::{
    FailedAttemptSummary, HISTORY_FAILURES_MAX, HISTORY_TEXT_MAX, HistoryEntry, HistoryRecord,
    PLACE_MAX, PLACES_MAX, TaskEnd, TaskOutcome, TaskTimeline,
};

pub use pause::{PAUSED_BY_MAX, PauseKind, PauseRecord};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::id::{Part, TaskId, WorkerId};
use crate::identity::Identity;
use crate::origin::Origins;
use crate::payload::Payload;
use crate::plan::Needs;
use crate::traces::TaskTrace;

/// Version of the encoding of values.
pub const RECORD_VERSION: u8 = 4;

/// Bytes that the fields of most records take at most, besides the payload.
const FIELDS_BYTES: usize = 512;

/// Value of a record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Record {
    /// See [`TaskRecord`].
    Task(TaskRecord),
    /// The failed attempts of a live task, oldest first.
    Attempts(Vec<Attempt>),
    /// See [`DoneRecord`].
    Done(DoneRecord),
    /// See [`DeadRecord`].
    Dead(DeadRecord),
    /// See [`GroupRecord`].
    Group(GroupRecord),
    /// Next block to emit.
    Cursor(u64),
    /// Next block that the source will submit.
    Source(u64),
    /// See [`PartialResult`].
    PartialResult(PartialResult),
    /// See [`SlotRecord`].
    Slot(SlotRecord),
    /// Key that leases are tagged with ([`crate::core::LeaseKey`]): a secret of the workflow's coordinators.
    LeaseKey([u8; 32]),
    /// See [`AttemptsInProgress`].
    Run(AttemptsInProgress),
    /// Time at which a group's first message was held, milliseconds since 1970-01-01 UTC.
    GroupStart(u64),
    /// Time at which a coordinator began with an empty log, milliseconds since 1970-01-01 UTC.
    Opened(u64),
    /// See [`HistoryRecord`].
    History(HistoryRecord),
    /// Counters, in an order that later releases only extend.
    Counts(Vec<u64>),
    /// See [`RewindRecord`].
    Rewind(RewindRecord),
    /// See [`PauseRecord`].
    Pause(PauseRecord),
}

/// A rewind that is under way. It takes several appends, and the coordinator may stop between two.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewindRecord {
    /// Queues that the source writes, by name.
    pub queues: Vec<Arc<str>>,
    /// First block that is taken back.
    pub from: u64,
}

/// A task, as accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRecord {
    /// Identity of the task.
    pub id: TaskId,
    /// Queue that the task came by.
    pub queue: Arc<str>,
    /// Last block that the task spans, inclusive; the first is `id.block`.
    pub last: u64,
    /// Value at the collector's grouping pointer; `None` at stages without one.
    pub group: Option<Arc<str>>,
    /// Requirements on a worker; `None` means the stage's.
    pub needs: Option<Needs>,
    /// Content of the message.
    pub payload: Payload,
    /// Time of acceptance, milliseconds since 1970-01-01 UTC. For people; no decision depends on it.
    pub at_ms: u64,
    /// Origins of the content: the submitted messages and stages that it comes from.
    pub origins: Origins,
    /// Place of the task in its block's trace. No decision depends on it.
    pub trace: TaskTrace,
}

#[cfg(test)]
impl TaskRecord {
    /// The record of a task of one block that came by the queue `q` and carries `1`, for tests.
    pub(crate) fn for_tests(id: TaskId) -> Self {
        Self {
            queue: "q".into(),
            last: id.block,
            group: None,
            needs: None,
            payload: Payload::json("1"),
            at_ms: 0,
            origins: Origins::default(),
            trace: TaskTrace::default(),
            id,
        }
    }
}

impl TaskRecord {
    /// Digest that distinguishes tasks of the same id by content: SHA-256 over the last block, the payload
    /// and its origins, in an encoding that no release changes.
    pub fn content(&self) -> [u8; 32] {
        let mut identity = Identity::new("proofmill task content 1");
        identity.number(self.last);
        self.payload.identify(&mut identity);
        identity.size(self.origins.len());
        for origin in self.origins.iter() {
            identity.option(origin.stage.as_ref(), |identity, stage| {
                identity.text(stage)
            });
            identity.number(origin.first);
            identity.number(origin.last);
            identity.bytes(&origin.digest);
            identity.number(u64::from(origin.payloads));
        }
        identity.finish()
    }
}

/// End of a finished task. New kinds are added at the end, since logs hold their numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EndKind {
    /// A worker completed it.
    Completed {
        /// Worker whose result completed the task.
        worker: WorkerId,
        /// Number of the attempt, from 1.
        attempt: u32,
    },
    /// The task became part of this group.
    Grouped {
        /// The group's key.
        key: String,
    },
    /// A strategy or the sequencer skipped it.
    Skipped {
        /// Reason.
        why: String,
    },
    /// An operator dropped it from the dead-letter queue.
    Dropped,
    /// The message came to its collector too late, and was skipped or passed on alone.
    Late {
        /// Reason: the group, or the blocks, already emitted.
        why: String,
        /// Whether it was passed on alone.
        passed_on: bool,
    },
}

/// The mark of a finished task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoneRecord {
    /// Kind of end.
    pub end: EndKind,
    /// Last block that the task spanned, inclusive. The mark is kept until the sequencer has passed it.
    pub last: u64,
    /// Time of the end, milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// First half of [`TaskRecord::content`], which distinguishes a repeated message from another one under
    /// the same id. `None` if an earlier release wrote the mark.
    pub content: Option<[u8; 16]>,
    /// Timeline of the task. `None` if an earlier release wrote the mark.
    pub timeline: Option<TaskTimeline>,
}

/// Name of a stage that groups by a field, and the value of that field or the reason for its absence.
pub type GroupingOf = (Arc<str>, Result<Arc<str>, String>);

/// One result of a task that takes several, kept until the required number has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartialResult {
    /// Name of the worker by the stage's `distinct` setting; no other result of the task has the same.
    pub distinct_name: Arc<str>,
    /// Worker that sent the result.
    pub worker: WorkerId,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Content of the result.
    pub payload: Payload,
    /// Grouping value for each collector that reads the result, by the collector's name.
    pub grouping: Vec<GroupingOf>,
    /// Time of arrival, milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
}

/// Deadline of a block, or of a span of blocks that came as one message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotRecord {
    /// Last block, inclusive.
    pub last: u64,
    /// Time at which the first message was accepted, milliseconds since 1970-01-01 UTC. After a restart the
    /// remaining time is computed from it.
    pub at_ms: u64,
    /// Whether the deadline has passed.
    pub missed: bool,
}

/// The mark of a barrier that fired.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupRecord {
    /// Last block of the group and of its members, inclusive.
    pub last: u64,
    /// Number of messages in the group.
    pub members: u32,
}

/// One failed attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Number of the attempt, from 1.
    pub number: u32,
    /// Worker that made the attempt.
    pub worker: WorkerId,
    /// Time of the failure, milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// Description of the failure.
    pub failure: Failure,
}

/// Attempts at a live task that have begun and not ended, and the time of the next.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AttemptsInProgress {
    /// The recorded attempts. After a restart they count as failed, unless their workers report them.
    pub attempts: Vec<StartedAttempt>,
    /// Time of the next attempt, milliseconds since 1970-01-01 UTC; `None` if none is scheduled.
    pub retry_at_ms: Option<u64>,
}

/// An attempt that has begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartedAttempt {
    /// Worker that makes the attempt.
    pub worker: WorkerId,
    /// Number of the attempt, from 1, as in its lease.
    pub attempt: u32,
    /// Time of its beginning, milliseconds since 1970-01-01 UTC. For people.
    pub at_ms: u64,
    /// Whether its worker already had the time to report it after an earlier restart.
    pub orphaned: bool,
}

/// Description of a failed attempt.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Failure {
    /// Whether another attempt would fail in the same way.
    pub permanent: bool,
    /// Reason, as text for people.
    pub reason: String,
    /// The program's exit code, where there was a program and it exited.
    pub exit: Option<i32>,
    /// End of the program's standard output.
    pub stdout: String,
    /// End of the program's standard error.
    pub stderr: String,
    /// Run time, milliseconds.
    pub wall_ms: u64,
}

// === impl Failure ===

impl Failure {
    /// A failure that every other attempt would meet too: the task is not retried.
    pub fn permanent(reason: impl Into<String>) -> Self {
        Self {
            permanent: true,
            ..Self::retryable(reason)
        }
    }

    /// A failure that another attempt may not meet: the task is retried while its stage allows it.
    pub fn retryable(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            ..Self::default()
        }
    }

    /// The same failure, of an attempt that ran for `ran`.
    #[must_use]
    pub fn after(self, ran: Duration) -> Self {
        Self {
            wall_ms: u64::try_from(ran.as_millis()).unwrap_or(u64::MAX),
            ..self
        }
    }
}

/// A task in the dead-letter queue, with the data needed to understand and to retry it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadRecord {
    /// The task.
    pub task: TaskRecord,
    /// Reason for the task's death.
    pub reason: String,
    /// Failed attempts that are kept.
    pub attempts: Vec<Attempt>,
    /// Time of death, milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// Whether the message reached its collector after its group, or its blocks, had been emitted.
    pub late: bool,
}

/// Error of reading a record of the log.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RecordError {
    /// The key is not a Proofmill key.
    #[error("the log holds a record under the unknown key {0:?}; it was written by something else")]
    UnknownKey(String),
    /// The value is of a version that this program does not know.
    #[error(
        "record {key:?} is of version {version}; this program reads version {RECORD_VERSION}: use the release that wrote it, or a newer one"
    )]
    UnknownVersion {
        /// Key of the record.
        key: String,
        /// Version of the record.
        version: u8,
    },
    /// The value does not decode.
    #[error("record {key:?} does not decode: {why}")]
    Malformed {
        /// Key of the record.
        key: String,
        /// Error of the decoder.
        why: String,
    },
}

// === impl Record ===

impl Record {
    /// Payload of the record; `None` if its kind has no payload.
    pub fn payload(&self) -> Option<&Payload> {
        match self {
            Self::Task(task) => Some(&task.payload),
            Self::Dead(dead) => Some(&dead.task.payload),
            Self::PartialResult(part) => Some(&part.payload),
            _ => None,
        }
    }

    /// The record's value in the log.
    pub fn encode(&self) -> Bytes {
        let payload = self.payload().map_or(0, Payload::inline_len);
        let mut bytes = Vec::with_capacity(payload + FIELDS_BYTES);
        bytes.push(RECORD_VERSION);
        let mut bytes = postcard::to_extend(self, bytes)
            .expect("records hold nothing that postcard cannot encode");
        // A fan-out has the records of all its tasks in memory at once.
        bytes.shrink_to_fit();
        Bytes::from(bytes)
    }

    /// Checks that the record is of the kind that `key` names, and about the same task.
    ///
    /// # Errors
    /// The mismatch, in words.
    pub(crate) fn fits(&self, key: &RecordKey) -> Result<(), &'static str> {
        let is = |fits: bool, why| if fits { Ok(()) } else { Err(why) };
        let other_task = "it is about another task than its key";
        match (key, self) {
            (RecordKey::Task(id), Self::Task(task)) => {
                is(task.id == *id, other_task)?;
                is(task.last >= id.block, "its last block is before its first")
            }
            (RecordKey::Dead(id), Self::Dead(dead)) => is(dead.task.id == *id, other_task),
            (RecordKey::PartialResult(_, name), Self::PartialResult(part)) => is(
                Part::from_text(&part.distinct_name) == *name,
                "it has another name than its key",
            ),
            (RecordKey::Pause(kind, name), Self::Pause(pause)) => is(
                pause.kind == *kind && Part::from_text(&pause.name) == *name,
                "it is about something else than its key",
            ),
            (RecordKey::Attempts(_), Self::Attempts(_))
            | (RecordKey::Done(_), Self::Done(_))
            | (RecordKey::Group(..), Self::Group(_))
            | (RecordKey::Slot(_), Self::Slot(_))
            | (RecordKey::Cursor, Self::Cursor(_))
            | (RecordKey::Source(_), Self::Source(_))
            | (RecordKey::Rewind(_), Self::Rewind(_))
            | (RecordKey::LeaseKey, Self::LeaseKey(_))
            | (RecordKey::Run(_), Self::Run(_))
            | (RecordKey::GroupStart(..), Self::GroupStart(_))
            | (RecordKey::Opened, Self::Opened(_))
            | (RecordKey::History(_), Self::History(_))
            | (RecordKey::Counts(_) | RecordKey::Totals, Self::Counts(_)) => Ok(()),
            _ => Err("it is of another kind than its key"),
        }
    }

    /// Decodes a value of the log; `key` is used for the error.
    pub fn decode(key: &str, value: &[u8]) -> Result<Self, RecordError> {
        let malformed = |why: &str| RecordError::Malformed {
            key: key.to_owned(),
            why: why.into(),
        };
        match value {
            [] => Err(malformed("it is empty")),
            [RECORD_VERSION, rest @ ..] => {
                postcard::from_bytes(rest).map_err(|error| malformed(&error.to_string()))
            }
            [version3::VERSION, rest @ ..] => postcard::from_bytes::<version3::Record3>(rest)
                .map(Self::from)
                .map_err(|error| malformed(&error.to_string())),
            [version2::VERSION, rest @ ..] => postcard::from_bytes::<version2::Record2>(rest)
                .map(Self::from)
                .map_err(|error| malformed(&error.to_string())),
            [version1::VERSION, rest @ ..] => postcard::from_bytes::<version1::Record1>(rest)
                .map(Self::from)
                .map_err(|error| malformed(&error.to_string())),
            [version, ..] => Err(RecordError::UnknownVersion {
                key: key.to_owned(),
                version: *version,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> TaskId {
        TaskId {
            stage: "prove".into(),
            block: 7,
            part: Part::whole().element(2),
        }
    }

    /// Lease tags cover it and outlive releases, so it never changes.
    #[test]
    fn the_content_of_a_task_is_pinned() {
        let task = TaskRecord {
            id: id(),
            queue: "chunks".into(),
            last: 9,
            group: None,
            needs: None,
            payload: Payload::json(&b"{}"[..]),
            at_ms: 1,
            origins: Origins::default(),
            trace: TaskTrace::default(),
        };
        assert_eq!(
            hex::encode(task.content()),
            "c9b5ac7604a78eb8200321775c4f3caf8fa0051613be64da9420a158561c628c"
        );
    }

    #[test]
    fn values_round_trip_and_versions_are_checked() {
        let record = Record::Task(TaskRecord {
            id: id(),
            queue: "chunks".into(),
            last: 9,
            group: Some("a".into()),
            needs: Some(Needs {
                labels: ["gpu".into()].into(),
                memory: 1 << 30,
            }),
            payload: Payload::json(&b"{}"[..]),
            at_ms: 1,
            origins: crate::origin::submitted(7, 9, &Payload::json(&b"{}"[..])),
            trace: TaskTrace::submitted("w", "chunks", (7, &Part::whole()), None).again(),
        });
        let bytes = record.encode();
        assert_eq!(Record::decode("k", &bytes).expect("ours"), record);
        let mut other = bytes.to_vec();
        other[0] = 9;
        assert!(matches!(
            Record::decode("k", &other),
            Err(RecordError::UnknownVersion { version: 9, .. })
        ));
        for cut in 0..bytes.len() {
            assert!(Record::decode("k", &bytes[..cut]).is_err(), "cut at {cut}");
        }
    }
}
