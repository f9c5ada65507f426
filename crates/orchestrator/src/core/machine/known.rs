//! Facts about a task: whether it is live, dead, or finished, and its marks.

use super::Core;
use crate::conversation::{Reply, Uniqueness};
use crate::core::change::Change;
use crate::core::ending::timeline;
use crate::core::marks::beginning;
use crate::core::tasks::Task;
use crate::id::TaskId;
use crate::plan::StageIx;
use crate::record::{Attempt, DoneRecord, EndKind, Record, TaskRecord, TaskTimeline};

impl Core {
    /// Mark of a live task that ends now.
    pub(super) fn done(&self, end: EndKind, task: &Task) -> Change {
        let record = task.record();
        let mark = self.mark_of(end, record, task.content(), task.timeline());
        Change::put_new(Record::Done(mark))
    }

    /// Mark of the task of `record`, which ends now; `attempts` are the failed ones.
    pub(super) fn done_record(
        &self,
        end: EndKind,
        record: &TaskRecord,
        attempts: &[Attempt],
    ) -> DoneRecord {
        self.mark_of(end, record, &record.content(), timeline(record, attempts))
    }

    fn mark_of(
        &self,
        end: EndKind,
        record: &TaskRecord,
        content: &[u8; 32],
        timeline: TaskTimeline,
    ) -> DoneRecord {
        DoneRecord {
            end,
            last: record.last,
            at_ms: self.now.wall_ms,
            content: Some(beginning(content)),
            timeline: Some(timeline),
        }
    }

    /// Whether the task is finished, as far as marks reach back.
    pub(super) fn is_finished(&self, stage: StageIx, id: &TaskId, last: u64) -> bool {
        self.is_finished_below(self.sequencer.cursor(), stage, id, last)
    }

    /// The answer of [`Core::is_finished`] once every pending append has been accepted.
    pub(super) fn will_be_finished(&self, stage: StageIx, id: &TaskId, last: u64) -> bool {
        self.is_finished_below(self.sequencer.cursor_ahead(), stage, id, last)
    }

    fn is_finished_below(&self, cursor: u64, stage: StageIx, id: &TaskId, last: u64) -> bool {
        let is_passed = self.layout.leads_to_sequencer(stage) && last < cursor;
        is_passed || self.marks.get(stage, id).is_some()
    }

    /// Whether an operator has dropped the task, and the sequencer has not passed its blocks.
    pub(super) fn is_dropped(&self, stage: StageIx, record: &TaskRecord) -> bool {
        let mark = self.marks.get(stage, &record.id);
        let is_passed =
            self.layout.leads_to_sequencer(stage) && record.last < self.sequencer.cursor_ahead();
        !is_passed && mark.is_some_and(|mark| mark.is_dropped())
    }

    /// Whether the state of a task is about to change: an operator's decision about it, or the cursor's
    /// passing of its blocks, is on its way to the log.
    pub(super) fn has_pending_change(&self, reader: StageIx, record: &TaskRecord) -> bool {
        self.dead.is_deciding(&record.id)
            || self.is_finished(reader, &record.id, record.last)
                != self.will_be_finished(reader, &record.id, record.last)
    }

    /// Reply to a message whose task is known; `None` if the task is new, or would replace a dead letter with
    /// different content.
    pub(super) fn reply_if_known(&self, reader: StageIx, record: &TaskRecord) -> Option<Reply> {
        let id = &record.id;
        if let Some(task) = self.tasks.with_id(id) {
            let live = task.record();
            let same = live.payload == record.payload && live.last == record.last;
            return Some(if same {
                Reply::Duplicate { same: Some(true) }
            } else {
                Reply::Differs { task: id.clone() }
            });
        }
        if self.is_finished(reader, id, record.last) {
            let mark = self.marks.get(reader, id);
            let same = mark.and_then(|mark| mark.carried(&record.content()));
            return Some(Reply::Duplicate { same });
        }
        let dead = self.dead.get(id)?;
        let same = dead.task.payload == record.payload && dead.task.last == record.last;
        same.then(|| Reply::IsDead {
            task: id.clone(),
            why: dead.reason.clone(),
        })
    }

    /// Reply to a message that must be the only one of its block: [`Reply::Differs`] if there is another
    /// message, [`Reply::Duplicate`] if nothing must be recorded, `None` if the message may be recorded.
    pub(super) fn reply_if_not_unique(
        &self,
        uniqueness: Uniqueness,
        stage: StageIx,
        record: &TaskRecord,
    ) -> Option<Reply> {
        if matches!(uniqueness, Uniqueness::Multiple | Uniqueness::Resubmitted) {
            return None;
        }
        let id = &record.id;
        // Parts of messages of other queues and writers have a different prefix.
        let origin = |part: &str| part.rsplit_once(':').map(|(origin, _)| origin.to_owned());
        let own = origin(id.part.as_str());
        let is_other = |other: &TaskId| {
            other.stage == id.stage
                && other.block == id.block
                && other.part != id.part
                && origin(other.part.as_str()) == own
        };
        let is_live = self.tasks.present(stage).has(&(id.block..=id.block));
        let live = self.tasks.iter().filter(|_| is_live);
        let live = live.map(Task::id).find(|other| is_other(other));
        let mut dead = self.dead.ids();
        let other = live.or_else(|| dead.find(|other| is_other(other))).cloned();
        let parts = self.marks.parts(stage, id.block);
        let mut finished = parts.map(|part| TaskId {
            part: part.clone(),
            ..id.clone()
        });
        if let Some(task) = other.or_else(|| finished.find(is_other)) {
            return Some(Reply::Differs { task });
        }
        let is_known = self.tasks.contains(id)
            || self.dead.contains(id)
            || self.is_finished(stage, id, record.last);
        let is_nothing = uniqueness == Uniqueness::ReplayOnly && !is_known;
        is_nothing.then_some(Reply::Duplicate { same: None })
    }
}
