//! The trait that a grouping strategy implements.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::id::TaskId;
use crate::payload::Payload;

/// A message in the form that strategies get.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Task id of the message at the collector.
    pub id: TaskId,
    /// Queue that the message came by.
    pub queue: Arc<str>,
    /// First block that the message spans.
    pub first: u64,
    /// Last block that the message spans, inclusive.
    pub last: u64,
    /// Value at the collector's grouping pointer; `None` if the stage has no pointer.
    pub group: Option<Arc<str>>,
    /// Inline bytes, or a reference to a blob. Empty if the strategy runs in another process and does not
    /// read payloads ([`StrategyFactory::reads_payloads`]).
    pub payload: Payload,
}

/// A finished group: its members are consumed, and one message with their payloads is passed on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Key of the group at this collector. A group whose key was emitted before is not emitted again. Keys
    /// are remembered until the sequencer has passed the group's last block, or, for stages that do not lead
    /// to a sequencer, as long as finished tasks are.
    pub key: String,
    /// First block of the message that is passed on.
    pub first: u64,
    /// Last block of the message that is passed on, inclusive.
    pub last: u64,
    /// Members in any order; the core orders their payloads.
    pub members: Vec<TaskId>,
}

/// A strategy's decision about a message offered to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OfferDecision {
    /// The strategy keeps the message: its group waits for more.
    InProgress {
        /// Key of the group.
        key: String,
    },
    /// These groups are complete with the message. They need not contain the message itself; it is then kept,
    /// and offered once more to learn its group. Every member must be held by the collector, otherwise the
    /// group's members go to the dead-letter queue.
    Finished(Vec<Group>),
    /// The message must be offered again after this delay, at least 1 ms.
    Postpone(Duration),
    /// The message is consumed without effect, for this reason.
    Skip(String),
}

/// A strategy's decision about a group whose T_collect has passed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OverdueDecision {
    /// Emit this group, though incomplete.
    Emit(Group),
    /// Move the members to the dead-letter queue.
    Reject {
        /// The members.
        members: Vec<TaskId>,
        /// Reason: the messages that were missing.
        why: String,
    },
    /// No group with this key waits any more.
    Gone,
}

/// A grouping strategy: deterministic, without input or output.
///
/// Its state may depend only on the messages offered to it that no finished group has consumed, and on the
/// order in which they were offered, because a restart replays exactly these.
pub trait Strategy: Send {
    /// Decides about a message. Offering a message that is held already must change nothing and return the
    /// present decision.
    fn offer(&mut self, message: &Member) -> OfferDecision;

    /// Decides about group `key` after T_collect has passed since its first message was held.
    fn overdue(&mut self, key: &str) -> OverdueDecision;

    /// Removes a message that was taken away from outside, for example by an operator's cancellation.
    fn forget(&mut self, id: &TaskId);
}

/// Makes a [`Strategy`] for a collector stage.
pub trait StrategyFactory: Send + Sync + fmt::Debug {
    /// A strategy without messages.
    fn build(&self) -> Box<dyn Strategy>;

    /// Value shared by all messages that may come into one group, computed from each message alone. Messages
    /// with different values may be offered to different instances. `None` if there is no such value; one
    /// instance then gets all messages.
    fn affinity(&self, message: &Member) -> Option<String> {
        let _ = message;
        None
    }

    /// Whether a message that waits under the key `waits_in` would have belonged to an emitted group.
    /// `emitted` is that group's key as stored in a [`Part`](crate::id::Part), and `last` is its last block.
    /// Called for the emitted groups with the lowest last block that is not below the message's. Not called
    /// if `waits_in` itself was emitted, since the message is late in any case.
    fn belonged_to(&self, message: &Member, waits_in: &str, emitted: &str, last: u64) -> bool {
        let _ = (message, waits_in, emitted, last);
        false
    }

    /// The messages that the group of `held`, which are held under one key, lacks, in words: `1 of 3 of queue "proofs"`.
    /// `None` if the strategy cannot say it. The messages come without their payloads.
    fn missing(&self, held: &[Member]) -> Option<String> {
        let _ = held;
        None
    }

    /// Whether the strategies read the payloads of messages.
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
