//! Messages that reach a collector after the group that they belong to was emitted.
//!
//! Each such message is recorded and counted: as a dead letter, or by a mark if the stage passes it on alone
//! or skips it. A repeated message is not among them, because its id is known.

use super::collect::member_of;
use super::{Core, OnAccepted};
use crate::core::change::Change;
use crate::core::event::{Action, Settled, TaskReport, TaskReportKind};
use crate::core::limits::{REASON_MAX, excess, truncate};
use crate::core::tasks::{Phase, TaskNo};
use crate::id::{Part, TaskId};
use crate::message::Message;
use crate::payload::Payload;
use crate::plan::{Late, StageIx};
use crate::record::{DeadRecord, EndKind, Record, RecordKey, TaskRecord};
use crate::traces::TaskTrace;

impl Core {
    /// Key of the emitted group that a message came too late for; `None` if it waits in the group with the
    /// key `waits_in`.
    pub(super) fn emitted_group(&self, no: TaskNo, waits_in: &str) -> Option<String> {
        let task = self.tasks.get(no)?;
        let stage = task.stage();
        if self.collectors.is_fired(stage, &Part::from_text(waits_in)) {
            return Some(waits_in.to_owned());
        }
        let strategy = &self.plan.stage(stage).collector()?.strategy;
        let member = member_of(task.record());
        let (last, keys) = self.collectors.next_fired(stage, member.last)?;
        let belonged = |key: &&Part| strategy.belonged_to(&member, waits_in, key.as_str(), last);
        keys.iter()
            .find(belonged)
            .map(|key| key.as_str().to_owned())
    }

    /// Handles a message that came after group `key` was emitted and that its strategy does not keep.
    pub(super) fn late(&mut self, no: TaskNo, key: &str) {
        let Some(task) = self.tasks.get(no) else {
            return;
        };
        let (stage, record) = (task.stage(), task.record().clone());
        let Some(becomes) = self.plan.stage(stage).collector().map(|plan| plan.late) else {
            return;
        };
        let mut why = format!("it came late: group {key:?} was already emitted");
        truncate(&mut why, REASON_MAX);
        if becomes == Late::Dead {
            self.dead_letter_task_as(no, why, Vec::new(), true);
            return;
        }
        let passed_on = becomes == Late::Emit;
        let end = EndKind::Late { why, passed_on };
        let done = self.done(end, task);
        let mut changes = vec![
            (RecordKey::Task(record.id.clone()), Change::Delete),
            (RecordKey::Done(record.id.clone()), done),
        ];
        if passed_on {
            self.pass_on_alone(stage, &record, &mut changes);
        }
        if let Some(why) = excess(&changes) {
            let why = format!("it came late for group {key:?}, and cannot go on alone: {why}");
            self.dead_letter_task_as(no, why, Vec::new(), true);
            return;
        }
        self.set_phase(no, Phase::Finishing);
        self.append(
            changes,
            OnAccepted::Settled(vec![Settled::without_result(&record)]),
        );
    }

    /// Adds the records that pass a collector's late message on, as a group of one.
    fn pass_on_alone(
        &self,
        stage: StageIx,
        record: &TaskRecord,
        changes: &mut Vec<(RecordKey, Change)>,
    ) {
        let message = Message {
            first: record.id.block,
            last: record.last,
            // The group's own part is its key.
            part: record.id.part.of("late"),
            payload: Payload::Group {
                by_queue: self.plan.stage(stage).inputs.len() > 1,
                members: vec![(record.queue.clone(), record.payload.clone())],
            },
            needs: None,
            grouping: Vec::new(),
        };
        let trace = record.trace.after(&record.id);
        self.pass_on(stage, &message, (&record.origins, &trace), changes);
    }

    /// Adds the record of a message for `reader` whose blocks the sequencer has passed. It can lead to no
    /// output any more, but it is counted.
    pub(super) fn record_passed_over(
        &self,
        reader: StageIx,
        record: TaskRecord,
        changes: &mut Vec<(RecordKey, Change)>,
    ) {
        let id = record.id.clone();
        let why = format!(
            "blocks {} to {} were already emitted",
            id.block, record.last
        );
        let becomes = self.plan.stage(reader).collector().map(|plan| plan.late);
        if becomes == Some(Late::Dead) {
            let dead = DeadRecord {
                task: record,
                reason: format!("it came late: {why}"),
                attempts: Vec::new(),
                at_ms: self.now.wall_ms,
                late: true,
            };
            changes.push((RecordKey::Dead(id), Change::put_new(Record::Dead(dead))));
            return;
        }
        let end = match becomes {
            Some(becomes) => EndKind::Late {
                why: format!("it came late: {why}"),
                passed_on: becomes == Late::Emit,
            },
            None => EndKind::Skipped { why },
        };
        // Without the condition that no mark exists: the whole append would depend on it.
        let done = self.done_record(end, &record, &[]);
        changes.push((RecordKey::Done(id), Change::put(Record::Done(done))));
        if becomes == Some(Late::Emit) {
            self.pass_on_alone(reader, &record, changes);
        }
    }

    /// Reports an event of a task to the operator: a failed attempt at once, a death or a late message once it is in the log.
    pub(super) fn report(&mut self, id: &TaskId, trace: &TaskTrace, kind: TaskReportKind) {
        if self.started {
            let report = TaskReport {
                task: id.clone(),
                trace: trace.trace,
                kind,
            };
            self.actions.push(Action::Report(Box::new(report)));
        }
    }
}
