//! What makes a group: without input, output or clock.

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

/// A message as a strategy sees it.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    /// Its place in the stream: what it is called from here on.
    pub(crate) sequence: u64,
    /// Which of the input queues it came by.
    pub(crate) queue: usize,
    /// What its payload says.
    pub(crate) facts: Facts,
    /// The id that it was published with.
    pub(crate) id: Option<String>,
}

/// A group that is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// What its members have in common.
    pub(crate) key: String,
    /// The block whose number goes before its members: the message itself was in a group before.
    pub(crate) again: Option<u64>,
    /// In the order in which they are emitted.
    pub(crate) members: Vec<u64>,
    /// What the strategy has to know after a restart.
    pub(crate) mark: Option<u64>,
}

/// What became of a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Offered {
    /// It is held, perhaps with groups that it completed.
    Taken(Vec<Group>),
    /// Its group has it already.
    Repeat,
    /// It cannot be in any group.
    Rejected(String),
}

/// A strategy at work.
pub(crate) trait Grouping: Send {
    /// Takes a message.
    fn offer(&mut self, member: Member) -> Offered;
    /// Forgets a message that is held.
    fn remove(&mut self, sequence: u64);
    /// The messages that are held, by group.
    fn open(&self) -> Vec<Vec<u64>>;
    /// Takes note of the mark of a group that was emitted before a restart; oldest first.
    fn restore(&mut self, mark: u64);
}

/// A strategy for `queues` input queues; `None` for a source.
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

/// A held message, with what tells it from others of its group.
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

    /// Whether both are the result of one task, or one message published twice.
    fn repeats(&self, other: &Self) -> bool {
        let same = |one: &Option<String>, two: &Option<String>| one.is_some() && one == two;
        self.queue == other.queue && (same(&self.task, &other.task) || same(&self.id, &other.id))
    }
}
