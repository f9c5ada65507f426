//! Application of the log's records to the state.

use bytes::Bytes;
use proofmill_bus::Seq;

use super::Core;
use crate::core::counts::ReplayedEnd;
use crate::core::ending::{end_from_dead_letter, end_from_mark};
use crate::core::event::TaskReportKind;
use crate::core::tag::LeaseKey;
use crate::core::tasks::{NewTask, Phase, RunPolicy, TaskNo};
use crate::id::TaskId;
use crate::origin;
use crate::plan::Late;
use crate::record::{DeadRecord, DoneRecord, EndKind, Record, RecordError, RecordKey, TaskRecord};

/// A log that does not fit the workflow, or was written by another program.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ReplayError {
    /// A record cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A live task is for a stage that the workflow does not have.
    #[error(
        "the state holds unfinished task {task} but workflow {workflow:?} has no stage {stage:?}; \
         restore the stage, finish the old workflow first, or start with another state directory"
    )]
    NoSuchStage {
        /// The workflow.
        workflow: String,
        /// The stage.
        stage: String,
        /// The task.
        task: TaskId,
    },
}

impl Core {
    /// Applies a live record of the log. Call in the order of sequence numbers, before [`Core::start`].
    ///
    /// A record that cannot be read, or does not match its key, is set aside ([`Core::set_aside`]): one
    /// damaged record must not prevent the workflow from being led.
    ///
    /// # Errors
    /// The record is of a version that this program does not know, or belongs to a stage that the workflow
    /// does not have. Continuing would leave work undone that another program, or another workflow file,
    /// would do.
    pub fn replay(&mut self, key: &str, value: &Bytes, seq: Seq) -> Result<(), ReplayError> {
        self.applied = self.applied.max(seq);
        let read = RecordKey::parse(key).and_then(|found| Ok((found, Record::decode(key, value)?)));
        let (record_key, record) = match read {
            Ok(read) => read,
            Err(error @ RecordError::UnknownVersion { .. }) => return Err(error.into()),
            Err(error) => {
                self.set_aside.push((key.to_owned(), error.to_string()));
                return Ok(());
            }
        };
        if let Err(why) = record.fits(&record_key) {
            self.set_aside.push((key.to_owned(), why.to_owned()));
            return Ok(());
        }
        let task = match (&record_key, &record) {
            (RecordKey::Task(id), _) | (RecordKey::Dead(id), _) => Some(id),
            _ => None,
        };
        if let Some(task) = task.filter(|id| self.layout.stage_of(id).is_none()) {
            return Err(ReplayError::NoSuchStage {
                workflow: self.plan.workflow.to_string(),
                stage: task.stage.to_string(),
                task: task.clone(),
            });
        }
        self.put(&record_key, record, seq);
        self.reopened = true;
        Ok(())
    }

    /// Records that could not be applied: the key of each, and the reason.
    pub fn set_aside(&self) -> &[(String, String)] {
        &self.set_aside
    }

    /// Whether the log has the key that leases are tagged with.
    pub fn has_lease_key(&self) -> bool {
        self.lease_key.is_some()
    }

    /// Applies a record. Returns the task if it is new; the caller must then [`Core::enter`] it.
    pub(super) fn put(&mut self, key: &RecordKey, record: Record, seq: Seq) -> Option<TaskNo> {
        match (key, record) {
            (RecordKey::Task(id), Record::Task(task)) => return self.put_task(id, task, seq),
            (RecordKey::Attempts(id), Record::Attempts(attempts)) => {
                let no = self.tasks.no_of(id)?;
                if self.started {
                    // The task has these attempts already, and perhaps more.
                    self.retry_later(no);
                } else {
                    self.tasks.replay_attempts(no, attempts);
                }
            }
            // After the start, the task was changed before the record was appended.
            (RecordKey::Run(id), Record::Run(run)) if !self.started => {
                let no = self.tasks.no_of(id)?;
                self.tasks.replay_run(no, run);
            }
            (RecordKey::GroupStart(stage, key), Record::GroupStart(since_ms)) if !self.started => {
                let stage = self.layout.stage_named(stage)?;
                self.collectors.replay_began(stage, key, since_ms);
            }
            (RecordKey::PartialResult(id, _), Record::PartialResult(part)) => {
                let no = self.tasks.no_of(id)?;
                self.tasks.add_result(no, part);
            }
            (RecordKey::Done(id), Record::Done(done)) => self.put_done(id, done, seq),
            (RecordKey::Dead(id), Record::Dead(dead)) => self.put_dead(id, dead, seq),
            (RecordKey::Group(stage, key), Record::Group(group)) => {
                let stage = self.layout.stage_named(stage)?;
                self.collectors.note_fired(stage, key, group.last);
            }
            (RecordKey::Cursor, Record::Cursor(next)) => {
                self.sequencer.record(next);
                self.marks.note_outdated();
            }
            // After the start, the slot is known since its append was made, and may have ended by now.
            (RecordKey::Slot(first), Record::Slot(slot)) if !self.started => {
                self.put_slot(*first, slot);
            }
            (RecordKey::LeaseKey, Record::LeaseKey(bytes)) => {
                self.lease_key = Some(LeaseKey::new(&bytes));
            }
            (RecordKey::Source(name), Record::Source(next)) => {
                self.sources.put_position(name.clone(), next);
            }
            (RecordKey::Pause(..), Record::Pause(pause)) => self.put_pause(pause),
            (RecordKey::Rewind(name), Record::Rewind(rewind)) => {
                self.sources.put_rewind(name.clone(), rewind);
            }
            (RecordKey::History(slot), Record::History(past)) => {
                self.history.put(*slot, past, !self.started);
            }
            (RecordKey::Counts(stage), Record::Counts(numbers)) if !self.started => {
                let stage = self.layout.stage_named(stage)?;
                self.counts.replay_stage(stage, &numbers);
            }
            (RecordKey::Totals, Record::Counts(numbers)) if !self.started => {
                self.counts.replay_totals(&numbers);
            }
            // `Record::fits` has excluded all other pairs.
            _ => {}
        }
        None
    }

