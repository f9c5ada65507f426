//! Results: the choice of the winning one, and the messages that follow from it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::task::forget_parts;
use super::{Core, OnAccepted};
use crate::conversation::{LeaseRef, Output, WorkerCommand, WorkerResult};
use crate::core::change::Change;
use crate::core::event::{Settled, Timing};
use crate::core::limits::{excess, excess_of_part};
use crate::core::tasks::{ActiveLease, Phase, TaskNo};
use crate::id::Part;
use crate::message::{Message, tasks_of};
use crate::origin::{self, Origins};
use crate::payload::Payload;
use crate::plan::StageIx;
use crate::principal::quorum_id;
use crate::record::{
    DeadRecord, EndKind, Failure, GroupingOf, PartialResult, Record, RecordKey, TaskRecord,
};
use crate::traces::{AttemptEnd, TaskTrace};

impl Core {
    /// Handles a result. It counts if its worker was given the lease, even if the lease has ended. Where a
    /// task takes one result, the first wins; where it takes several, they must come from different workers
    /// of different users. A distrusted worker's results do not count.
    pub(super) fn complete(&mut self, complete: WorkerResult) {
        self.workers.hear(&complete.worker, self.now.mono);
        let task = self.leased_task(&complete.worker, &complete.lease);
        if task.is_some_and(|task| task.phase() == Phase::Finishing) {
            // A result is being recorded, possibly this one; the worker learns of it once it is.
            return;
        }
        let is_trusted = !self.workers.is_distrusted(&complete.worker);
        let task =
            task.filter(|task| is_trusted && self.plan.stage(task.stage()).dispatcher().is_some());
        let Some(task) = task else {
            self.refuse(complete.worker, complete.lease);
            return;
        };
        let no = task.no();
        // Members of a group would leave the workflow under names that the worker chose.
        let is_group = |output: &Output| matches!(output.payload, Payload::Group { .. });
        if complete.outputs.iter().any(is_group) {
            self.result_is_wrong(no, &complete, "it is a group, which only collectors make");
            return;
        }
        if task.results_required() > 1 {
            self.complete_part(no, complete);
            return;
        }
        let (stage, record) = (task.stage(), task.record().clone());
        let mut elements = BTreeSet::new();
        let mut messages = Vec::with_capacity(complete.outputs.len());
        for output in &complete.outputs {
            if !elements.insert(output.element) {
                let why = "the result has two messages of the same position";
                self.result_is_wrong(no, &complete, why);
                return;
            }
            let part = match output.element {
                Some(index) => record.id.part.element(index),
                None => record.id.part.clone(),
            };
            let grouping = output.grouping.clone();
            messages.push(message(&record, part, output.payload.clone(), grouping));
        }
        self.finish(no, stage, &complete, &messages);
    }

