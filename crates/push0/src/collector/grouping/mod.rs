//! The grouping strategies, as pure state machines: without input, output or clock.

mod matching;
mod proof;
mod sequential;

#[cfg(test)]
mod tests;

use crate::environment::Strategy;
use crate::payload::Facts;

pub(crate) use matching::Match;
pub(crate) use proof::Proof;
pub(crate) use sequential::Sequential;

/// A message, with the properties that strategies use.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    /// The sequence number of the message in the stream, which identifies it.
    pub(crate) sequence: u64,
    /// The index of the input queue that it came by.
    pub(crate) queue: usize,
    /// Properties read from the payload.
    pub(crate) facts: Facts,
    /// The id that it was published with.
    pub(crate) id: Option<String>,
}

/// A complete group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// The value that its members have in common.
    pub(crate) key: String,
    /// The number of a block that is put before the members instead of the block's message, which was in an
    /// earlier group.
    pub(crate) again: Option<u64>,
    /// Sequence numbers of its members, in the order of emission.
    pub(crate) members: Vec<u64>,
    /// State that the strategy needs after a restart.
    pub(crate) mark: Option<u64>,
}

/// The outcome of offering a message to a strategy.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Offered {
    /// The message is held. The groups are those that it completed.
    Taken(Vec<Group>),
    /// The group has the message already.
    Repeat,
    /// The message cannot be in any group, for this reason.
    Rejected(String),
}

/// A grouping strategy.
pub(crate) trait Grouping: Send {
    /// Takes a message.
    fn offer(&mut self, member: Member) -> Offered;
    /// Removes a held message.
    fn remove(&mut self, sequence: u64);
    /// The held messages, by group.
    fn open(&self) -> Vec<Vec<u64>>;
    /// Restores the mark of a group that was emitted before a restart. Called with the oldest first.
    fn restore(&mut self, mark: u64);
}

/// The state machine of a strategy for `queues` input queues; `None` for a source.
pub(crate) fn grouping(strategy: &Strategy, queues: usize) -> Option<Box<dyn Grouping>> {
    Some(match *strategy {
        Strategy::Match { inputs, .. } => Box::new(Match::new(inputs as usize)),
        Strategy::Sequential { blocks, start } => {
            Box::new(Sequential::new(u64::from(blocks), queues, start))
        }
        Strategy::Proof { proofs } => Box::new(Proof::new(proofs as usize)),
        Strategy::Block { .. } => return None,
    })
}

/// A held message, with the properties that tell it from others of its group.
#[derive(Clone, Debug)]
struct Slot {
    sequence: u64,
    queue: usize,
    task: Option<String>,
    id: Option<String>,
}

// === impl Slot ===

impl Slot {
    fn new(member: Member) -> Self {
        Self {
            sequence: member.sequence,
            queue: member.queue,
            task: member.facts.id,
            id: member.id,
        }
    }

    /// Whether both are results of one task, or one message published twice.
    fn repeats(&self, other: &Self) -> bool {
        let same = |one: &Option<String>, two: &Option<String>| one.is_some() && one == two;
        self.queue == other.queue && (same(&self.task, &other.task) || same(&self.id, &other.id))
    }
}
