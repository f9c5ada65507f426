//! Messages from producers: idempotent, and made to wait when a queue is full.

use super::{Change, Core, Then};
use crate::core::event::{Edition, Reply, Submit};
use crate::core::limits::excess_of_task;
use crate::id::TaskId;
use crate::message::tasks_of;
use crate::origin::submitted;
use crate::plan::{QueueIx, StageIx};
use crate::record::{DeadRecord, Record, RecordKey, TaskRecord};

/// What is to be recorded of a message, and what its producer is told.
struct Admission {
    changes: Vec<(RecordKey, Change)>,
    /// Dead letters that it replaces.
    replaced: Vec<TaskId>,
    reply: Reply,
}

impl Core {
    pub(super) fn submit(&mut self, submit: Submit) {
        let (queue, first) = (submit.queue, submit.message.first);
        if self.draining {
            self.reply(submit.request, self.applied, Reply::Draining);
        } else if submit.message.last < first {
            let why = format!(
                "its last block {} is before its first, {first}",
                submit.message.last
            );
            self.reply(submit.request, self.applied, Reply::Invalid { why });
        } else if self.is_full(queue, first, false) || self.is_behind_parked(queue, first) {
            let key = (first, self.next_park);
            self.next_park += 1;
            self.parked.entry(queue).or_default().insert(key, submit);
        } else {
            self.admit(submit);
        }
    }

    /// Whether a producer of a lower block, or an earlier one of the same, waits already.
    fn is_behind_parked(&self, queue: QueueIx, block: u64) -> bool {
        let parked = self
            .parked
            .get(&queue)
            .and_then(|submits| submits.first_key_value());
        parked.is_some_and(|((lowest, _), _)| *lowest <= block)
    }

    /// Lets in what waited at the door, lowest block first.
    pub(super) fn admit_parked(&mut self) {
        if self.parked.is_empty() {
            return;
        }
        let queues: Vec<QueueIx> = self.parked.keys().copied().collect();
        for queue in queues {
            while let Some((&key, _)) = self
                .parked
                .get(&queue)
                .and_then(|submits| submits.first_key_value())
            {
                if self.is_full(queue, key.0, false) {
                    break;
                }
                let submit = self
                    .parked
                    .get_mut(&queue)
                    .and_then(|submits| submits.remove(&key));
                if let Some(submit) = submit {
                    self.admit(submit);
                }
            }
        }
        self.parked.retain(|_, submits| !submits.is_empty());
    }

    /// Takes up again what waited for appends that have now been accepted, or refused.
    pub(super) fn resume_deferred(&mut self) {
        for submit in std::mem::take(&mut self.deferred) {
            self.submit(submit);
        }
    }

    /// Whether what is known of a task is about to change: an operator's decision is on its way to
    /// the log, or the sequencer's passing of its blocks.
    fn is_in_motion(&self, reader: StageIx, record: &TaskRecord) -> bool {
        self.deciding.contains(&record.id)
            || self.is_finished(reader, &record.id, record.last)
                != self.will_be_finished(reader, &record.id, record.last)
    }

    /// Whether a message of this source for a block below `next` waits at a door: then the source
    /// may not go on beyond it, or a crash would lose it.
    fn holds_back(&self, producer: &str, next: u64) -> bool {
        let parked = self.parked.values().flat_map(|submits| submits.values());
        parked
            .chain(&self.deferred)
            .any(|submit| &*submit.producer == producer && submit.message.first < next)
    }

    /// Records a message, or finds that there is nothing to record.
    fn admit(&mut self, submit: Submit) {
        let message = &submit.message;
        let tasks = tasks_of(
            &self.plan,
            submit.queue,
            &submit.producer,
            message,
            &submitted(message.first, message.last, &message.payload),
            self.now.wall_ms,
        );
        let in_motion = tasks.iter().any(|(reader, task)| {
            let (Ok(record) | Err((record, _))) = task;
            self.is_in_motion(*reader, record)
        });
        // One that came while its source's blocks are taken back would be taken back with them.
        if in_motion || self.is_rewound(&submit.producer, submit.message.last) {
            self.deferred.push(submit);
            return;
        }
        let (first, last) = (submit.message.first, submit.message.last);
        let Submit {
            request,
            producer,
            edition,
            source_next,
            ..
        } = submit;
        let mut admission = Admission::default();
        for (reader, task) in tasks {
            if let Err(refused) = self.admit_task(edition, reader, task, &mut admission) {
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
            let moves = self
                .sources
                .get(&producer)
                .is_none_or(|known| *known < next);
            if moves && !self.holds_back(&producer, next) {
                let key = RecordKey::Source(producer);
                changes.push((key, Change::put(Record::Source(next))));
            }
        }
        if reply == Reply::Accepted
            && let Some(slot) = self.open_slot(first, last)
        {
            // Ahead of the tasks, so that a replay counts them in it.
            changes.insert(0, slot);
        }
        if changes.is_empty() {
            self.reply(request, self.applied, reply);
            return;
        }
        self.deciding.extend(replaced);
        self.append(changes, Then::Reply { request, reply });
    }

    /// Adds what is to be recorded of a message at one of its readers.
    ///
    /// # Errors
    /// The reply, where nothing of the message is to be recorded.
    fn admit_task(
        &self,
        edition: Edition,
        reader: StageIx,
        task: Result<TaskRecord, (TaskRecord, String)>,
        admission: &mut Admission,
    ) -> Result<(), Reply> {
        let (Ok(record) | Err((record, _))) = &task;
        if let Some(why) = excess_of_task(record) {
            return Err(Reply::Invalid { why });
        }
        let is_revived = edition == Edition::Anew
            && !self.by_id.contains_key(&record.id)
            && self.is_dropped(reader, record);
        let known = match self.another_edition(edition, reader, record) {
            None if is_revived => None,
            None => self.known(reader, record),
            other => other,
        };
        if let Some(known) = known {
            return admission.is_known(known);
        }
        let id = record.id.clone();
        if is_revived {
            // Ahead of the task: a finished one is not taken.
            let mark = RecordKey::Done(id.clone());
            admission.changes.push((mark, Change::Delete));
        }
        let replaces_dead = self.dead.contains_key(&id);
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

    /// What is known of a task that a message would become; `None` if it is new, or would replace
    /// a dead letter that carries something else.
    pub(super) fn known(&self, reader: StageIx, record: &TaskRecord) -> Option<Reply> {
        let id = &record.id;
        let live = self.by_id.get(id).and_then(|no| self.tasks.get(no));
        if let Some(task) = live {
            let same = task.record.payload == record.payload && task.record.last == record.last;
            return Some(if same {
                Reply::Duplicate { same: Some(true) }
            } else {
                Reply::Differs { task: id.clone() }
            });
        }
        if self.is_finished(reader, id, record.last) {
            let same = self.carried_same(reader, record);
            return Some(Reply::Duplicate { same });
        }
        let (dead, _) = self.dead.get(id)?;
        let same = dead.task.payload == record.payload && dead.task.last == record.last;
        same.then(|| Reply::IsDead {
            task: id.clone(),
            why: dead.reason.clone(),
        })
    }
}

// === impl Admission ===

impl Admission {
    /// Takes into account what is known of the message at one of its readers.
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
    /// Nothing is to be recorded.
    fn default() -> Self {
        Self {
            changes: Vec::new(),
            replaced: Vec::new(),
            reply: Reply::Duplicate { same: Some(true) },
        }
    }
}
