//! The history of blocks: the timeline of each ended task, kept in the log.
//!
//! The mark of a finished task records the task's timeline. Marks are copied into the history several at a
//! time, as one record, before they are removed; after a crash, marks that are not in the history yet are
//! read again. An emission or a death, which leaves no mark, is written to the history in the same append.
//!
//! The records lie in slots that are reused in turn, so the number of records in the log is bounded. A record
//! with many entries, such as that of a group, displaces as many of the oldest entries.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::time::Duration;

use proofmill_bus::{MAX_BATCH_OPS, Seq};

use super::change::Change;
use super::ending::{end_from_mark, millis};
use super::limits::{BESIDE_MAX, FORGET_MAX};
use super::spans::Spans;
use crate::id::TaskId;
use crate::record::{DoneRecord, HistoryEntry, HistoryRecord, Record, RecordKey, TaskEnd};

/// Number of marks not yet in the history at which the next append includes them.
const GATHER: usize = 64;

/// Maximum number of entries from marks in one record.
const ENTRIES_MAX: usize = 256;

/// Limits of the history of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryOptions {
    /// Maximum number of entries: ends of tasks, deadlines, blocks taken back. Default 20,000; 0 disables the
    /// history.
    pub steps: usize,
    /// Age after which an entry is removed when another is written. Default 30 days.
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

/// State of the history.
pub(super) struct History {
    options: HistoryOptions,
    /// Records in the log, by number.
    records: BTreeMap<u64, HistoryRecord>,
    /// Entries of the records, by the blocks that they are about: the record's number and the place in it.
    about: Spans<BTreeSet<(u64, usize)>>,
    /// Number of the record in each slot.
    slots: BTreeMap<u64, u64>,
    /// The slots and records as they will be once every pending append has been accepted.
    projected: Projected,
    /// Entries to write with the next append.
    notes: Vec<HistoryEntry>,
    /// Entries from marks that no record holds yet, each with the sequence number of its mark.
    marked: Vec<(Seq, HistoryEntry)>,
    /// Data of each record that is on its way to the log, by record number.
    pending: BTreeMap<u64, PendingRecord>,
    /// [`HistoryRecord::marks_to`] of the last record made.
    marks_to: Seq,
}

/// Entries from marks that are on their way to the log in one record.
struct PendingRecord {
    /// Entries that exceed the limit; dropped once the log has the record.
    overflow: Vec<(Seq, HistoryEntry)>,
    /// Sequence numbers of the marks that the record's first entries come from.
    marks: Vec<Seq>,
}

/// The slots and records that the log will hold.
#[derive(Default)]
struct Projected {
    next: u64,
    records: BTreeMap<u64, RecordMeta>,
    slots: BTreeMap<u64, u64>,
    entries: usize,
}

/// Sizes and age of a record.
struct RecordMeta {
    slot: u64,
    entries: usize,
    at_ms: u64,
}

// === impl History ===

impl History {
    /// An empty history.
    pub(super) fn new(options: HistoryOptions) -> Self {
        Self {
            options,
            records: BTreeMap::new(),
            about: Spans::default(),
            slots: BTreeMap::new(),
            projected: Projected::default(),
            notes: Vec::new(),
            marked: Vec::new(),
            pending: BTreeMap::new(),
            marks_to: Seq(0),
        }
    }

    /// Adds an entry, to be recorded with the next append.
    pub(super) fn note(&mut self, past: HistoryEntry) {
        self.notes.push(past);
    }

    /// Adds the entry of a mark that the log holds at `seq`, since `recorded_ms` if that is known.
    pub(super) fn note_mark(
        &mut self,
        id: &TaskId,
        done: &DoneRecord,
        seq: Seq,
        recorded_ms: Option<u64>,
    ) {
        if self.options.steps > 0
            && let Some(end) = end_from_mark(id, done)
        {
            let end = TaskEnd { recorded_ms, ..end };
            self.marked.push((seq, HistoryEntry::TaskEnd(end)));
        }
    }

