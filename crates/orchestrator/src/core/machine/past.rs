//! The history of blocks: how each task went that has ended, kept in the log.
//!
//! The mark of a finished task says how it went. What marks say goes into the history some tasks at a
//! time, as one record, and before the marks go; after a crash, the marks that are not in it yet are
//! read again. Whatever else ends a task (an emission, a death) goes into it with that very append.
//!
//! The records lie in slots that are used again in turn, so that the log holds so many at most; where a
//! record has many entries, as that of a group has, the oldest ones make room for it.

use std::collections::BTreeMap;
use std::time::Duration;

use proofmill_bus::{MAX_BATCH_OPS, Seq};

use super::forget::FORGET_MAX;
use super::{Change, Core, Task, Then};
use crate::core::event::Complete;
use crate::core::limits::{BESIDE_MAX, truncate};
use crate::core::ready::TaskNo;
use crate::id::{TaskId, WorkerId};
use crate::record::{
    Attempt, Course, DoneRecord, FailedStep, Finish, Outcome, PAST_FAILURES_MAX, PAST_TEXT_MAX,
    PLACE_MAX, PLACES_MAX, Past, PastRecord, Record, RecordKey, StepRecord, TaskRecord,
};

/// Marks that are not in the history, from which on the next append takes them along.
const GATHER: usize = 64;

/// Entries of a record that come from marks, at most.
const ENTRIES_MAX: usize = 256;

/// How much of the past of blocks is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryOptions {
    /// Entries, at most: ends of tasks, deadlines, blocks taken back. Default 20,000; none with 0.
    pub steps: usize,
    /// Time after which an entry goes when another comes. Default 30 days.
    pub keep: Duration,
}

impl Default for HistoryOptions {
    fn default() -> Self {
        Self {
            steps: 20_000,
            keep: Duration::from_secs(30 * 24 * 3600),
        }
    }
}

/// The history.
#[derive(Default)]
pub(super) struct Chronicle {
    /// The records of the log, by number.
    records: BTreeMap<u64, PastRecord>,
    /// Those in each slot.
    slots: BTreeMap<u64, u64>,
    /// The same, as they will be when every append on its way has been accepted.
    ahead: Ahead,
    /// Entries for the next append.
    notes: Vec<Past>,
    /// What marks say that no record has yet.
    marked: Vec<(Seq, Past)>,
    /// Of each record on its way to the log, by its number.
    flying: BTreeMap<u64, Flying>,
    /// As [`PastRecord::marks_to`]: of the last record made.
    marks_to: Seq,
}

/// What marks say that goes into a record which is on its way to the log.
struct Flying {
    /// What the record has no room for: it is forgotten when the log has that.
    over: Vec<(Seq, Past)>,
    /// Where the marks lie that the first entries of the record are of.
    marks: Vec<Seq>,
}

/// The records that the log will hold.
#[derive(Default)]
struct Ahead {
    next: u64,
    records: BTreeMap<u64, Kept>,
    slots: BTreeMap<u64, u64>,
    entries: usize,
}

/// A record, by its measures.
struct Kept {
    slot: u64,
    entries: usize,
    at_ms: u64,
}

/// What is known of the end of a task before it is recorded.
#[derive(Default)]
pub(super) struct Ending {
    by: Vec<(WorkerId, u32)>,
    begun_ms: Option<u64>,
    ran_ms: Option<u64>,
    places: Vec<String>,
}

impl Core {
    /// Notes something for the history, to be recorded with the next append.
    pub(super) fn note_past(&mut self, past: Past) {
        self.chronicle.notes.push(past);
    }

    /// Notes who completes a task, while the lease is there.
    pub(super) fn note_result(&mut self, no: TaskNo, complete: &Complete) {
        let Some(task) = self.tasks.get_mut(&no) else {
            return;
        };
        let (worker, attempt) = (&complete.worker, complete.lease.attempt);
        let mut copies = task.copies.iter();
        let held = copies.find(|held| held.worker == *worker && held.attempt == attempt);
        let parts = task.parts.values();
        let before = parts.map(|part| (part.worker.clone(), part.attempt));
        task.ending = Ending {
            by: before.chain([(worker.clone(), attempt)]).collect(),
            begun_ms: held.map(|held| held.since_wall_ms),
            ran_ms: Some(millis(complete.ran)),
            places: Vec::new(),
        };
    }

