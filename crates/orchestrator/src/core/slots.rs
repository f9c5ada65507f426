//! Slots: blocks whose deadline is counted.
//!
//! A slot is opened by the first message of a block and ended when nothing more of the block can come; the
//! callers decide when that is. A slot whose deadline passes is marked as missed and stays until its block
//! ends.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::event::{Now, Time};
use super::spans::Spans;
use crate::record::{SlotRecord, TaskRecord};

/// The slots, by first block.
pub(super) struct Slots {
    /// Longest time that a block may take; `None` if deadlines are not counted.
    length: Option<Duration>,
    slots: BTreeMap<u64, Slot>,
    /// The blocks of each slot.
    about: Spans<()>,
    /// First blocks of slots that may have ended.
    maybe_ended: BTreeSet<u64>,
}

/// A block whose deadline is counted.
pub(super) struct Slot {
    record: SlotRecord,
    due: Time,
    live: usize,
}

// === impl Slots ===

impl Slots {
    /// No slots, for blocks that may take `length`; `None` if deadlines are not counted.
    pub(super) fn new(length: Option<Duration>) -> Self {
        Self {
            length,
            slots: BTreeMap::new(),
            about: Spans::default(),
            maybe_ended: BTreeSet::new(),
        }
    }

    pub(super) fn is_counted(&self) -> bool {
        self.length.is_some()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub(super) fn get(&self, first: u64) -> Option<&Slot> {
        self.slots.get(&first)
    }

    /// The slots, by first block.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Slot)> {
        self.slots.iter().map(|(first, slot)| (*first, slot))
    }

    /// Opens a slot, or updates the record of an open one. `live` counts the live tasks about its blocks.
    /// Returns the deadline of a new slot.
    pub(super) fn put(
        &mut self,
        first: u64,
        record: SlotRecord,
        now: Time,
        live: impl FnOnce() -> usize,
    ) -> Option<Time> {
        let length = self.length?;
        if let Some(slot) = self.slots.get_mut(&first) {
            self.about.update(first, slot.record.last, |()| false);
            self.about.update(first, record.last, |()| true);
            slot.record = record;
            return None;
        }
        self.about.update(first, record.last, |()| true);
        let (due, live) = (now.plus(length), live());
        self.slots.insert(first, Slot { record, due, live });
        Some(due)
    }

    /// Computes each slot's remaining time after a restart, by the wall clock, and its number of live tasks;
    /// `live` counts those from a first to a last block. Returns the deadlines that have not been marked as
    /// missed.
    pub(super) fn resume(
        &mut self,
        now: Now,
        live: impl Fn(u64, u64) -> usize,
    ) -> Vec<(Time, u64)> {
        let Some(length) = self.length else {
            return Vec::new();
        };
        let slot_ms = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
        let mut running = Vec::new();
        for (first, slot) in &mut self.slots {
            // The record of a missed slot was rewritten after its tasks, so replay has not counted them in
            // it.
            slot.live = live(*first, slot.record.last);
            self.maybe_ended.insert(*first);
            let due_ms = slot.record.at_ms.saturating_add(slot_ms);
            let left = due_ms.saturating_sub(now.wall_ms).min(slot_ms);
            slot.due = now.mono.plus(Duration::from_millis(left));
            if !slot.record.missed {
                running.push((slot.due, *first));
            }
        }
        running
    }

    /// Counts a task that has come or gone.
    pub(super) fn count(&mut self, task: &TaskRecord, comes: bool) {
        for first in self.about.beginnings(&(task.id.block..=task.last)) {
            let Some(slot) = self.slots.get_mut(&first) else {
                continue;
            };
            if comes {
                slot.live += 1;
            } else {
                slot.live = slot.live.saturating_sub(1);
                self.maybe_ended.insert(first);
            }
        }
    }

    /// Notes that a dead letter has gone: slots that it kept open may have ended.
    pub(super) fn note_ripe(&mut self, task: &TaskRecord) {
        let about = self.about.beginnings(&(task.id.block..=task.last));
        self.maybe_ended.extend(about);
    }

    /// Notes that a slot may have ended.
    pub(super) fn note_maybe_ended(&mut self, first: u64) {
        self.maybe_ended.insert(first);
    }

    /// Takes the slots that may have ended, of those noted since the last call.
    pub(super) fn take_maybe_ended(&mut self) -> BTreeSet<u64> {
        std::mem::take(&mut self.maybe_ended)
    }

    /// Slots whose blocks all lie below `cursor`.
    pub(super) fn below(&self, cursor: u64) -> Vec<u64> {
        let passed = self.slots.range(..cursor);
        let passed = passed.filter(|(_, slot)| slot.record.last < cursor);
        passed.map(|(first, _)| *first).collect()
    }