    /// Handles one of several results that a task takes. All but the last are recorded on their own, so that
    /// they survive the coordinator.
    fn complete_part(&mut self, no: TaskNo, complete: WorkerResult) {
        let task = &self.tasks[no];
        let mut copies = task.copies().iter();
        let name = match copies.find(|held| *held.worker() == complete.worker) {
            Some(held) => Some(held.distinct_name().clone()),
            None => self.distinct_name_of(task.stage(), &complete.worker),
        };
        let voted = |part: &PartialResult| quorum_id(&part.worker) == quorum_id(&complete.worker);
        let counts = |name: &Arc<str>| {
            !task.results().contains_key(name) && !task.results().values().any(voted)
        };
        let name = name.filter(counts);
        // Another worker may have begun under the same name; this result came first.
        let Some(name) = name else {
            self.refuse(complete.worker, complete.lease);
            return;
        };
        let output = match &complete.outputs[..] {
            [output] if output.element.is_none() => output,
            _ => {
                let why = "several results are asked for, and each must be one message";
                self.result_is_wrong(no, &complete, why);
                return;
            }
        };
        let (stage, record) = (task.stage(), task.record().clone());
        let part = PartialResult {
            distinct_name: name.clone(),
            worker: complete.worker.clone(),
            attempt: complete.lease.attempt,
            payload: output.payload.clone(),
            grouping: self.by_name(output),
            at_ms: self.now.wall_ms,
        };
        if let Some(why) = excess_of_part(&record.id, &part) {
            self.result_is_wrong(no, &complete, &why);
            return;
        }
        if task.results().len() + 1 == task.results_required() {
            let mut parts: Vec<&PartialResult> = task.results().values().chain([&part]).collect();
            parts.sort_by(|a, b| a.distinct_name.cmp(&b.distinct_name));
            let grouping = self.agreed(stage, &parts);
            let members = parts
                .iter()
                .map(|part| (part.distinct_name.clone(), part.payload.clone()));
            let payload = Payload::Group {
                by_queue: false,
                members: members.collect(),
            };
            let message = message(&record, record.id.part.clone(), payload, grouping);
            self.finish(no, stage, &complete, &[message]);
            return;
        }
        self.trace_unheld_result(no, &complete);
        let lease_time = self.run_time(no, &complete);
        self.speculation.note_run(stage, lease_time);
        let copies = self.tasks[no].copies().iter();
        let of_name = copies.filter(|held| *held.distinct_name() == name);
        let holders: Vec<ActiveLease> = of_name.cloned().collect();
        for held in holders {
            let is_this =
                *held.worker() == complete.worker && held.attempt() == complete.lease.attempt;
            self.end_copy(no, held.worker(), || match is_this {
                true => AttemptEnd::Completed,
                false => AttemptEnd::Cancelled,
            });
            if !is_this {
                self.cancel_copy(&held, &complete.lease.task);
            }
        }
        let attempt = complete.lease.attempt;
        self.tasks.note_reported(no, &complete.worker, attempt);
        // Added at once, so that the same result sent again is refused.
        self.tasks.add_result(no, part.clone());
        let key = RecordKey::PartialResult(record.id.clone(), Part::from_text(&name));
        self.append(
            vec![(key, Change::put_new(Record::PartialResult(part)))],
            OnAccepted::Nothing,
        );
        // After the result's record, so that an append that ends the task here also removes it.
        self.update_after_copy(no);
    }

    /// Completes a task: passes `messages` on, and cancels the other workers' copies.
    fn finish(
        &mut self,
        no: TaskNo,
        stage: StageIx,
        complete: &WorkerResult,
        messages: &[Message],
    ) {
        self.note_result(no, complete);
        let task = &self.tasks[no];
        let id = task.record().id.clone();
        let end = EndKind::Completed {
            worker: complete.worker.clone(),
            attempt: complete.lease.attempt,
        };
        let mut changes = vec![
            (RecordKey::Done(id.clone()), self.done(end, task)),
            (RecordKey::Task(id.clone()), Change::Delete),
        ];
        // A failed attempt may be on its way to the log, ahead of this append.
        if !task.attempts().is_empty() {
            changes.push((RecordKey::Attempts(id.clone()), Change::Delete));
        }
        changes.extend(forget_parts(task));
        let name = &self.plan.stage(stage).name;
        let trace = task.record().trace.after(&id);
        for message in messages {
            let origins = origin::made_by(name, &task.record().origins, &message.payload);
            self.pass_on(stage, message, (&origins, &trace), &mut changes);
        }
        if let Some(why) = excess(&changes) {
            self.result_is_wrong(no, complete, &why);
            return;
        }
        self.trace_unheld_result(no, complete);
        let task = &self.tasks[no];
        let ran = self.run_time(no, complete);
        let longest = task.accepted().until(self.now.mono);
        let timing = Timing {
            waited: longest.saturating_sub(ran.unwrap_or(longest)),
            leased: ran.unwrap_or(longest),
            ran: complete.ran,
            at: self.now.mono,
        };
        let settled = Settled::completed(task.record(), timing);
        self.speculation.note_run(stage, ran);
        self.end_copies(no, Some((&complete.worker, complete.lease.attempt)));
        self.set_phase(no, Phase::Finishing);
        self.append(changes, OnAccepted::Settled(vec![settled]));
    }