    /// Notes where an emission has gone.
    pub(super) fn note_places(&mut self, no: TaskNo, mut places: Vec<String>) {
        places.truncate(PLACES_MAX);
        places
            .iter_mut()
            .for_each(|place| truncate(place, PLACE_MAX));
        if let Some(task) = self.tasks.get_mut(&no) {
            task.ending.places = places;
        }
    }

    /// Adds to an append the record of what it ends otherwise than by a mark, with what marks have said
    /// until now, and the removal of the oldest records that this one takes the room of.
    pub(super) fn remember(&mut self, changes: &mut Vec<(RecordKey, Change)>) {
        let mut own = std::mem::take(&mut self.chronicle.notes);
        let options = self.options.history;
        if options.steps == 0 || changes.len() >= MAX_BATCH_OPS {
            return;
        }
        self.steps_of(changes, &mut own);
        own.truncate(options.steps);
        let gathered = self.chronicle.marked.len();
        let removes_marks = || {
            let mut changes = changes.iter();
            changes.any(|change| matches!(change, (RecordKey::Done(_), Change::Delete)))
        };
        let is_due = !own.is_empty() || gathered >= GATHER || gathered > 0 && removes_marks();
        if !is_due {
            return;
        }
        let records = gathered.div_ceil(ENTRIES_MAX) + 1;
        if changes.len() + records + BESIDE_MAX > MAX_BATCH_OPS {
            self.remember_in(changes, Vec::new(), own);
            return;
        }
        self.chronicle.marks_to = self.applied;
        let mut marked = std::mem::take(&mut self.chronicle.marked);
        while marked.len() > ENTRIES_MAX {
            let rest = marked.split_off(ENTRIES_MAX);
            self.remember_in(changes, std::mem::replace(&mut marked, rest), Vec::new());
        }
        self.remember_in(changes, marked, own);
    }

    /// Adds one record, of what marks say and of what the append ends otherwise.
    fn remember_in(
        &mut self,
        changes: &mut Vec<(RecordKey, Change)>,
        marked: Vec<(Seq, Past)>,
        own: Vec<Past>,
    ) {
        let options = self.options.history;
        let mut over = marked;
        let excess = (over.len() + own.len()).saturating_sub(options.steps);
        let fitting = over.split_off(excess.min(over.len()));
        let (marks, mut entries): (Vec<Seq>, Vec<Past>) = fitting.into_iter().unzip();
        entries.extend(own);
        if entries.is_empty() {
            return;
        }
        let room = MAX_BATCH_OPS.saturating_sub(changes.len() + BESIDE_MAX);
        let room = room.min(FORGET_MAX);
        let ahead = &mut self.chronicle.ahead;
        let number = ahead.next;
        let mut freed = ahead.make_room(&options, entries.len(), self.now.wall_ms, room);
        // The oldest record is written over, which is one operation less than its removal.
        let slot = freed.pop().unwrap_or_else(|| ahead.unused());
        let kept = Kept {
            slot,
            entries: entries.len(),
            at_ms: self.now.wall_ms,
        };
        ahead.keep(number, kept);
        let flying = Flying { over, marks };
        self.chronicle.flying.insert(number, flying);
        let freed = freed.into_iter().map(RecordKey::Past);
        changes.extend(freed.map(|key| (key, Change::Delete)));
        let record = Record::Past(PastRecord {
            number,
            marks_to: self.chronicle.marks_to.0,
            entries,
        });
        changes.push((RecordKey::Past(slot), Change::put(record)));
    }

    /// The log has refused an append: what marks say that it had goes into another.
    pub(super) fn unremember(&mut self, changes: &[(RecordKey, Change)]) {
        for (_, change) in changes.iter().rev() {
            let Change::Put {
                record: Record::Past(past),
                ..
            } = change
            else {
                continue;
            };
            if let Some(flying) = self.chronicle.flying.remove(&past.number) {
                let mut marked = flying.over;
                let entries = past.entries.iter().cloned();
                marked.extend(flying.marks.into_iter().zip(entries));
                marked.append(&mut self.chronicle.marked);
                self.chronicle.marked = marked;
            }
        }
    }

