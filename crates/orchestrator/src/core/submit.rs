//! Messages from producers: idempotent, and made to wait when a queue is full.

use super::event::{Reply, Submit};
use super::state::{Change, Core, Then};
use crate::message::tasks_of;
use crate::plan::{QueueIx, StageIx, StageKind};
use crate::record::{DeadRecord, Record, RecordKey, TaskRecord};

impl Core {
    pub(super) fn submit(&mut self, submit: Submit) {
        if self.draining {
            self.reply(submit.request, self.applied, Reply::Draining);
        } else if submit.message.last < submit.message.first {
            let why = format!(
                "its last block {} is before its first, {}",
                submit.message.last, submit.message.first
            );
            self.reply(submit.request, self.applied, Reply::Invalid { why });
        } else if self.is_full(submit.queue, submit.message.first) {
            let key = (submit.message.first, self.next_park);
            self.next_park += 1;
            self.parked.entry(submit.queue).or_default().insert(key, submit);
        } else {
            let _ = self.admit(submit);
        }
    }

    /// Whether producers of this queue have to wait (Q_max). A block below everything that waits
    /// in the queue passes, as it does in [`Core::is_gated`].
    fn is_full(&self, queue: QueueIx, block: u64) -> bool {
        let queue = self.plan.queue(queue);
        queue.readers.iter().any(|reader| {
            let waiting = &self.waiting[reader.0];
            !matches!(self.plan.stage(*reader).kind, StageKind::Collector(_))
                && waiting.total() >= queue.q_max
                && waiting.lowest().is_some_and(|lowest| block >= lowest)
        })
    }

    /// Lets in what waited at the door, lowest block first.
    pub(super) fn admit_parked(&mut self) {
        let queues: Vec<QueueIx> = self.parked.keys().copied().collect();
        for queue in queues {
            while let Some((&key, _)) =
                self.parked.get(&queue).and_then(|submits| submits.first_key_value())
            {
                if self.is_full(queue, key.0) {
                    break;
                }
                let submit = self.parked.get_mut(&queue).and_then(|submits| submits.remove(&key));
                // Whether there is room for another shows once this one has been applied.
                if submit.is_some_and(|submit| self.admit(submit)) {
                    break;
                }
            }
        }
        self.parked.retain(|_, submits| !submits.is_empty());
    }

    /// Records a message, or finds that there is nothing to record. Returns whether it appended.
    fn admit(&mut self, submit: Submit) -> bool {
        let Submit { request, producer, queue, message, source_next } = submit;
        let mut changes = Vec::new();
        let mut reply = Reply::Duplicate;
        for (reader, task) in tasks_of(&self.plan, queue, &producer, &message, self.now.wall_ms) {
            let (Ok(record) | Err((record, _))) = &task;
            if let Some(known) = self.known(reader, record) {
                if matches!(known, Reply::Differs { .. }) {
                    self.reply(request, self.applied, known);
                    return false;
                }
                if reply == Reply::Duplicate {
                    reply = known;
                }
                continue;
            }
            let id = record.id.clone();
            let replaces_dead = self.dead.contains_key(&id);
            match task {
                Ok(record) => {
                    if !matches!(reply, Reply::Rejected { .. }) {
                        reply = Reply::Accepted;
                    }
                    let put = Change::put_new(Record::Task(record));
                    changes.push((RecordKey::Task(id.clone()), put));
                    if replaces_dead {
                        changes.push((RecordKey::Dead(id), Change::Delete));
                    }
                }
                Err((task, why)) => {
                    let at_ms = self.now.wall_ms;
                    let dead =
                        DeadRecord { task, reason: why.clone(), attempts: Vec::new(), at_ms };
                    changes.push((RecordKey::Dead(id), Change::put(Record::Dead(dead))));
                    reply = Reply::Rejected { why };
                }
            }
        }
        if let Some(next) = source_next {
            if self.sources.get(&producer).is_none_or(|known| *known < next) {
                let key = RecordKey::Source(producer);
                changes.push((key, Change::put(Record::Source(next))));
            }
        }
        if changes.is_empty() {
            self.reply(request, self.applied, reply);
            return false;
        }
        self.append(changes, Then::Reply { request, reply });
        true
    }

    /// What is known of a task that a message would become; `None` if it is new, or would replace
    /// a dead letter that carries something else.
    fn known(&self, reader: StageIx, record: &TaskRecord) -> Option<Reply> {
        let id = &record.id;
        let live = self.by_id.get(id).and_then(|no| self.tasks.get(no));
        if let Some(task) = live {
            let same = task.record.payload == record.payload && task.record.last == record.last;
            return Some(if same {
                Reply::Duplicate
            } else {
                Reply::Differs { task: id.clone() }
            });
        }
        if self.is_finished(reader, id, record.last) {
            return Some(Reply::Duplicate);
        }
        let (dead, _) = self.dead.get(id)?;
        let same = dead.task.payload == record.payload && dead.task.last == record.last;
        same.then(|| Reply::IsDead { task: id.clone(), why: dead.reason.clone() })
    }
}