    /// Duration of the lease that led to the result; `None` if the lease has ended.
    fn run_time(&self, no: TaskNo, complete: &WorkerResult) -> Option<std::time::Duration> {
        let held = self.tasks[no].copy(&complete.worker, complete.lease.attempt);
        held.map(|held| held.since().until(self.now.mono))
    }

    /// Refuses a result. The worker's lease ends if it has one: it may have been kept while the result was checked.
    pub(super) fn refuse(&mut self, worker: crate::id::WorkerId, lease: LeaseRef) {
        if let Some(no) = self.held_under(&worker, &lease) {
            self.end_copy(no, &worker, || AttemptEnd::Cancelled);
            self.update_after_copy(no);
        }
        if let Some(stage) = self.layout.stage_of(&lease.task) {
            self.counts.add(stage, |of| &mut of.stale_results);
        }
        self.tell_worker(&worker, WorkerCommand::Cancel(lease));
    }

    fn result_is_wrong(&mut self, no: TaskNo, complete: &WorkerResult, why: &str) {
        let failure = Failure::permanent(format!("its result: {why}"));
        self.attempt_failed(no, &complete.worker, &failure);
    }

    fn by_name(&self, output: &Output) -> Vec<GroupingOf> {
        let grouping = output.grouping.iter();
        grouping
            .map(|(reader, value)| (self.plan.stage(*reader).name.clone(), value.clone()))
            .collect()
    }

    /// Grouping values of several results together: the common value, or an error if they differ.
    fn agreed(
        &self,
        stage: StageIx,
        parts: &[&PartialResult],
    ) -> Vec<(StageIx, Result<Arc<str>, String>)> {
        let mut agreed: BTreeMap<StageIx, Result<Arc<str>, String>> = BTreeMap::new();
        let queues = self.plan.stage(stage).outputs.iter();
        let readers = queues.flat_map(|queue| &self.plan.queue(*queue).readers);
        for reader in readers {
            let name = &self.plan.stage(*reader).name;
            let values = parts.iter().filter_map(|part| {
                let mut grouping = part.grouping.iter();
                grouping
                    .find(|(reader, _)| reader == name)
                    .map(|(_, value)| value)
            });
            for value in values {
                let before = agreed.entry(*reader).or_insert_with(|| value.clone());
                if before.is_ok() && before != value {
                    let why = "the accepted results differ in the grouping field".to_owned();
                    *before = value.clone().and(Err(why));
                }
            }
        }
        agreed.into_iter().collect()
    }

    /// Adds the records that put a message into every output queue of `stage`, except those that exist
    /// already.
    pub(super) fn pass_on(
        &self,
        stage: StageIx,
        message: &Message,
        (origins, trace): (&Origins, &TaskTrace),
        changes: &mut Vec<(RecordKey, Change)>,
    ) {
        let stage = self.plan.stage(stage);
        let at_ms = self.now.wall_ms;
        for queue in &stage.outputs {
            let place = (origins, trace);
            for (reader, task) in tasks_of(&self.plan, *queue, &stage.name, message, place, at_ms) {
                let (Ok(record) | Err((record, _))) = &task;
                let id = record.id.clone();
                let is_live_or_dead = self.tasks.contains(&id) || self.dead.contains(&id);
                if is_live_or_dead || self.marks.get(reader, &id).is_some() {
                    continue;
                }
                if self.will_be_finished(reader, &id, record.last) {
                    self.record_passed_over(reader, record.clone(), changes);
                    continue;
                }
                changes.push(match task {
                    Ok(record) => (RecordKey::Task(id), Change::put_new(Record::Task(record))),
                    Err((task, reason)) => {
                        let at_ms = self.now.wall_ms;
                        let dead = DeadRecord {
                            task,
                            reason,
                            attempts: Vec::new(),
                            at_ms,
                            late: false,
                        };
                        (RecordKey::Dead(id), Change::put_new(Record::Dead(dead)))
                    }
                });
            }
        }
    }
}

fn message(
    record: &TaskRecord,
    part: Part,
    payload: Payload,
    grouping: Vec<(StageIx, Result<Arc<str>, String>)>,
) -> Message {
    Message {
        first: record.id.block,
        last: record.last,
        part,
        payload,
        needs: None,
        grouping,
    }
}
