//! The history of blocks: how each task went that has ended, kept in the log.
//!
//! What an append ends goes into the history with that append, as one record more. The records lie in
//! slots that are used again in turn, so that the log holds so many at most; where a record has many
//! entries, as that of a group has, the oldest ones make room for it.

use std::collections::BTreeMap;
use std::time::Duration;

use proofmill_bus::MAX_BATCH_OPS;

use super::event::Complete;
use super::forget::FORGET_MAX;
use super::limits::{BESIDE_MAX, truncate};
use super::ready::TaskNo;
use super::state::{Change, Core, Task, Then};
use crate::id::{TaskId, WorkerId};
use crate::record::{
    Attempt, DoneRecord, FailedStep, Finish, Outcome, PAST_FAILURES_MAX, PAST_TEXT_MAX, PLACE_MAX,
    PLACES_MAX, Past, PastRecord, Record, RecordKey, StepRecord, TaskRecord,
};

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

    /// Adds to an append the record of what it ends, and the removal of the oldest records that
    /// this one takes the room of.
    pub(super) fn remember(&mut self, changes: &mut Vec<(RecordKey, Change)>) {
        let mut entries = std::mem::take(&mut self.chronicle.notes);
        let options = self.options.history;
        if options.steps == 0 || changes.len() >= MAX_BATCH_OPS {
            return;
        }
        self.steps_of(changes, &mut entries);
        entries.truncate(options.steps);
        if entries.is_empty() {
            return;
        }
        let room = MAX_BATCH_OPS.saturating_sub(changes.len() + BESIDE_MAX);
        let room = room.min(FORGET_MAX);
        let ahead = &mut self.chronicle.ahead;
        let number = ahead.next;
        ahead.next += 1;
        let slot = number % options.steps as u64;
        ahead.free(slot);
        let kept = Kept {
            slot,
            entries: entries.len(),
            at_ms: self.now.wall_ms,
        };
        let freed = ahead.make_room(&options, kept.entries, self.now.wall_ms, room);
        ahead.keep(number, kept);
        let freed = freed.into_iter().map(RecordKey::Past);
        changes.extend(freed.map(|key| (key, Change::Delete)));
        let record = Record::Past(PastRecord { number, entries });
        changes.push((RecordKey::Past(slot), Change::put(record)));
    }

    /// After a restart: removes what is more than is to be kept.
    pub(super) fn trim_past(&mut self) {
        let options = self.options.history;
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
        }
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
        records.flat_map(|record| &record.entries)
    }

    /// The tasks that an append ends.
    fn steps_of(&self, changes: &[(RecordKey, Change)], entries: &mut Vec<Past>) {
        let emits = changes.iter().any(|(key, _)| *key == RecordKey::Cursor);
        let steps = changes.iter().filter_map(|(key, change)| {
            let live = |id| self.by_id.get(id).and_then(|no| self.tasks.get(no));
            let record = match change {
                Change::Put { record, .. } => Some(record),
                Change::Delete => None,
            };
            match (key, record) {
                (RecordKey::Done(id), Some(Record::Done(done))) => {
                    self.done_step(id, live(id), done)
                }
                (RecordKey::Dead(_), Some(Record::Dead(dead))) => {
                    let why = clipped(&dead.reason);
                    let outcome = Outcome::Died { why };
                    Some(step(&dead.task, &dead.attempts, dead.at_ms, outcome))
                }
                (RecordKey::Task(id), None) if emits => {
                    let task = live(id)?;
                    let places = task.ending.places.clone();
                    let outcome = Outcome::Emitted { places };
                    let now = self.now.wall_ms;
                    Some(step(&task.record, &task.attempts, now, outcome))
                }
                _ => None,
            }
        });
        entries.extend(steps.map(Past::Step));
    }

    fn done_step(&self, id: &TaskId, live: Option<&Task>, done: &DoneRecord) -> Option<StepRecord> {
        let outcome = match &done.finish {
            Finish::Completed { .. } => Outcome::Completed {
                by: live.map_or_else(Vec::new, |task| task.ending.by.clone()),
            },
            Finish::Grouped { key } => Outcome::Grouped { key: clipped(key) },
            Finish::Skipped { why } => Outcome::Skipped { why: clipped(why) },
            Finish::Dropped => Outcome::Dropped,
            Finish::Late { why, passed_on } => match passed_on {
                true => Outcome::PassedOn { why: clipped(why) },
                false => Outcome::Skipped { why: clipped(why) },
            },
        };
        let Some(task) = live else {
            let (dead, _) = self.dead.get(id)?;
            return Some(step(&dead.task, &dead.attempts, done.at_ms, outcome));
        };
        Some(StepRecord {
            begun_ms: task.ending.begun_ms,
            ran_ms: task.ending.ran_ms,
            ..step(&task.record, &task.attempts, done.at_ms, outcome)
        })
    }
}

fn step(task: &TaskRecord, attempts: &[Attempt], ended_ms: u64, outcome: Outcome) -> StepRecord {
    let last = attempts.len().saturating_sub(PAST_FAILURES_MAX);
    let failures = attempts[last..].iter().map(|attempt| FailedStep {
        attempt: attempt.number,
        worker: attempt.worker.clone(),
        at_ms: attempt.at_ms,
        ran_ms: attempt.failure.wall_ms,
        reason: clipped(&attempt.failure.reason),
    });
    StepRecord {
        task: task.id.clone(),
        last: task.last,
        accepted_ms: task.at_ms,
        begun_ms: None,
        ran_ms: None,
        ended_ms,
        failed: attempts.last().map_or(0, |attempt| attempt.number),
        failures: failures.collect(),
        outcome,
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

    /// The record in a slot goes: another is written over it.
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
