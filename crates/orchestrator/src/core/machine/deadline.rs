//! Deadlines: how long a block may take, whether it was in time, and what becomes of it if not.
//!
//! A slot is opened by the first message of a block, in the same append. With a sequencer it ends
//! when the cursor has passed the block, without one when nothing of the block is left, neither
//! live nor dead. A slot whose deadline passes is marked as missed and stays until its block ends.

use super::forget::FORGET_MAX;
use super::{Change, Core, Task, Then, Timer};
use crate::core::event::{Now, Time};
use crate::core::ready::TaskNo;
use crate::record::{DeadRecord, Past, Record, RecordKey, SlotRecord, TaskRecord};

/// Why what was left of a block is in the dead-letter queue.
const REASON: &str = "its block has missed its deadline";

/// A block whose deadline is counted.
pub(super) struct Slot {
    record: SlotRecord,
    due: Time,
    /// Live tasks that are about it.
    live: usize,
}

impl Core {
    /// The change that opens the slot of a message's blocks, if it is the first of them.
    pub(super) fn open_slot(&mut self, first: u64, last: u64) -> Option<(RecordKey, Change)> {
        self.plan.deadline?;
        if self.slots.contains_key(&first) {
            return None;
        }
        let record = SlotRecord {
            last,
            at_ms: self.now.wall_ms,
            missed: false,
        };
        // Known from now on, so that the block's next message does not open it again.
        self.put_slot(first, record.clone());
        Some((RecordKey::Slot(first), Change::put(Record::Slot(record))))
    }

    pub(super) fn put_slot(&mut self, first: u64, record: SlotRecord) {
        let Some(deadline) = self.plan.deadline else {
            return;
        };
        if let Some(slot) = self.slots.get_mut(&first) {
            slot.record = record;
            return;
        }
        let due = self.now.mono.plus(deadline.slot);
        if self.started {
            self.timers.insert((due, Timer::Slot(first)));
        }
        let live = self.live_within(first, record.last);
        self.slots.insert(first, Slot { record, due, live });
    }

    /// Live tasks that are about a block of the span.
    fn live_within(&self, first: u64, last: u64) -> usize {
        let about = |task: &&Task| task.record.id.block <= last && task.record.last >= first;
        self.tasks.values().filter(about).count()
    }

    /// After a restart: what is left of each slot's time, by the clock on the wall.
    pub(super) fn resume_slots(&mut self, now: Now) {
        let Some(deadline) = self.plan.deadline else {
            return;
        };
        let slot_ms = u64::try_from(deadline.slot.as_millis()).unwrap_or(u64::MAX);
        let firsts: Vec<(u64, u64)> = self
            .slots
            .iter()
            .map(|(first, slot)| (*first, slot.record.last))
            .collect();
        for (first, last) in firsts {
            // A slot that was marked as missed is younger than the tasks that it counts.
            let live = self.live_within(first, last);
            if let Some(slot) = self.slots.get_mut(&first) {
                slot.live = live;
            }
            self.ripe_slots.insert(first);
        }
        for (first, slot) in &mut self.slots {
            let due_ms = slot.record.at_ms.saturating_add(slot_ms);
            let left = due_ms.saturating_sub(now.wall_ms).min(slot_ms);
            slot.due = now.mono.plus(std::time::Duration::from_millis(left));
            if !slot.record.missed {
                self.timers.insert((slot.due, Timer::Slot(*first)));
            }
        }
    }

    /// A task has come, or gone.
    pub(super) fn count_in_slots(&mut self, task: &TaskRecord, comes: bool) {
        for (first, slot) in self.slots.range_mut(..=task.last) {
            if slot.record.last < task.id.block {
                continue;
            }
            if comes {
                slot.live += 1;
            } else {
                slot.live = slot.live.saturating_sub(1);
                self.ripe_slots.insert(*first);
            }
        }
    }

    /// A dead letter has gone: the slots that it has kept may have ended.
    pub(super) fn note_ripe(&mut self, task: &TaskRecord) {
        let until = self.slots.range(..=task.last);
        let about = until.filter(|(_, slot)| slot.record.last >= task.id.block);
        self.ripe_slots.extend(about.map(|(first, _)| *first));
    }