    /// Adds to an append a history record with the noted entries, the tasks that the append ends without a
    /// mark (`ends`), and the entries of marks until now; and the removal of the oldest records to make
    /// room. `applied` is the sequence number up to which the log has been applied.
    pub(super) fn add_record(
        &mut self,
        changes: &mut Vec<(RecordKey, Change)>,
        now_ms: u64,
        applied: Seq,
        ends: impl FnOnce(&[(RecordKey, Change)]) -> Vec<HistoryEntry>,
    ) {
        let mut own = std::mem::take(&mut self.notes);
        if self.options.steps == 0 || changes.len() >= MAX_BATCH_OPS {
            return;
        }
        own.extend(ends(changes));
        own.truncate(self.options.steps);
        let gathered = self.marked.len();
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
            self.add_one_record(changes, now_ms, Vec::new(), own);
            return;
        }
        self.marks_to = applied;
        let mut marked = std::mem::take(&mut self.marked);
        while marked.len() > ENTRIES_MAX {
            let rest = marked.split_off(ENTRIES_MAX);
            let first = std::mem::replace(&mut marked, rest);
            self.add_one_record(changes, now_ms, first, Vec::new());
        }
        self.add_one_record(changes, now_ms, marked, own);
    }

    /// Adds one record with entries of marks (`marked`) and other entries (`own`).
    fn add_one_record(
        &mut self,
        changes: &mut Vec<(RecordKey, Change)>,
        now_ms: u64,
        marked: Vec<(Seq, HistoryEntry)>,
        own: Vec<HistoryEntry>,
    ) {
        let mut overflow = marked;
        let excess = (overflow.len() + own.len()).saturating_sub(self.options.steps);
        let fitting = overflow.split_off(excess.min(overflow.len()));
        let (marks, mut entries): (Vec<Seq>, Vec<HistoryEntry>) = fitting.into_iter().unzip();
        entries.extend(own);
        if entries.is_empty() {
            return;
        }
        let room = MAX_BATCH_OPS.saturating_sub(changes.len() + BESIDE_MAX);
        let room = room.min(FORGET_MAX);
        let projected = &mut self.projected;
        let number = projected.next;
        let mut freed = projected.make_room(&self.options, entries.len(), now_ms, room);
        // The oldest record's slot is overwritten, which saves the operation that would remove it.
        let slot = freed.pop().unwrap_or_else(|| projected.unused());
        let kept = RecordMeta {
            slot,
            entries: entries.len(),
            at_ms: now_ms,
        };
        projected.keep(number, kept);
        let pending = PendingRecord { overflow, marks };
        self.pending.insert(number, pending);
        let freed = freed.into_iter().map(RecordKey::History);
        changes.extend(freed.map(|key| (key, Change::Delete)));
        let record = Record::History(HistoryRecord {
            number,
            marks_to: self.marks_to.0,
            entries,
        });
        changes.push((RecordKey::History(slot), Change::put(record)));
    }

    /// Keeps the entries of marks in a refused append for the next record.
    pub(super) fn revert_record(&mut self, changes: &[(RecordKey, Change)]) {
        for (_, change) in changes.iter().rev() {
            let Change::Put {
                record: Record::History(past),
                ..
            } = change
            else {
                continue;
            };
            if let Some(pending) = self.pending.remove(&past.number) {
                let mut marked = pending.overflow;
                let entries = past.entries.iter().cloned();
                marked.extend(pending.marks.into_iter().zip(entries));
                marked.append(&mut self.marked);
                self.marked = marked;
            }
        }
    }

    /// Drops, after a restart, the entries of marks that a record holds or that are too old.
    pub(super) fn forget_recorded_marks(&mut self, now_ms: u64) {
        let since_ms = now_ms.saturating_sub(millis(self.options.keep));
        let marks_to = self.marks_to;
        let is_new =
            |(seq, past): &(Seq, HistoryEntry)| *seq > marks_to && past.at_ms() >= since_ms;
        self.marked.retain(is_new);
    }

    /// Changes that remove surplus records after a restart; empty once none are left.
    pub(super) fn trim(&mut self, now_ms: u64) -> Vec<(RecordKey, Change)> {
        let freed = self
            .projected
            .make_room(&self.options, 0, now_ms, FORGET_MAX);
        let freed = freed.into_iter().map(RecordKey::History);
        freed.map(|key| (key, Change::Delete)).collect()
    }

    /// Takes over a record that is in the log; `replayed` if it was there at the start.
    pub(super) fn put(&mut self, slot: u64, record: HistoryRecord, replayed: bool) {
        if replayed {
            let kept = RecordMeta {
                slot,
                entries: record.entries.len(),
                at_ms: record
                    .entries
                    .iter()
                    .map(HistoryEntry::at_ms)
                    .max()
                    .unwrap_or(0),
            };
            self.projected.free(slot);
            self.projected.keep(record.number, kept);
            self.marks_to = self.marks_to.max(Seq(record.marks_to));
        }
        self.pending.remove(&record.number);
        if let Some(before) = self.slots.insert(slot, record.number) {
            self.remove_record(before);
        }
        for (at, entry) in record.entries.iter().enumerate() {
            let (first, last) = entry.span();
            self.about.update(first, last, |places| {
                places.insert((record.number, at));
                true
            });
        }
        self.records.insert(record.number, record);
    }

    fn remove_record(&mut self, number: u64) {
        let Some(record) = self.records.remove(&number) else {
            return;
        };
        for (at, entry) in record.entries.iter().enumerate() {
            let (first, last) = entry.span();
            self.about.update(first, last, |places| {
                places.remove(&(number, at));
                !places.is_empty()
            });
        }
    }

    /// Forgets the record in a slot that was deleted from the log.
    pub(super) fn delete(&mut self, slot: u64) {
        if let Some(number) = self.slots.remove(&slot) {
            self.remove_record(number);
        }
    }

    /// Ends of tasks that the log held at the start, oldest first.
    pub(super) fn ends_replayed(&self) -> impl Iterator<Item = &TaskEnd> {
        let recorded = self.records.values().flat_map(|record| &record.entries);
        let marked = self.marked.iter().map(|(_, entry)| entry);
        recorded.chain(marked).filter_map(|entry| match entry {
            HistoryEntry::TaskEnd(end) => Some(end),
            _ => None,
        })
    }

    /// Entries of the history about any of these blocks, oldest first; `coming` are the changes on their way to
    /// the log.
    pub(super) fn entries_about<'a>(
        &'a self,
        blocks: &RangeInclusive<u64>,
        coming: impl Iterator<Item = &'a (RecordKey, Change)>,
    ) -> impl Iterator<Item = &'a HistoryEntry> {
        let touching = self.about.touching(blocks);
        let mut places: Vec<(u64, usize)> = touching
            .flat_map(|(_, _, places)| places.iter().copied())
            .collect();
        places.sort_unstable();
        let recorded = places
            .into_iter()
            .filter_map(|(number, at)| self.records.get(&number)?.entries.get(at));
        let (from, to) = (*blocks.start(), *blocks.end());
        let coming = self.entries_coming(coming).filter(move |entry| {
            let (first, last) = entry.span();
            first <= to && last >= from
        });
        recorded.chain(coming)
    }

    /// Entries that no record in the log holds yet, oldest first.
    fn entries_coming<'a>(
        &'a self,
        coming: impl Iterator<Item = &'a (RecordKey, Change)>,
    ) -> impl Iterator<Item = &'a HistoryEntry> {
        let coming = coming.filter_map(|(_, change)| match change {
            Change::Put {
                record: Record::History(past),
                ..
            } => {
                let pending = self.pending.get(&past.number)?;
                let overflow = pending.overflow.iter().map(|(_, past)| past);
                Some(overflow.chain(past.entries.iter().take(pending.marks.len())))
            }
            _ => None,
        });
        let marked = self.marked.iter().map(|(_, past)| past);
        coming.flatten().chain(marked)
    }

    #[cfg(debug_assertions)]
    pub(super) fn check(&self) -> Result<(), String> {
        let numbers = |slots: &BTreeMap<u64, u64>| {
            let numbers = slots.values().copied();
            numbers.collect::<std::collections::BTreeSet<u64>>()
        };
        let projected = &self.projected;
        let entries: usize = projected.records.values().map(|kept| kept.entries).sum();
        let in_step = numbers(&self.slots).iter().eq(self.records.keys())
            && numbers(&projected.slots)
                .iter()
                .eq(projected.records.keys())
            && entries == projected.entries
            && self.about.all().all(|(first, last, places)| {
                let mut places = places.iter();
                places.all(|(number, at)| {
                    let entry = self.records.get(number).and_then(|it| it.entries.get(*at));
                    entry.map(HistoryEntry::span) == Some((first, last))
                })
            })
            && self.about.all().map(|(_, _, it)| it.len()).sum::<usize>()
                == self
                    .records
                    .values()
                    .map(|it| it.entries.len())
                    .sum::<usize>();
        match in_step {
            true => Ok(()),
            false => Err("the slots of the history are off".to_owned()),
        }
    }
}

