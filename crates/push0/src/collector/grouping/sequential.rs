//! `STRATEGY=Sequential`: messages in the order of their blocks.

use std::collections::{BTreeMap, HashMap};

use super::{Group, Grouping, Member, Offered};

/// Emits groups of `blocks` consecutive blocks, each with one message from every input queue.
#[derive(Debug)]
pub(crate) struct Sequential {
    blocks: u64,
    queues: usize,
    next: Option<u64>,
    /// Sequence numbers of messages, by block and then by queue.
    waiting: BTreeMap<u64, Vec<Option<u64>>>,
    places: HashMap<u64, u64>,
}

// === impl Sequential ===

impl Sequential {
    pub(crate) fn new(blocks: u64, queues: usize, start: Option<u64>) -> Self {
        Self {
            blocks,
            queues,
            next: start,
            waiting: BTreeMap::new(),
            places: HashMap::new(),
        }
    }

    /// The next group, if it is complete.
    fn complete(&mut self) -> Option<Group> {
        let first = self.next?;
        let end = first.checked_add(self.blocks)?;
        let full = |block| {
            let slots: Option<&Vec<Option<u64>>> = self.waiting.get(&block);
            slots.is_some_and(|slots| slots.iter().all(Option::is_some))
        };
        if !(first..end).all(full) {
            return None;
        }
        let mut members = Vec::new();
        for block in first..end {
            let slots = self.waiting.remove(&block).unwrap_or_default();
            members.extend(slots.into_iter().flatten());
        }
        for sequence in &members {
            self.places.remove(sequence);
        }
        self.next = Some(end);
        Some(Group {
            key: first.to_string(),
            again: None,
            members,
            mark: Some(end),
        })
    }
}

impl Grouping for Sequential {
    fn offer(&mut self, member: Member) -> Offered {
        let Some(block) = member.facts.block else {
            let why = "it is not the number of a block, and no field such as `block` names one";
            return Offered::Rejected(why.to_owned());
        };
        let next = *self.next.get_or_insert(block);
        if block < next {
            return Offered::Rejected(format!(
                "block {block} is before block {next}, the next block of a group"
            ));
        }
        let queues = self.queues;
        let slots = self
            .waiting
            .entry(block)
            .or_insert_with(|| vec![None; queues]);
        match slots.get_mut(member.queue) {
            Some(slot @ None) => *slot = Some(member.sequence),
            Some(Some(_)) => {
                return Offered::Rejected(format!(
                    "block {block} has a message from its queue already"
                ));
            }
            None => return Offered::Rejected("it came from a queue that is not read".to_owned()),
        }
        self.places.insert(member.sequence, block);
        let mut groups = Vec::new();
        while let Some(group) = self.complete() {
            groups.push(group);
        }
        Offered::Taken(groups)
    }

    fn remove(&mut self, sequence: u64) {
        let Some(block) = self.places.remove(&sequence) else {
            return;
        };
        if let Some(slots) = self.waiting.get_mut(&block) {
            for slot in slots.iter_mut().filter(|slot| **slot == Some(sequence)) {
                *slot = None;
            }
            if slots.iter().all(Option::is_none) {
                self.waiting.remove(&block);
            }
        }
    }

    fn open(&self) -> Vec<Vec<u64>> {
        let sequences = |slots: &Vec<Option<u64>>| slots.iter().flatten().copied().collect();
        self.waiting.values().map(sequences).collect()
    }

    fn restore(&mut self, mark: u64) {
        self.next = Some(self.next.map_or(mark, |next| next.max(mark)));
    }
}