    /// The deadline of a block has passed.
    pub(super) fn slot_due(&mut self, first: u64) {
        let Some(slot) = self.slots.get_mut(&first) else {
            return;
        };
        if slot.record.missed || slot.due > self.now.mono {
            return;
        }
        slot.record.missed = true;
        let record = slot.record.clone();
        let last = record.last;
        self.blocks_missed += 1;
        self.note_deadline(first, last, true);
        let change = Change::put(Record::Slot(record));
        self.append(vec![(RecordKey::Slot(first), change)], Then::Nothing);
        if self.drops_missed() {
            let inside = |task: &TaskRecord| task.id.block >= first && task.last <= last;
            let live = self.tasks.values();
            let mut left: Vec<TaskNo> = live
                .filter(|task| inside(&task.record) && task.is_cancellable())
                .map(|task| task.no)
                .collect();
            left.sort_unstable();
            for no in left {
                self.stop_task(no, REASON);
            }
        }
        self.ripe_slots.insert(first);
    }

    fn drops_missed(&self) -> bool {
        let drop = self
            .plan
            .deadline
            .is_some_and(|deadline| deadline.drop_missed);
        drop && self.plan.sequencer().is_none()
    }

    /// Stops a task that has come to be after its block was given up.
    pub(super) fn is_given_up(&mut self, no: TaskNo) -> bool {
        if self.slots.is_empty() || !self.drops_missed() {
            return false;
        }
        let Some(task) = self.tasks.get(&no) else {
            return false;
        };
        let mut slots = self.slots.range(..=task.record.id.block);
        let given_up =
            slots.any(|(_, slot)| slot.record.missed && task.record.last <= slot.record.last);
        if given_up {
            self.stop_task(no, REASON);
        }
        given_up
    }

    /// Ends the slots whose blocks have ended.
    pub(super) fn end_slots(&mut self) {
        if self.plan.deadline.is_none() || !self.started {
            return;
        }
        let sequenced = self.plan.sequencer().is_some();
        let ripe = std::mem::take(&mut self.ripe_slots);
        let ended: Vec<u64> = if sequenced {
            let passed = self.slots.range(..self.cursor);
            passed
                .filter(|(_, slot)| slot.record.last < self.cursor)
                .map(|(first, _)| *first)
                .collect()
        } else {
            ripe.into_iter()
                .filter(|first| self.has_ended(*first))
                .collect()
        };
        let mut changes = Vec::with_capacity(ended.len());
        for first in ended {
            if changes.len() == FORGET_MAX {
                self.ripe_slots.insert(first);
                continue;
            }
            if let Some(slot) = self.slots.remove(&first) {
                self.timers.remove(&(slot.due, Timer::Slot(first)));
                if !slot.record.missed {
                    self.blocks_met += 1;
                    self.note_deadline(first, slot.record.last, false);
                }
            }
            changes.push((RecordKey::Slot(first), Change::Delete));
        }
        if !changes.is_empty() {
            self.append(changes, Then::Nothing);
        }
    }

    fn has_ended(&self, first: u64) -> bool {
        let Some(slot) = self.slots.get(&first) else {
            return false;
        };
        let within = first..=slot.record.last;
        let coming = self.incoming.iter().any(|count| count.has(&within));
        // A dead letter may be retried while there is time.
        let about = |task: &TaskRecord| task.id.block <= *within.end() && task.last >= first;
        // What came after its group was emitted is nothing that the block waits for.
        let awaited = |dead: &DeadRecord| !dead.late && about(&dead.task);
        let dead = || self.dead.values().any(|(dead, _)| awaited(dead));
        slot.live == 0 && !coming && (slot.record.missed || !dead())
    }

    /// Remembers whether a deadline was met.
    fn note_deadline(&mut self, first: u64, last: u64, missed: bool) {
        self.note_past(Past::Deadline {
            first,
            last,
            at_ms: self.now.wall_ms,
            missed,
        });
    }

    /// Whether the deadline of a block that has not ended has passed; `None` if none is counted.
    pub(super) fn is_missed(&self, block: u64) -> Option<bool> {
        let mut slots = self.slots.range(..=block).rev();
        let about = slots.find(|(_, slot)| slot.record.last >= block);
        about.map(|(_, slot)| slot.record.missed)
    }

    /// Deadlines kept and missed.
    pub(super) fn deadlines(&self) -> (u64, u64) {
        (self.blocks_met, self.blocks_missed)
    }
}