    /// A mark is in the log: what it says is for the history.
    pub(super) fn note_mark(&mut self, id: &TaskId, done: &DoneRecord, seq: Seq) {
        if self.options.history.steps > 0
            && let Some(step) = marked_step(id, done)
        {
            self.chronicle.marked.push((seq, Past::Step(step)));
        }
    }

    /// After a restart: removes what is more than is to be kept, and of what the marks say what the
    /// history has.
    pub(super) fn trim_past(&mut self) {
        let options = self.options.history;
        let since_ms = self.now.wall_ms.saturating_sub(millis(options.keep));
        let chronicle = &mut self.chronicle;
        let marks_to = chronicle.marks_to;
        let is_new = |(seq, past): &(Seq, Past)| *seq > marks_to && past.at_ms() >= since_ms;
        chronicle.marked.retain(is_new);
        loop {
            let ahead = &mut self.chronicle.ahead;
            let freed = ahead.make_room(&options, 0, self.now.wall_ms, FORGET_MAX);
            if freed.is_empty() {
                return;
            }
            let freed = freed.into_iter().map(RecordKey::Past);
            let changes = freed.map(|key| (key, Change::Delete)).collect();
            self.append(changes, Then::Nothing);
        }
    }

    /// A record of the history is in the log.
    pub(super) fn put_past(&mut self, slot: u64, record: PastRecord) {
        let chronicle = &mut self.chronicle;
        if !self.started {
            let kept = Kept {
                slot,
                entries: record.entries.len(),
                at_ms: record.entries.iter().map(Past::at_ms).max().unwrap_or(0),
            };
            chronicle.ahead.free(slot);
            chronicle.ahead.keep(record.number, kept);
            chronicle.marks_to = chronicle.marks_to.max(Seq(record.marks_to));
        }
        chronicle.flying.remove(&record.number);
        if let Some(before) = chronicle.slots.insert(slot, record.number) {
            chronicle.records.remove(&before);
        }
        chronicle.records.insert(record.number, record);
    }

    /// A record of the history is in the log no more.
    pub(super) fn delete_past(&mut self, slot: u64) {
        if let Some(number) = self.chronicle.slots.remove(&slot) {
            self.chronicle.records.remove(&number);
        }
    }

    /// The entries of the history, oldest first.
    pub(super) fn past(&self) -> impl Iterator<Item = &Past> {
        let records = self.chronicle.records.values();
        let flying = &self.chronicle.flying;
        let pending = self.pending.values().flat_map(|pending| &pending.changes);
        let coming = pending.filter_map(|(_, change)| match change {
            Change::Put {
                record: Record::Past(past),
                ..
            } => {
                let flying = flying.get(&past.number)?;
                let over = flying.over.iter().map(|(_, past)| past);
                Some(over.chain(past.entries.iter().take(flying.marks.len())))
            }
            _ => None,
        });
        let marked = self.chronicle.marked.iter().map(|(_, past)| past);
        let records = records.flat_map(|record| &record.entries);
        records.chain(coming.flatten()).chain(marked)
    }

    /// The tasks that an append ends otherwise than by a mark.
    fn steps_of(&self, changes: &[(RecordKey, Change)], entries: &mut Vec<Past>) {
        let emits = changes.iter().any(|(key, _)| *key == RecordKey::Cursor);
        let steps = changes.iter().filter_map(|(key, change)| {
            let record = match change {
                Change::Put { record, .. } => Some(record),
                Change::Delete => None,
            };
            match (key, record) {
                (RecordKey::Dead(_), Some(Record::Dead(dead))) => {
                    let why = clipped(&dead.reason);
                    let course = course(&dead.task, &dead.attempts);
                    let task = &dead.task;
                    let outcome = Outcome::Died { why };
                    Some(step(&task.id, task.last, dead.at_ms, course, outcome))
                }
                (RecordKey::Task(id), None) if emits => {
                    let task = self.by_id.get(id).and_then(|no| self.tasks.get(no))?;
                    let places = task.ending.places.clone();
                    let outcome = Outcome::Emitted { places };
                    let last = task.record.last;
                    Some(step(id, last, self.now.wall_ms, task.course(), outcome))
                }
                _ => None,
            }
        });
        entries.extend(steps.map(Past::Step));
    }
}

