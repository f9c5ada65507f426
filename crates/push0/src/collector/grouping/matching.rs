//! `STRATEGY=Match`: groups of a fixed number of messages with the same value of a field.

use std::collections::HashMap;

use super::{Group, Grouping, Member, Offered, Slot};

/// Groups by value. When a group is complete, the next message with its value begins another.
#[derive(Debug)]
pub(crate) struct Match {
    inputs: usize,
    open: HashMap<String, Vec<Slot>>,
    keys: HashMap<u64, String>,
}

// === impl Match ===

impl Match {
    pub(crate) fn new(inputs: usize) -> Self {
        Self {
            inputs,
            open: HashMap::new(),
            keys: HashMap::new(),
        }
    }
}

impl Grouping for Match {
    fn offer(&mut self, member: Member) -> Offered {
        let Some(key) = member.facts.group.clone() else {
            let why = "it has no string or integer in the grouping field";
            return Offered::Rejected(why.to_owned());
        };
        let slot = Slot::new(member);
        let slots = self.open.entry(key.clone()).or_default();
        if slots.iter().any(|held| held.repeats(&slot)) {
            return Offered::Repeat;
        }
        self.keys.insert(slot.sequence, key.clone());
        slots.push(slot);
        if slots.len() < self.inputs {
            return Offered::Taken(Vec::new());
        }
        let slots = self.open.remove(&key).unwrap_or_default();
        let mut members: Vec<u64> = slots.iter().map(|slot| slot.sequence).collect();
        members.sort_unstable();
        for sequence in &members {
            self.keys.remove(sequence);
        }
        Offered::Taken(vec![Group {
            key,
            again: None,
            members,
            mark: None,
        }])
    }

    fn remove(&mut self, sequence: u64) {
        let Some(key) = self.keys.remove(&sequence) else {
            return;
        };
        if let Some(slots) = self.open.get_mut(&key) {
            slots.retain(|slot| slot.sequence != sequence);
            if slots.is_empty() {
                self.open.remove(&key);
            }
        }
    }

    fn open(&self) -> Vec<Vec<u64>> {
        let sequences = |slots: &Vec<Slot>| slots.iter().map(|slot| slot.sequence).collect();
        self.open.values().map(sequences).collect()
    }

    fn restore(&mut self, _mark: u64) {}
}