    /// Marks a slot as missed if its deadline has passed by now. Returns the slot if it was not marked
    /// before.
    pub(super) fn miss(&mut self, first: u64, now: Time) -> Option<&Slot> {
        let slot = self.slots.get_mut(&first)?;
        if slot.record.missed || slot.due > now {
            return None;
        }
        slot.record.missed = true;
        Some(slot)
    }

    /// Whether a missed slot contains all blocks of a task.
    pub(super) fn has_missed(&self, task: &TaskRecord) -> bool {
        let block = task.id.block;
        let slots = self.about.beginnings(&(block..=block)).into_iter();
        let mut slots = slots.filter_map(|first| self.slots.get(&first));
        slots.any(|slot| slot.record.missed && task.last <= slot.record.last)
    }

    /// Whether the deadline of a block that has not ended has passed; `None` if the block has no slot.
    pub(super) fn is_missed(&self, block: u64) -> Option<bool> {
        let first = *self.about.beginnings(&(block..=block)).last()?;
        self.slots.get(&first).map(|slot| slot.record.missed)
    }

    /// Ends a slot.
    pub(super) fn remove(&mut self, first: u64) -> Option<Slot> {
        let slot = self.slots.remove(&first)?;
        self.about.update(first, slot.record.last, |()| false);
        Some(slot)
    }

    /// `live` counts the live tasks from a first to a last block.
    #[cfg(debug_assertions)]
    pub(super) fn check(&self, live: impl Fn(u64, u64) -> usize) -> Result<(), String> {
        let listed = self.about.all().map(|(first, last, ())| (first, last));
        let mut listed: Vec<(u64, u64)> = listed.collect();
        listed.sort_unstable();
        let spans = self
            .slots
            .iter()
            .map(|(first, slot)| (*first, slot.record.last));
        if !spans.eq(listed) {
            return Err("the index of slots by block is off".to_owned());
        }
        let mut slots = self.slots.iter();
        let is_off = |(first, slot): &(&u64, &Slot)| live(**first, slot.record.last) != slot.live;
        match slots.find(is_off) {
            Some((first, _)) => Err(format!("slot {first}: the count of its tasks is off")),
            None => Ok(()),
        }
    }
}

// === impl Slot ===

impl Slot {
    /// Record of the slot, as in the log or on its way there.
    pub(super) fn record(&self) -> &SlotRecord {
        &self.record
    }

    /// Deadline.
    pub(super) fn due(&self) -> Time {
        self.due
    }

    /// Number of live tasks about the slot's blocks.
    pub(super) fn live(&self) -> usize {
        self.live
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{Part, TaskId};

    fn task(block: u64, last: u64) -> TaskRecord {
        let id = TaskId {
            stage: "prove".into(),
            block,
            part: Part::whole(),
        };
        TaskRecord {
            last,
            ..TaskRecord::for_tests(id)
        }
    }

    fn opened(last: u64) -> SlotRecord {
        SlotRecord {
            last,
            at_ms: 0,
            missed: false,
        }
    }

    #[test]
    fn a_slot_is_ripe_when_a_task_that_is_about_it_goes() {
        let mut slots = Slots::new(Some(Duration::from_millis(10)));
        let due = slots.put(3, opened(4), Time(0), || 0);
        assert_eq!(due, Some(Time(10_000)));
        assert_eq!(slots.put(3, opened(4), Time(1), || 7), None);
        slots.count(&task(4, 6), true);
        slots.count(&task(5, 6), true);
        assert_eq!(slots.get(3).map(Slot::live), Some(1));
        assert!(slots.take_maybe_ended().is_empty());
        assert_eq!(slots.check(|_, _| 1), Ok(()));
        slots.count(&task(4, 6), false);
        assert_eq!(slots.take_maybe_ended(), [3].into());
        assert_eq!((slots.below(4), slots.below(5)), (vec![], vec![3]));
    }

    #[test]
    fn a_deadline_is_missed_once() {
        let mut slots = Slots::new(Some(Duration::from_millis(10)));
        slots.put(3, opened(4), Time(0), || 0);
        assert!(slots.miss(3, Time(9_999)).is_none());
        assert_eq!(slots.is_missed(4), Some(false));
        assert!(slots.miss(3, Time(10_000)).is_some());
        assert!(slots.miss(3, Time(10_001)).is_none());
        assert!(slots.has_missed(&task(3, 4)) && !slots.has_missed(&task(3, 5)));
        assert_eq!((slots.is_missed(3), slots.is_missed(5)), (Some(true), None));
    }

    #[test]
    fn nothing_is_counted_without_a_deadline() {
        let mut slots = Slots::new(None);
        assert_eq!(slots.put(3, opened(4), Time(0), || 0), None);
        assert!(slots.is_empty() && !slots.is_counted());
    }
}
