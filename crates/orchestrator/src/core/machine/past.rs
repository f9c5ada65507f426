//! Entries of the history, and access to them.

use super::{Core, Then};
use crate::conversation::Complete;
use crate::core::change::Change;
use crate::core::ending::{Ending, died_step};
use crate::core::tasks::{TaskNo, TaskTable};
use crate::record::{Past, Record, RecordKey};

impl Core {
    /// Notes the workers that complete a task, while the lease still exists.
    pub(super) fn note_result(&mut self, no: TaskNo, complete: &Complete) {
        let Some(task) = self.tasks.get(no) else {
            return;
        };
        let (worker, attempt) = (&complete.worker, complete.lease.attempt);
        let begun_ms = task.copy(worker, attempt).map(|held| held.since_wall_ms());
        let results = task.results().values();
        let before = results.map(|part| (part.worker.clone(), part.attempt));
        let by = before.chain([(worker.clone(), attempt)]).collect();
        let ending = Ending::by(by, begun_ms, complete.ran);
        self.tasks.set_ending(no, ending);
    }

    /// Adds an append's history entries to it.
    pub(super) fn remember(&mut self, changes: &mut Vec<(RecordKey, Change)>) {
        let (tasks, now_ms) = (&self.tasks, self.now.wall_ms);
        let steps = |changes: &[(RecordKey, Change)]| steps_of(changes, tasks, now_ms);
        self.history.remember(changes, now_ms, self.applied, steps);
    }

    /// Trims the history after a restart: removes surplus records, and entries of marks that the history
    /// already has.
    pub(super) fn trim_past(&mut self) {
        let now_ms = self.now.wall_ms;
        self.history.forget_recorded_marks(now_ms);
        loop {
            let changes = self.history.trim(now_ms);
            if changes.is_empty() {
                return;
            }
            self.append(changes, Then::Nothing);
        }
    }

    /// Entries of the history, oldest first.
    pub(super) fn past(&self) -> impl Iterator<Item = &Past> {
        self.history.entries(self.appends.changes())
    }
}

/// History entries of the tasks that an append ends without a mark.
fn steps_of(changes: &[(RecordKey, Change)], tasks: &TaskTable, now_ms: u64) -> Vec<Past> {
    let emits = changes.iter().any(|(key, _)| *key == RecordKey::Cursor);
    let steps = changes.iter().filter_map(|(key, change)| {
        let record = match change {
            Change::Put { record, .. } => Some(record),
            Change::Delete => None,
        };
        match (key, record) {
            (RecordKey::Dead(_), Some(Record::Dead(dead))) => Some(died_step(dead)),
            (RecordKey::Task(id), None) if emits => {
                let task = tasks.with_id(id)?;
                let ending = task.ending();
                Some(ending.emitted(task.record(), task.course(), now_ms))
            }
            _ => None,
        }
    });
    steps.map(Past::Step).collect()
}