impl Task {
    /// How it has gone until now.
    pub(super) fn course(&self) -> Course {
        Course {
            begun_ms: self.ending.begun_ms,
            ran_ms: self.ending.ran_ms,
            by: self.ending.by.clone(),
            ..course(&self.record, &self.attempts)
        }
    }
}

/// What a mark says of how its task went; `None` if an earlier release wrote it.
fn marked_step(id: &TaskId, done: &DoneRecord) -> Option<StepRecord> {
    let course = done.course.clone()?;
    let outcome = match &done.finish {
        Finish::Completed { .. } => Outcome::Completed {
            by: course.by.clone(),
        },
        Finish::Grouped { key } => Outcome::Grouped { key: clipped(key) },
        Finish::Skipped { why } => Outcome::Skipped { why: clipped(why) },
        Finish::Dropped => Outcome::Dropped,
        Finish::Late { why, passed_on } => match passed_on {
            true => Outcome::PassedOn { why: clipped(why) },
            false => Outcome::Skipped { why: clipped(why) },
        },
    };
    Some(step(id, done.last, done.at_ms, course, outcome))
}

fn step(id: &TaskId, last: u64, ended_ms: u64, course: Course, outcome: Outcome) -> StepRecord {
    StepRecord {
        task: id.clone(),
        last,
        accepted_ms: course.accepted_ms,
        begun_ms: course.begun_ms,
        ran_ms: course.ran_ms,
        ended_ms,
        failed: course.failed,
        failures: course.failures,
        outcome,
    }
}

/// How a task went that no worker has ended; `attempts` are those that failed.
pub(super) fn course(task: &TaskRecord, attempts: &[Attempt]) -> Course {
    let last = attempts.len().saturating_sub(PAST_FAILURES_MAX);
    let failures = attempts[last..].iter().map(|attempt| FailedStep {
        attempt: attempt.number,
        worker: attempt.worker.clone(),
        at_ms: attempt.at_ms,
        ran_ms: attempt.failure.wall_ms,
        reason: clipped(&attempt.failure.reason),
    });
    Course {
        accepted_ms: task.at_ms,
        failed: attempts.last().map_or(0, |attempt| attempt.number),
        failures: failures.collect(),
        ..Course::default()
    }
}

fn clipped(text: &str) -> String {
    let mut text = text.to_owned();
    truncate(&mut text, PAST_TEXT_MAX);
    text
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

// === impl Ahead ===

impl Ahead {
    fn keep(&mut self, number: u64, kept: Kept) {
        self.next = self.next.max(number.saturating_add(1));
        self.entries += kept.entries;
        self.slots.insert(kept.slot, number);
        self.records.insert(number, kept);
    }

    /// The first slot that holds no record.
    fn unused(&self) -> u64 {
        let used = self.slots.len() as u64;
        if self
            .slots
            .keys()
            .next_back()
            .is_none_or(|last| *last < used)
        {
            return used;
        }
        let hole = (0..)
            .zip(self.slots.keys())
            .find(|(slot, used)| slot != *used);
        hole.map_or(used, |(slot, _)| slot)
    }

    /// The record in a slot goes.
    fn free(&mut self, slot: u64) {
        if let Some(kept) = self
            .slots
            .remove(&slot)
            .and_then(|number| self.records.remove(&number))
        {
            self.entries -= kept.entries;
        }
    }

    /// Lets go of the oldest records, until there is room for so many entries more and none is
    /// older than is kept, and of `limit` records at most. Returns their slots.
    fn make_room(
        &mut self,
        options: &HistoryOptions,
        entries: usize,
        now_ms: u64,
        limit: usize,
    ) -> Vec<u64> {
        let keep_ms = millis(options.keep);
        let mut freed = Vec::new();
        while freed.len() < limit {
            let Some((_, oldest)) = self.records.first_key_value() else {
                break;
            };
            let is_old = oldest.at_ms.saturating_add(keep_ms) < now_ms;
            if self.entries + entries <= options.steps && !is_old {
                break;
            }
            let slot = oldest.slot;
            self.free(slot);
            freed.push(slot);
        }
        freed
    }
}
