//! Keys of records in the log.

use std::sync::Arc;

use proofmill_bus::{InvalidKey, Key};

use super::{PauseKind, RecordError};
use crate::id::{Part, TaskId};

/// Key of the record that holds the lease key.
const LEASE_KEY: &str = "lease-key";

/// Identity of a record: the parsed form of its key in the log.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RecordKey {
    /// A live task.
    Task(TaskId),
    /// Failed attempts of a live task.
    Attempts(TaskId),
    /// Mark of a finished task.
    Done(TaskId),
    /// Dead letter of a task.
    Dead(TaskId),
    /// One of a task's results, and the distinct name of its worker.
    PartialResult(TaskId, Part),
    /// Mark of a barrier that fired: the collector's stage, and the group's key.
    Group(Arc<str>, Part),
    /// Deadline of the blocks from this one on.
    Slot(u64),
    /// Position of the sequencer.
    Cursor,
    /// Position of a source.
    Source(Arc<str>),
    /// Rewind of a source that is under way.
    Rewind(Arc<str>),
    /// Key that leases are tagged with.
    LeaseKey,
    /// Attempts at a live task that have begun.
    Run(TaskId),
    /// Beginning of a group that is being gathered: the collector's stage, and the group's key.
    GroupStart(Arc<str>, Part),
    /// Mark of a log that was empty when a coordinator opened it.
    Opened,
    /// A slot of the history.
    History(u64),
    /// Counters of a stage.
    Counts(Arc<str>),
    /// Counters of the whole workflow.
    Totals,
    /// Pause of a stage, source or worker, by its name.
    Pause(PauseKind, Part),
}

// === impl RecordKey ===

impl RecordKey {
    /// The record's key in the log.
    ///
    /// # Errors
    /// A name in the key has a character that keys cannot hold, or the key is too long. Names come from other
    /// processes too.
    pub fn to_key(&self) -> Result<Key, InvalidKey> {
        let text = match self {
            Self::Task(id) => task_key("task", id),
            Self::Attempts(id) => task_key("try", id),
            Self::Done(id) => task_key("done", id),
            Self::Dead(id) => task_key("dead", id),
            Self::PartialResult(id, name) => format!("{}.{name}", task_key("part", id)),
            Self::Group(stage, key) => format!("group.{stage}.{key}"),
            Self::Slot(block) => format!("slot.{block}"),
            Self::Cursor => "cursor".to_owned(),
            Self::Source(name) => format!("source.{name}"),
            Self::Rewind(name) => format!("rewind.{name}"),
            Self::LeaseKey => LEASE_KEY.to_owned(),
            Self::Run(id) => task_key("run", id),
            Self::GroupStart(stage, key) => format!("since.{stage}.{key}"),
            Self::Opened => "opened".to_owned(),
            Self::History(slot) => format!("past.{slot}"),
            Self::Counts(stage) => format!("count.{stage}"),
            Self::Totals => "totals".to_owned(),
            Self::Pause(kind, name) => format!("pause.{kind}.{name}"),
        };
        Key::new(text)
    }

    /// Whether the record accompanies others in their appends.
    pub(crate) fn is_auxiliary(&self) -> bool {
        matches!(self, Self::History(_) | Self::Counts(_) | Self::Totals)
    }

    /// Parses a key of the log.
    pub fn parse(text: &str) -> Result<Self, RecordError> {
        Self::parse_known(text).ok_or_else(|| RecordError::UnknownKey(text.to_owned()))
    }

    fn parse_known(text: &str) -> Option<Self> {
        if text == "cursor" {
            return Some(Self::Cursor);
        }
        if text == LEASE_KEY {
            return Some(Self::LeaseKey);
        }
        if text == "opened" {
            return Some(Self::Opened);
        }
        if text == "totals" {
            return Some(Self::Totals);
        }
        let (kind, rest) = text.split_once('.')?;
        if kind == "past" {
            return Some(Self::History(rest.parse().ok()?));
        }
        if kind == "count" {
            return (!rest.contains('.')).then(|| Self::Counts(rest.into()));
        }
        if kind == "source" {
            return Some(Self::Source(rest.into()));
        }
        if kind == "rewind" {
            return Some(Self::Rewind(rest.into()));
        }
        if kind == "slot" {
            return Some(Self::Slot(rest.parse().ok()?));
        }
        if kind == "pause" {
            let (kind, name) = rest.split_once('.')?;
            return Some(Self::Pause(
                PauseKind::of_word(kind)?,
                Part::new(name).ok()?,
            ));
        }
        let mut tokens = rest.split('.');
        if let "group" | "since" = kind {
            let (stage, key) = (tokens.next()?.into(), Part::new(tokens.next()?).ok()?);
            let only = tokens.next().is_none();
            return only.then_some(match kind {
                "group" => Self::Group(stage, key),
                _ => Self::GroupStart(stage, key),
            });
        }
        let (stage, block, part) = (tokens.next()?, tokens.next()?, tokens.next()?);
        let name = match kind {
            "part" => Some(Part::new(tokens.next()?).ok()?),
            _ => None,
        };
        if tokens.next().is_some() {
            return None;
        }
        let id = TaskId {
            stage: stage.into(),
            block: block.parse().ok()?,
            part: Part::new(part).ok()?,
        };
        match kind {
            "task" => Some(Self::Task(id)),
            "try" => Some(Self::Attempts(id)),
            "done" => Some(Self::Done(id)),
            "dead" => Some(Self::Dead(id)),
            "run" => Some(Self::Run(id)),
            "part" => Some(Self::PartialResult(id, name?)),
            _ => None,
        }
    }
}

fn task_key(kind: &str, id: &TaskId) -> String {
    format!("{kind}.{}.{}.{}", id.stage, id.block, id.part)
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

    #[test]
    fn keys_round_trip() {
        for key in [
            RecordKey::Task(id()),
            RecordKey::Attempts(id()),
            RecordKey::Done(id()),
            RecordKey::Dead(id()),
            RecordKey::PartialResult(id(), Part::from_text("prover:a b")),
            RecordKey::Group("batch".into(), Part::from_text("α")),
            RecordKey::Slot(7),
            RecordKey::Cursor,
            RecordKey::Source("blocks".into()),
            RecordKey::Rewind("blocks".into()),
            RecordKey::LeaseKey,
            RecordKey::Run(id()),
            RecordKey::GroupStart("batch".into(), Part::from_text("α")),
            RecordKey::Opened,
            RecordKey::History(19_999),
            RecordKey::Counts("batch".into()),
            RecordKey::Totals,
            RecordKey::Pause(PauseKind::Worker, Part::from_text("prove-1@host.a")),
        ] {
            let text = key.to_key().expect("valid");
            assert_eq!(RecordKey::parse(text.as_str()).expect("ours"), key);
        }
    }

    #[test]
    fn foreign_keys_are_refused() {
        for text in [
            "",
            "task",
            "task.a.b.c",
            "task.a.1.0.extra",
            "thing.a.1.0",
            "task.a.1.",
            "part.a.1.0",
            "part.a.1.0.b.c",
            "past.x",
            "count.a.b",
            "totals.a",
            "pause.stage",
            "pause.queue.a",
            "pause.stage.a.b",
        ] {
            assert!(RecordKey::parse(text).is_err(), "{text:?}");
        }
    }
}