    fn put_task(&mut self, id: &TaskId, mut record: TaskRecord, seq: Seq) -> Option<TaskNo> {
        let stage = self.layout.stage_of(id)?;
        self.mend_origins(&mut record);
        self.mend_trace(id, &mut record.trace);
        if self.tasks.contains(id) || self.is_finished(stage, id, record.last) {
            return None;
        }
        self.slots.count(&record, true);
        let no = self.tasks.insert(NewTask {
            class: self.layout.class_of(stage, record.needs.as_ref()),
            policy: RunPolicy::of(self.plan.stage(stage).dispatcher()),
            record,
            stage,
            seq,
            accepted: self.now.mono,
            replayed: !self.started,
        });
        self.trace_submission(no, seq);
        self.report_accepted(no, seq);
        Some(no)
    }

    fn put_done(&mut self, id: &TaskId, done: DoneRecord, seq: Seq) {
        let Some(stage) = self.layout.stage_of(id) else {
            return;
        };
        self.marks.put(stage, id, &done);
        self.steps.note_done(stage, id, &done);
        if !self.started {
            self.counts.replay(stage, ReplayedEnd::Done(&done.end));
        }
        let recorded_ms = self.started.then_some(self.now.wall_ms);
        self.history.note_mark(id, &done, seq, recorded_ms);
        self.trace_end(seq, |_| end_from_mark(id, &done));
        if let EndKind::Late { why, passed_on } = done.end {
            let became = if passed_on { Late::Emit } else { Late::Skip };
            let mut trace = done.timeline.map(|timeline| timeline.trace);
            let trace = trace.get_or_insert_default();
            self.mend_trace(id, trace);
            self.report(id, trace, TaskReportKind::Late { why, became });
        }
        self.forget(id);
        if !self.layout.leads_to_sequencer(stage) {
            self.marks.note_outdated();
        }
    }

    fn put_dead(&mut self, id: &TaskId, mut dead: DeadRecord, seq: Seq) {
        let Some(stage) = self.layout.stage_of(id) else {
            return;
        };
        if !self.started {
            self.counts
                .replay(stage, ReplayedEnd::Dead { late: dead.late });
        }
        self.mend_trace(id, &mut dead.task.trace);
        let (why, became) = (dead.reason.clone(), Late::Dead);
        let kind = match dead.late {
            true => TaskReportKind::Late { why, became },
            false => TaskReportKind::Dead { why },
        };
        self.report(id, &dead.task.trace, kind);
        self.trace_end(seq, |_| Some(end_from_dead_letter(&dead)));
        self.forget(id);
        self.dead.put(stage, id, dead);
    }

    /// Adds origins to a record of a version without them. A message in a queue that no stage writes was
    /// submitted as it is; a worker's output stays without origins, and no verifying stage accepts it.
    fn mend_origins(&self, task: &mut TaskRecord) {
        let made = self.plan.stages.iter().flat_map(|stage| &stage.outputs);
        let mut made = made.map(|queue| &self.plan.queue(*queue).name);
        if task.origins.is_empty() && !made.any(|queue| *queue == task.queue) {
            task.origins = origin::submitted(task.id.block, task.last, &task.payload);
        }
    }

    pub(super) fn delete(&mut self, key: &RecordKey) {
        match key {
            RecordKey::Task(id) => self.forget(id),
            RecordKey::Dead(id) => {
                let stage = self.layout.stage_of(id);
                let dead = stage.and_then(|stage| self.dead.remove(stage, id));
                if let Some(dead) = dead {
                    self.slots.note_ripe(&dead.task);
                }
            }
            RecordKey::Done(id) => {
                if let Some(stage) = self.layout.stage_of(id) {
                    self.marks.remove(stage, id);
                    if self.marks.count(stage, id.block) == 0 {
                        self.steps.forget(stage, id.block);
                    }
                }
            }
            RecordKey::Group(stage, key) => {
                if let Some(stage) = self.layout.stage_named(stage) {
                    self.collectors.forget_fired(stage, key);
                }
            }
            RecordKey::Rewind(name) => self.sources.delete_rewind(name),
            RecordKey::Pause(kind, name) => self.delete_pause(*kind, name),
            RecordKey::History(slot) => self.history.delete(*slot),
            RecordKey::Counts(_)
            | RecordKey::Totals
            | RecordKey::Attempts(_)
            | RecordKey::Run(_)
            | RecordKey::GroupStart(..)
            | RecordKey::Opened
            | RecordKey::PartialResult(..)
            | RecordKey::Slot(_)
            | RecordKey::Cursor
            | RecordKey::LeaseKey
            | RecordKey::Source(_) => {}
        }
    }

    /// Removes a live task from every index.
    fn forget(&mut self, id: &TaskId) {
        let Some(no) = self.tasks.no_of(id) else {
            return;
        };
        self.end_copies(no, None);
        self.set_phase(no, Phase::New);
        if let Some(task) = self.tasks.remove(id) {
            self.slots.count(task.record(), false);
        }
    }
}
