//! `STRATEGY=Proof`: groups of a block and a fixed number of its proofs.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{Group, Grouping, Member, Offered, Slot};

/// Most joined blocks that are remembered.
const REMEMBERED: usize = 65_536;

/// Joins proofs with their block. Several provers may prove one block: once it is joined, each further set
/// of proofs is joined with the block's number, instead of waiting for a block message that was used
/// already.
#[derive(Debug)]
pub(crate) struct Proof {
    proofs: usize,
    open: BTreeMap<u64, Pending>,
    blocks: HashMap<u64, u64>,
    joined: BTreeSet<u64>,
}

#[derive(Debug, Default)]
struct Pending {
    blocks: Vec<u64>,
    proofs: Vec<Slot>,
}

// === impl Proof ===

impl Proof {
    pub(crate) fn new(proofs: usize) -> Self {
        Self {
            proofs,
            open: BTreeMap::new(),
            blocks: HashMap::new(),
            joined: BTreeSet::new(),
        }
    }

    /// The next group of `block`, if it is complete.
    fn complete(&mut self, block: u64) -> Option<Group> {
        let joined = self.joined.contains(&block);
        let pending = self.open.get_mut(&block)?;
        if pending.proofs.len() < self.proofs || (pending.blocks.is_empty() && !joined) {
            return None;
        }
        let first = (!pending.blocks.is_empty()).then(|| pending.blocks.remove(0));
        let proofs = pending.proofs.drain(..self.proofs);
        let mut members: Vec<u64> = proofs.map(|slot| slot.sequence).collect();
        members.sort_unstable();
        members.splice(0..0, first);
        if pending.blocks.is_empty() && pending.proofs.is_empty() {
            self.open.remove(&block);
        }
        for sequence in &members {
            self.blocks.remove(sequence);
        }
        self.restore(block);
        Some(Group {
            key: block.to_string(),
            again: first.is_none().then_some(block),
            members,
            mark: Some(block),
        })
    }
}

impl Grouping for Proof {
    fn offer(&mut self, member: Member) -> Offered {
        let Some(block) = member.facts.block else {
            let why = "it is not the number of a block, and no field such as `block` names one";
            return Offered::Rejected(why.to_owned());
        };
        let sequence = member.sequence;
        let pending = self.open.entry(block).or_default();
        if member.facts.is_block {
            pending.blocks.push(sequence);
        } else {
            let slot = Slot::new(member);
            if pending.proofs.iter().any(|held| held.repeats(&slot)) {
                return Offered::Repeat;
            }
            pending.proofs.push(slot);
        }
        self.blocks.insert(sequence, block);
        let mut groups = Vec::new();
        while let Some(group) = self.complete(block) {
            groups.push(group);
        }
        Offered::Taken(groups)
    }

    fn remove(&mut self, sequence: u64) {
        let Some(block) = self.blocks.remove(&sequence) else {
            return;
        };
        if let Some(pending) = self.open.get_mut(&block) {
            pending.blocks.retain(|&held| held != sequence);
            pending.proofs.retain(|slot| slot.sequence != sequence);
            if pending.blocks.is_empty() && pending.proofs.is_empty() {
                self.open.remove(&block);
            }
        }
    }

    fn open(&self) -> Vec<Vec<u64>> {
        let sequences = |pending: &Pending| {
            let proofs = pending.proofs.iter().map(|slot| slot.sequence);
            pending.blocks.iter().copied().chain(proofs).collect()
        };
        self.open.values().map(sequences).collect()
    }

    fn restore(&mut self, mark: u64) {
        self.joined.insert(mark);
        if self.joined.len() > REMEMBERED {
            self.joined.pop_first();
        }
    }
}
