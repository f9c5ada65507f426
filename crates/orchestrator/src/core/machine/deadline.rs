//! Deadlines: the time that a block may take, the record of success or failure, and the treatment of late
//! blocks.
//!
//! A slot is opened by the first message of a block, in the same append. With a sequencer it ends when the
//! cursor has passed the block; without one it ends when no task of the block is live or dead. A slot whose
//! deadline passes is marked as missed and stays until its block ends.

use super::{Core, OnAccepted};
use crate::core::change::Change;
use crate::core::limits::FORGET_MAX;
use crate::core::tasks::TaskNo;
use crate::core::timers::Timer;
use crate::plan::StageIx;
use crate::record::{DeadRecord, HistoryEntry, Record, RecordKey, SlotRecord, TaskRecord};

/// Reason shown in the dead letters of a block that missed its deadline.
const REASON: &str = "its block has missed its deadline";

impl Core {
    /// Change that opens the slot of a message's blocks; `None` if the slot is open or deadlines are not
    /// counted.
    pub(super) fn open_slot(&mut self, first: u64, last: u64) -> Option<(RecordKey, Change)> {
        if !self.slots.is_counted() || self.slots.get(first).is_some() {
            return None;
        }
        let record = SlotRecord {
            last,
            at_ms: self.now.wall_ms,
            missed: false,
        };
        // Opened at once, so that the block's next message does not open it again.
        self.put_slot(first, record.clone());
        Some((RecordKey::Slot(first), Change::put(Record::Slot(record))))
    }

    pub(super) fn put_slot(&mut self, first: u64, record: SlotRecord) {
        let (tasks, last) = (&self.tasks, record.last);
        let live = || tasks.about().count(&(first..=last));
        let due = self.slots.put(first, record, self.now.mono, live);
        if let Some(due) = due.filter(|_| self.started) {
            self.timers.set(due, Timer::Slot(first));
        }
    }

    /// Resumes each slot's remaining time after a restart, by the wall clock.
    pub(super) fn resume_slots(&mut self) {
        let tasks = &self.tasks;
        let live = |first, last| tasks.about().count(&(first..=last));
        for (due, first) in self.slots.resume(self.now, live) {
            self.timers.set(due, Timer::Slot(first));
        }
    }

    /// Handles the passing of a block's deadline.
    pub(super) fn slot_due(&mut self, first: u64) {
        let Some(slot) = self.slots.miss(first, self.now.mono) else {
            return;
        };
        let record = slot.record().clone();
        let last = record.last;
        self.counts.add_blocks(1, |totals| &mut totals.missed);
        self.note_deadline(first, last, true);
        let change = Change::put(Record::Slot(record));
        self.append(vec![(RecordKey::Slot(first), change)], OnAccepted::Nothing);
        if self.drops_missed() {
            let inside = |task: &TaskRecord| task.id.block >= first && task.last <= last;
            let left: Vec<TaskNo> = self
                .tasks
                .select(|task| inside(task.record()) && task.is_cancellable());
            for no in left {
                self.stop_task(no, REASON);
            }
        }
        self.slots.note_maybe_ended(first);
    }

    fn drops_missed(&self) -> bool {
        let drop = self
            .plan
            .deadline
            .is_some_and(|deadline| deadline.drop_missed);
        drop && self.plan.sequencer().is_none()
    }

    /// Stops a task that came after its block was given up. Returns whether it did.
    pub(super) fn is_given_up(&mut self, no: TaskNo) -> bool {
        if self.slots.is_empty() || !self.drops_missed() {
            return false;
        }
        let task = self.tasks.get(no);
        let given_up = task.is_some_and(|task| self.slots.has_missed(task.record()));
        if given_up {
            self.stop_task(no, REASON);
        }
        given_up
    }

    /// Ends the slots whose blocks have ended.
    pub(super) fn end_slots(&mut self) {
        if !self.slots.is_counted() || !self.started {
            return;
        }
        let maybe_ended = self.slots.take_maybe_ended();
        let ended: Vec<u64> = match self.plan.sequencer() {
            Some(_) => self.slots.below(self.sequencer.cursor()),
            None => {
                let mut maybe_ended = Vec::from_iter(maybe_ended);
                maybe_ended.retain(|first| self.has_ended(*first));
                maybe_ended
            }
        };
        let mut changes = Vec::with_capacity(ended.len());
        for first in ended {
            if changes.len() == FORGET_MAX {
                self.slots.note_maybe_ended(first);
                continue;
            }
            if let Some(slot) = self.slots.remove(first) {
                self.timers.cancel(slot.due(), Timer::Slot(first));
                if !slot.record().missed {
                    self.counts.add_blocks(1, |totals| &mut totals.met);
                    self.note_deadline(first, slot.record().last, false);
                }
            }
            changes.push((RecordKey::Slot(first), Change::Delete));
        }
        if !changes.is_empty() {
            self.append(changes, OnAccepted::Nothing);
        }
    }

    fn has_ended(&self, first: u64) -> bool {
        let Some(slot) = self.slots.get(first) else {
            return false;
        };
        let within = first..=slot.record().last;
        let coming = self.is_coming(&within);
        // A dead letter may be retried while there is time.
        let about = |task: &TaskRecord| task.id.block <= *within.end() && task.last >= first;
        // The block does not wait for messages that came after their group was emitted.
        let awaited = |dead: &DeadRecord| !dead.late && about(&dead.task);
        let dead = || self.dead.iter().any(awaited);
        slot.live() == 0 && !coming && (slot.record().missed || !dead())
    }

    /// Whether tasks with these first blocks are on their way to the log.
    fn is_coming(&self, blocks: &std::ops::RangeInclusive<u64>) -> bool {
        let mut stages = (0..self.layout.stages()).map(StageIx);
        stages.any(|stage| self.appends.incoming(stage).has(blocks))
    }

    /// Notes in the history whether a deadline was met.
    fn note_deadline(&mut self, first: u64, last: u64, missed: bool) {
        self.history.note(HistoryEntry::Deadline {
            first,
            last,
            at_ms: self.now.wall_ms,
            missed,
        });
    }
}
