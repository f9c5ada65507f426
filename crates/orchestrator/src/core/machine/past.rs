//! Entries of the history, and access to them.

use std::ops::RangeInclusive;

use super::{Core, OnAccepted};
use crate::conversation::WorkerResult;
use crate::core::change::Change;
use crate::core::ending::{EndDetails, end_from_dead_letter};
use crate::core::tasks::{TaskNo, TaskTable};
use crate::record::{HistoryEntry, Record, RecordKey};

impl Core {
    /// Notes the workers that complete a task, while the lease still exists.
    pub(super) fn note_result(&mut self, no: TaskNo, complete: &WorkerResult) {
        let Some(task) = self.tasks.get(no) else {
            return;
        };
        let (worker, attempt) = (&complete.worker, complete.lease.attempt);
        let begun_ms = task.copy(worker, attempt).map(|held| held.since_wall_ms());
        let results = task.results().values();
        let before = results.map(|part| (part.worker.clone(), part.attempt));
        let by = before.chain([(worker.clone(), attempt)]).collect();
        let end_details = EndDetails::by(by, begun_ms, complete.ran);
        self.tasks.set_end_details(no, end_details);
    }

    /// Adds an append's history entries to it.
    pub(super) fn add_history(&mut self, changes: &mut Vec<(RecordKey, Change)>) {
        let (tasks, now_ms) = (&self.tasks, self.now.wall_ms);
        let ends = |changes: &[(RecordKey, Change)]| unmarked_ends(changes, tasks, now_ms);
        self.history.add_record(changes, now_ms, self.applied, ends);
    }

    /// Trims the history after a restart: removes surplus records, and entries of marks that the history
    /// already has.
    pub(super) fn trim_history(&mut self) {
        let now_ms = self.now.wall_ms;
        self.history.forget_recorded_marks(now_ms);
        loop {
            let changes = self.history.trim(now_ms);
            if changes.is_empty() {
                return;
            }
            self.append(changes, OnAccepted::Nothing);
        }
    }

    /// Entries of the history about any of these blocks, oldest first.
    pub(super) fn history_about(
        &self,
        blocks: &RangeInclusive<u64>,
    ) -> impl Iterator<Item = &HistoryEntry> {
        self.history.entries_about(blocks, self.appends.changes())
    }
}

/// History entries of the tasks that an append ends without a mark.
fn unmarked_ends(
    changes: &[(RecordKey, Change)],
    tasks: &TaskTable,
    now_ms: u64,
) -> Vec<HistoryEntry> {
    let emits = changes.iter().any(|(key, _)| *key == RecordKey::Cursor);
    let ends = changes.iter().filter_map(|(key, change)| {
        let record = match change {
            Change::Put { record, .. } => Some(record),
            Change::Delete => None,
        };
        match (key, record) {
            (RecordKey::Dead(_), Some(Record::Dead(dead))) => Some(end_from_dead_letter(dead)),
            (RecordKey::Task(id), None) if emits => {
                let task = tasks.with_id(id)?;
                let end_details = task.end_details();
                Some(end_details.emitted(task.record(), task.timeline(), now_ms))
            }
            _ => None,
        }
    });
    ends.map(HistoryEntry::TaskEnd).collect()
}
