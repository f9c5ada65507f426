//! How records of the log change the state.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use proofmill_bus::Seq;

use super::counts::Replayed;
use super::marks::Mark;
use super::past::Ending;
use super::{Core, Gathered, Phase, Task};
use crate::core::ready::TaskNo;
use crate::core::tag::LeaseKey;
use crate::id::TaskId;
use crate::origin;
use crate::plan::Late;
use crate::record::{Finish, Record, RecordError, RecordKey, TaskRecord};

/// The log does not fit the workflow, or is not ours.
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
    /// Takes a live record of the log into account; call in order of sequence numbers, before
    /// [`Core::start`].
    ///
    /// A record that cannot be read, or is not what its key says, is set aside
    /// ([`Core::set_aside`]): one damaged record must not keep a workflow from being led.
    ///
    /// # Errors
    /// The record is of another version of this program, or of a stage that the workflow does not
    /// have: going on would leave work undone that another program, or another file, would do.
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
        if let Some(task) = task.filter(|id| !self.stage_ix.contains_key(&id.stage)) {
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

    /// The keys of records that could not be applied, and why.
    pub fn set_aside(&self) -> &[(String, String)] {
        &self.set_aside
    }

    /// Whether the log has the key that leases are tagged with.
    pub fn has_lease_key(&self) -> bool {
        self.lease_key.is_some()
    }

    /// Applies a record. Returns the task if it is a new one, still to [`Core::enter`] its stage.
    pub(super) fn put(&mut self, key: &RecordKey, record: Record, seq: Seq) -> Option<TaskNo> {
        match (key, record) {
            (RecordKey::Task(id), Record::Task(mut task)) => {
                let stage = self.stage_of(id)?;
                self.mend_origins(&mut task);
                if self.by_id.contains_key(id) || self.is_finished(stage, id, task.last) {
                    return None;
                }
                let no = TaskNo(self.next_no);
                self.next_no += 1;
                self.by_id.insert(id.clone(), no);
                let class = self.class_of(stage, task.needs.as_ref());
                let dispatcher = self.plan.stage(stage).dispatcher();
                let speculation = dispatcher.map(|dispatcher| &dispatcher.speculation);
                let wanted = speculation.map_or(1, |of| of.copies);
                let r_max = dispatcher.map_or(0, |dispatcher| dispatcher.r_max);
                let copies = u32::try_from(wanted).unwrap_or(u32::MAX);
                let task = Task {
                    class,
                    copies: Vec::new(),
                    parts: BTreeMap::new(),
                    wanted,
                    accept: speculation.map_or(1, |of| of.accept),
                    attempts_max: r_max.saturating_add(1).saturating_mul(copies),
                    hedges: speculation.is_some_and(|of| of.hedge.is_some()),
                    reported: Vec::new(),
                    key: None,
                    at_once: false,
                    lost: Vec::new(),
                    retry_at_ms: None,
                    run_recorded: false,
                    ending: Ending::default(),
                    replayed: !self.started,
                    no,
                    stage,
                    content: task.content(),
                    record: Arc::new(task),
                    seq,
                    accepted: self.now.mono,
                    phase: Phase::New,
                    attempts: Vec::new(),
                };
                self.count_in_slots(&task.record, true);
                self.tasks.insert(no, task);
                self.present[stage.0].add(id.block);
                self.moving += 1;
                return Some(no);
            }
            (RecordKey::Tries(id), Record::Tries(attempts)) => {
                let no = *self.by_id.get(id)?;
                if self.started {
                    // The task has them already, and perhaps more.
                    self.retry_later(no);
                } else {
                    self.update(no, |task| task.attempts = attempts);
                }
            }
            (RecordKey::Run(id), Record::Run(run)) => {
                let no = *self.by_id.get(id)?;
                // Else the task has been what it says since before it was appended.
                if !self.started
                    && let Some(task) = self.tasks.get_mut(&no)
                {
                    task.lost = run.begun;
                    task.retry_at_ms = run.retry_at_ms;
                    task.run_recorded = true;
                }
            }
            (RecordKey::Since(stage, key), Record::Since(since_ms)) => {
                let stage = *self.stage_ix.get(stage)?;
                let collector = self.collectors[stage.0].as_mut()?;
                if !self.started {
                    let group = Gathered {
                        since_ms,
                        due: None,
                        recorded: true,
                    };
                    collector.began.insert(key.clone(), group);
                }
            }
            (RecordKey::Opened, Record::Opened(_)) => {}
            (RecordKey::Part(id, _), Record::Part(part)) => {
                let no = *self.by_id.get(id)?;
                self.update(no, |task| {
                    task.parts.entry(part.name.clone()).or_insert(part);
                });
            }
            (RecordKey::Done(id), Record::Done(done)) => {
                let stage = self.stage_of(id)?;
                let finished = &mut self.finished[stage.0];
                finished
                    .by_block
                    .entry(id.block)
                    .or_default()
                    .insert(id.part.clone(), Mark::of(&done));
                finished.newest = finished.newest.max(id.block);
                self.count_replayed(stage, Replayed::Done(&done.finish));
                self.note_mark(id, &done, seq);
                if let Finish::Late { why, passed_on } = done.finish {
                    let became = if passed_on { Late::Emit } else { Late::Skip };
                    self.tell_late(id, why, became);
                }
                self.forget(id);
                if !self.leads[stage.0] {
                    self.note_outdated();
                }
            }
            (RecordKey::Dead(id), Record::Dead(dead)) => {
                let stage = self.stage_of(id)?;
                self.count_replayed(stage, Replayed::Dead { late: dead.late });
                if dead.late {
                    self.tell_late(id, dead.reason.clone(), Late::Dead);
                }
                self.forget(id);
                self.deciding.remove(id);
                if self.dead.insert(id.clone(), (dead, seq)).is_none() {
                    self.buried[stage.0] += 1;
                }
            }
            (RecordKey::Group(stage, key), Record::Group(group)) => {
                let stage = *self.stage_ix.get(stage)?;
                let collector = self.collectors[stage.0].as_mut()?;
                collector.note_fired(key, group.last);
            }
            (RecordKey::Cursor, Record::Cursor(next)) => {
                self.cursor = self.cursor.max(next);
                self.cursor_ahead = self.cursor_ahead.max(next);
                self.emit_next = self.emit_next.max(next);
                self.note_outdated();
            }
            // Else it is known since it was decided, and may have ended by now.
            (RecordKey::Slot(first), Record::Slot(slot)) if !self.started => {
                self.put_slot(*first, slot);
            }
            (RecordKey::LeaseKey, Record::LeaseKey(bytes)) => {
                self.lease_key = Some(LeaseKey::new(&bytes));
            }
            (RecordKey::Source(name), Record::Source(next)) => {
                self.sources.insert(name.clone(), next);
            }
            (RecordKey::Rewind(name), Record::Rewind(rewind)) => {
                self.rewinds.insert(name.clone(), rewind);
            }
            (RecordKey::Past(slot), Record::Past(past)) => self.put_past(*slot, past),
            (RecordKey::Counts(stage), Record::Counts(numbers)) => {
                let stage = *self.stage_ix.get(stage)?;
                self.put_counts(stage, &numbers);
            }
            (RecordKey::Totals, Record::Counts(numbers)) => self.put_totals(&numbers),
            // `Record::fits` is asked before.
            _ => {}
        }
        None
    }

    /// A record of a version without origins. What no stage has made was submitted as it is; what a
    /// worker made stays without, and nothing that verifies takes it.
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
                self.deciding.remove(id);
                if let Some((dead, _)) = self.dead.remove(id)
                    && let Some(stage) = self.stage_of(id)
                {
                    self.buried[stage.0] -= 1;
                    self.note_ripe(&dead.task);
                }
            }
            RecordKey::Done(id) => {
                let Some(stage) = self.stage_of(id) else {
                    return;
                };
                let finished = &mut self.finished[stage.0];
                if let Some(parts) = finished.by_block.get_mut(&id.block) {
                    parts.remove(&id.part);
                    if parts.is_empty() {
                        finished.by_block.remove(&id.block);
                    }
                }
            }
            RecordKey::Group(stage, key) => {
                let collector = self.stage_ix.get(stage).copied();
                let collector = collector.and_then(|ix| self.collectors[ix.0].as_mut());
                let Some(collector) = collector else { return };
                let Some(last) = collector.fired.remove(key) else {
                    return;
                };
                if let Some(keys) = collector.fired_by_last.get_mut(&last) {
                    keys.remove(key);
                    if keys.is_empty() {
                        collector.fired_by_last.remove(&last);
                    }
                }
            }
            RecordKey::Rewind(name) => {
                self.rewinds.remove(name);
            }
            RecordKey::Past(slot) => self.delete_past(*slot),
            RecordKey::Counts(_)
            | RecordKey::Totals
            | RecordKey::Tries(_)
            | RecordKey::Run(_)
            | RecordKey::Since(..)
            | RecordKey::Opened
            | RecordKey::Part(..)
            | RecordKey::Slot(_)
            | RecordKey::Cursor
            | RecordKey::LeaseKey
            | RecordKey::Source(_) => {}
        }
    }

    /// Removes a live task from every index.
    fn forget(&mut self, id: &TaskId) {
        let Some(no) = self.by_id.remove(id) else {
            return;
        };
        self.end_copies(no, None);
        self.set_phase(no, Phase::New);
        if let Some(task) = self.tasks.remove(&no) {
            self.present[task.stage.0].remove(id.block);
            self.moving -= 1;
            self.count_in_slots(&task.record, false);
        }
    }
}
