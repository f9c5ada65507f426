//! The trait that a grouping strategy implements.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::id::TaskId;
use crate::payload::Payload;

/// A message as a strategy sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The message's task id at the collector.
    pub id: TaskId,
    /// The queue it came by.
    pub queue: Arc<str>,
    /// First block it spans.
    pub first: u64,
    /// Last block it spans, inclusive.
    pub last: u64,
    /// Its value at the collector's grouping pointer, where the stage has one.
    pub group: Option<Arc<str>>,
    /// What it carries: inline bytes, or a reference to a blob. Nothing, where the strategy does not
    /// look at it and is in another process ([`StrategyFactory::reads_payloads`]).
    pub payload: Payload,
}

/// A finished group: its members are consumed, and one message with their payloads goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Identifies the group at this collector: a group with a key that was emitted before is not
    /// emitted again. That is remembered until the sequencer has passed the group's last block,
    /// or, beside the sequencer's path, for as long as finished tasks are.
    pub key: String,
    /// First block of the message that goes on.
    pub first: u64,
    /// Last block of the message that goes on, inclusive.
    pub last: u64,
    /// The members; the core orders their payloads.
    pub members: Vec<TaskId>,
}

/// What a strategy says of a message offered to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// Kept: the group with this key waits for more.
    InProgress {
        /// The key of the group it waits in.
        key: String,
    },
    /// With this message these groups are complete. They need not contain the message itself:
    /// then it is kept, and offered once more to learn where. Every member must be held, else the
    /// group's members go to the dead-letter queue.
    Finished(Vec<Group>),
    /// Not now: offer it again after this long.
    Postpone(Duration),
    /// Consume it without any effect, for this reason.
    Skip(String),
}

/// What becomes of a group whose T_collect has passed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Overdue {
    /// Emit what there is.
    Emit(Group),
    /// Give its members up to the dead-letter queue, for this reason.
    Reject {
        /// The members.
        members: Vec<TaskId>,
        /// What was missing.
        why: String,
    },
    /// No such group waits any more.
    Gone,
}

/// A grouping strategy: deterministic, without input or output.
///
/// Its state may depend only on the messages offered to it that no finished group has consumed,
/// and the order in which they were offered: that is what a restart replays.
pub trait Strategy: Send {
    /// Takes a message into account. Offering a message again that is already held must change
    /// nothing and return what holds of it now.
    fn offer(&mut self, message: &Member) -> Outcome;

    /// T_collect has passed since the first message of group `key` was held.
    fn overdue(&mut self, key: &str) -> Overdue;

    /// Forgets a message that was removed from outside (dropped by an operator).
    fn forget(&mut self, id: &TaskId);
}

/// Makes a [`Strategy`] for a collector stage.
pub trait StrategyFactory: Send + Sync + fmt::Debug {
    /// A strategy with no messages.
    fn build(&self) -> Box<dyn Strategy>;

    /// What all messages that may come into one group have in common, where that can be told from
    /// each by itself: messages that differ in it may be offered to different instances. `None`:
    /// that cannot be told, and one instance gets all.
    fn affinity(&self, message: &Member) -> Option<String> {
        let _ = message;
        None
    }

    /// Whether a message that waits under the key `waits_in` would have belonged to a group that was
    /// emitted: the one with the key `emitted`, as far as a part can hold it, and the last block
    /// `last`. Asked of the groups that end first among those that end with the message's last block
    /// or later. Not asked where `waits_in` itself was emitted: then it is late in any case.
    fn missed(&self, message: &Member, waits_in: &str, emitted: &str, last: u64) -> bool {
        let _ = (message, waits_in, emitted, last);
        false
    }

    /// Whether its strategies look at what messages carry.
    fn reads_payloads(&self) -> bool {
        true
    }
}

impl<F> StrategyFactory for F
where
    F: Fn() -> Box<dyn Strategy> + Send + Sync + fmt::Debug,
{
    fn build(&self) -> Box<dyn Strategy> {
        self()
    }
}