// === impl Projected ===

impl Projected {
    fn keep(&mut self, number: u64, kept: RecordMeta) {
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

    /// Removes the record in a slot.
    fn free(&mut self, slot: u64) {
        if let Some(kept) = self
            .slots
            .remove(&slot)
            .and_then(|number| self.records.remove(&number))
        {
            self.entries -= kept.entries;
        }
    }

    /// Removes the oldest records, at most `limit`, until `entries` more fit and no record is older than the
    /// limit of age. Returns their slots.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn taken_back(at_ms: u64) -> HistoryEntry {
        HistoryEntry::TakenBack {
            source: "chain".into(),
            first: at_ms,
            last: at_ms,
            emitted: false,
            at_ms,
        }
    }

    fn add_record(history: &mut History, at_ms: u64) -> Vec<(RecordKey, Change)> {
        let mut changes = Vec::new();
        history.note(taken_back(at_ms));
        history.add_record(&mut changes, at_ms, Seq(0), |_| Vec::new());
        changes
    }

    fn apply(history: &mut History, changes: Vec<(RecordKey, Change)>) {
        for (key, change) in changes {
            match (key, change) {
                (RecordKey::History(slot), Change::Delete) => history.delete(slot),
                (
                    RecordKey::History(slot),
                    Change::Put {
                        record: Record::History(past),
                        ..
                    },
                ) => history.put(slot, past, false),
                _ => {}
            }
        }
    }

    #[test]
    fn the_oldest_entries_make_room_for_new_ones() {
        let mut history = History::new(HistoryOptions {
            steps: 2,
            keep: Duration::from_secs(60),
        });
        for at_ms in 1..=3 {
            let changes = add_record(&mut history, at_ms);
            assert_eq!(changes.len(), 1);
            apply(&mut history, changes);
        }
        let kept: Vec<&HistoryEntry> = history
            .entries_about(&(0..=u64::MAX), std::iter::empty())
            .collect();
        assert_eq!(kept, [&taken_back(2), &taken_back(3)]);
        assert_eq!(history.check(), Ok(()));
        // Nothing to remember, nothing to write.
        let mut changes = Vec::new();
        history.add_record(&mut changes, 9, Seq(0), |_| Vec::new());
        assert!(changes.is_empty() && history.trim(9).is_empty());
        // Both have become too old.
        assert_eq!(history.trim(100_000).len(), 2);
    }
}
