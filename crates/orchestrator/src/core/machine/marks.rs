//! Marks of finished tasks: how each ended, and what is remembered of what it carried.

use std::collections::BTreeMap;

use super::past::course;
use super::{Change, Core, Task};
use crate::id::{Part, TaskId};
use crate::plan::StageIx;
use crate::record::{Attempt, Course, DoneRecord, Finish, Record, TaskRecord};

/// The finished tasks of a stage, as far back as they are remembered.
#[derive(Default)]
pub(super) struct Finished {
    /// By first block and part.
    pub(super) by_block: BTreeMap<u64, BTreeMap<Part, Mark>>,
    pub(super) newest: u64,
}

/// What is remembered of a finished task.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    /// Its last block, inclusive.
    pub(super) last: u64,
    content: Option<[u8; 16]>,
    is_dropped: bool,
}

impl Core {
    /// The mark of a live task that ends now.
    pub(super) fn done(&self, finish: Finish, task: &Task) -> Change {
        let record = &task.record;
        let course = task.course();
        Change::put_new(Record::Done(self.mark_of(
            finish,
            record,
            &task.content,
            course,
        )))
    }

    /// The mark of what this record is about, which ends now; `attempts` are those that failed.
    pub(super) fn done_record(
        &self,
        finish: Finish,
        record: &TaskRecord,
        attempts: &[Attempt],
    ) -> DoneRecord {
        self.mark_of(finish, record, &record.content(), course(record, attempts))
    }

    fn mark_of(
        &self,
        finish: Finish,
        record: &TaskRecord,
        content: &[u8; 32],
        course: Course,
    ) -> DoneRecord {
        DoneRecord {
            finish,
            last: record.last,
            at_ms: self.now.wall_ms,
            content: Some(beginning(content)),
            course: Some(course),
        }
    }

    /// Whether the task is finished, as far as is remembered.
    pub(super) fn is_finished(&self, stage: StageIx, id: &TaskId, last: u64) -> bool {
        self.is_finished_below(self.cursor, stage, id, last)
    }

    /// As [`Core::is_finished`], once every append on its way has been accepted.
    pub(super) fn will_be_finished(&self, stage: StageIx, id: &TaskId, last: u64) -> bool {
        self.is_finished_below(self.cursor_ahead, stage, id, last)
    }

    fn is_finished_below(&self, cursor: u64, stage: StageIx, id: &TaskId, last: u64) -> bool {
        (self.leads[stage.0] && last < cursor) || self.mark(stage, id).is_some()
    }

    /// The mark of a task, if it is finished and that is remembered.
    pub(super) fn mark(&self, stage: StageIx, id: &TaskId) -> Option<&Mark> {
        let parts = self.finished[stage.0].by_block.get(&id.block)?;
        parts.get(&id.part)
    }

    /// Whether a finished task carried the same; `None` if that is not known any more.
    pub(super) fn carried_same(&self, stage: StageIx, record: &TaskRecord) -> Option<bool> {
        let content = self.mark(stage, &record.id)?.content?;
        Some(content == beginning(&record.content()))
    }

    /// Whether an operator has dropped the task, and the sequencer has not passed its blocks.
    pub(super) fn is_dropped(&self, stage: StageIx, record: &TaskRecord) -> bool {
        let mark = self.mark(stage, &record.id);
        let is_passed = self.leads[stage.0] && record.last < self.cursor_ahead;
        !is_passed && mark.is_some_and(|mark| mark.is_dropped)
    }
}

// === impl Mark ===

impl Mark {
    pub(super) fn of(done: &DoneRecord) -> Self {
        Self {
            last: done.last,
            content: done.content,
            is_dropped: done.finish == Finish::Dropped,
        }
    }
}

/// What a mark keeps of a task's content.
fn beginning(content: &[u8; 32]) -> [u8; 16] {
    std::array::from_fn(|at| content[at])
}
