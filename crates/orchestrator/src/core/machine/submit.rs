//! Messages from producers: idempotent, and delayed while a queue is full.

use super::{Core, OnAccepted};
use crate::conversation::{Reply, Submit, Uniqueness};
use crate::core::change::Change;
use crate::core::limits::excess_of_task;
use crate::core::submissions::Submission;
use crate::id::TaskId;
use crate::message::tasks_of;
use crate::origin::submitted;
use crate::plan::StageIx;
use crate::record::{DeadRecord, Record, RecordKey, TaskRecord};
use crate::traces::TaskTrace;

/// Changes to record for a message, and the reply to its producer.
struct Admission {
    changes: Vec<(RecordKey, Change)>,
    /// Dead letters that the message replaces.
    replaced: Vec<TaskId>,
    reply: Reply,
}

impl Core {
    pub(super) fn submit(&mut self, submission: Submission) {
        let (request, submit) = (submission.request(), submission.submit());
        let first = submit.message.first;
        if self.draining {
            self.reply(request, self.applied, Reply::Draining);
        } else if submit.message.last < first {
            let why = format!(
                "its last block {} is before its first, {first}",
                submit.message.last
            );
            self.reply(request, self.applied, Reply::Invalid { why });
        } else if self.is_held(submit) {
            self.submissions.hold(submission);
        } else if self.must_wait_for_room(submit) {
            self.submissions.park(submission);
        } else {
            self.admit(submission);
        }
    }

    /// Whether a message is to wait until its queue has room. One that is submitted again brings no task, except in the
    /// place of a dead letter, and its source learns at once whether its chain has changed while nobody looked.
    fn must_wait_for_room(&self, submit: &Submit) -> bool {
        let (queue, first) = (submit.queue, submit.message.first);
        submit.uniqueness != Uniqueness::ReplayOnly
            && (self.is_full(queue, first, false) || self.submissions.is_behind(queue, first))
    }

    /// Admits messages that waited for room, lowest block first.
    pub(super) fn admit_parked(&mut self) {
        for queue in self.submissions.queues() {
            while let Some(lowest) = self.submissions.lowest(queue) {
                if self.is_full(queue, lowest, false) {
                    break;
                }
                if let Some(submission) = self.submissions.pop_lowest(queue) {
                    self.admit(submission);
                }
            }
        }
    }

    /// Resumes messages that waited for appends that have now been accepted or refused.
    pub(super) fn resume_deferred(&mut self) {
        for submission in self.submissions.take_deferred() {
            self.submit(submission);
        }
    }

    /// Records a message, or replies if there is nothing to record.
    fn admit(&mut self, submission: Submission) {
        let (request, submit) = (submission.request(), submission.submit());
        let message = &submit.message;
        let origins = submitted(message.first, message.last, &message.payload);
        let trace = TaskTrace::submitted(
            &self.plan.workflow,
            &self.plan.queue(submit.queue).name,
            (message.first, &message.part),
            submit.caller.clone(),
        );
        let tasks = tasks_of(
            &self.plan,
            submit.queue,
            &submit.producer,
            message,
            (&origins, &trace),
            self.now.wall_ms,
        );
        let in_motion = tasks.iter().any(|(reader, task)| {
            let (Ok(record) | Err((record, _))) = task;
            self.has_pending_change(*reader, record)
        });
        // A message admitted while its source's blocks are taken back would be taken back with them.
        if in_motion
            || self
                .sources
                .is_rewound(&submit.producer, submit.message.last)
        {
            self.submissions.defer(submission);
            return;
        }
        let (first, last) = (submit.message.first, submit.message.last);
        let Submit {
            producer,
            uniqueness,
            source_next,
            ..
        } = submission.into_submit();
        let mut admission = Admission::default();
        for (reader, task) in tasks {
            if let Err(refused) = self.admit_task(uniqueness, reader, task, &mut admission) {
                self.reply(request, self.applied, refused);
                return;
            }
        }
        let Admission {
            mut changes,
            replaced,
            reply,
        } = admission;
        if let Some(next) = source_next {
            let position = self.sources.position(&producer);
            let moves = position.is_none_or(|known| known < next);
            if moves && !self.submissions.holds_back(&producer, next) {
                let key = RecordKey::Source(producer);
                changes.push((key, Change::put(Record::Source(next))));
            }
        }
        if reply == Reply::Accepted
            && let Some(slot) = self.open_slot(first, last)
        {
            // Ahead of the tasks, so that a replay counts them in the slot.
            changes.insert(0, slot);
        }
        if changes.is_empty() {
            self.reply(request, self.applied, reply);
            return;
        }
        replaced.into_iter().for_each(|id| self.dead.decide(id));
        self.append(changes, OnAccepted::Reply { request, reply });
    }

    /// Adds the changes to record for a message at one of its readers.
    ///
    /// # Errors
    /// The reply, if nothing of the message is to be recorded.
    fn admit_task(
        &self,
        uniqueness: Uniqueness,
        reader: StageIx,
        task: Result<TaskRecord, (TaskRecord, String)>,
        admission: &mut Admission,
    ) -> Result<(), Reply> {
        let (Ok(record) | Err((record, _))) = &task;
        if let Some(why) = excess_of_task(record) {
            return Err(Reply::Invalid { why });
        }
        let is_revived = uniqueness == Uniqueness::Resubmitted
            && !self.tasks.contains(&record.id)
            && self.is_dropped(reader, record);
        let known = match self.reply_if_not_unique(uniqueness, reader, record) {
            None if is_revived => None,
            None => self.reply_if_known(reader, record),
            other => other,
        };
        if let Some(known) = known {
            return admission.is_known(known);
        }
        let id = record.id.clone();
        if is_revived {
            // Ahead of the task: replay and application ignore a task that has a mark.
            let mark = RecordKey::Done(id.clone());
            admission.changes.push((mark, Change::Delete));
        }
        let replaces_dead = self.dead.contains(&id);
        if replaces_dead {
            admission.replaced.push(id.clone());
        }
        let changes = &mut admission.changes;
        match task {
            Ok(record) => {
                if !matches!(admission.reply, Reply::Rejected { .. }) {
                    admission.reply = Reply::Accepted;
                }
                let put = Change::put_new(Record::Task(record));
                changes.push((RecordKey::Task(id.clone()), put));
                if replaces_dead {
                    changes.push((RecordKey::Dead(id), Change::Delete));
                }
            }
            Err((task, why)) => {
                let dead = DeadRecord {
                    task,
                    reason: why.clone(),
                    attempts: Vec::new(),
                    at_ms: self.now.wall_ms,
                    late: false,
                };
                changes.push((RecordKey::Dead(id), Change::put(Record::Dead(dead))));
                admission.reply = Reply::Rejected { why };
            }
        }
        Ok(())
    }
}

// === impl Admission ===

impl Admission {
    /// Merges the reply for a known task at one of the readers into the message's reply.
    fn is_known(&mut self, known: Reply) -> Result<(), Reply> {
        match (&mut self.reply, known) {
            (_, differs @ Reply::Differs { .. }) => return Err(differs),
            (Reply::Duplicate { same }, Reply::Duplicate { same: here }) => {
                *same = match (*same, here) {
                    (Some(false), _) | (_, Some(false)) => Some(false),
                    (Some(true), Some(true)) => Some(true),
                    _ => None,
                };
            }
            (reply @ Reply::Duplicate { .. }, known) => *reply = known,
            _ => {}
        }
        Ok(())
    }
}

impl Default for Admission {
    /// An admission with nothing to record.
    fn default() -> Self {
        Self {
            changes: Vec::new(),
            replaced: Vec::new(),
            reply: Reply::Duplicate { same: Some(true) },
        }
    }
}
