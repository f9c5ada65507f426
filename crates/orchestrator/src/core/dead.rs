//! What an operator does with dead letters.

use super::event::{Reply, RequestId};
use super::state::{Change, Core, Then};
use crate::id::TaskId;
use crate::record::{Finish, Record, RecordKey};

impl Core {
    pub(super) fn retry_dead(&mut self, request: RequestId, id: &TaskId) {
        let Some((task, stage)) = self.decidable(id) else {
            self.reply_in_turn(request, Reply::NotFound);
            return;
        };
        let collector = self.plan.stage(stage).collector();
        if let Some(pointer) = collector.and_then(|plan| plan.group_by.as_ref())
            && task.group.is_none()
        {
            let why = format!(
                "task {id} has no value of grouping field {pointer:?}: drop it, or submit the \
                     message again with one"
            );
            self.reply_in_turn(request, Reply::Invalid { why });
            return;
        }
        let mut changes = vec![(RecordKey::Dead(id.clone()), Change::Delete)];
        let reply = if self.will_be_finished(stage, id, task.last) {
            // The sequencer has passed its blocks: there is nothing left to do.
            Reply::Duplicate
        } else {
            let put = Change::put_new(Record::Task(task));
            changes.push((RecordKey::Task(id.clone()), put));
            Reply::Accepted
        };
        self.deciding.insert(id.clone());
        self.append(changes, Then::Reply { request, reply });
    }

    pub(super) fn drop_dead(&mut self, request: RequestId, id: &TaskId) {
        let Some((task, _)) = self.decidable(id) else {
            self.reply_in_turn(request, Reply::NotFound);
            return;
        };
        let changes = vec![
            (RecordKey::Dead(id.clone()), Change::Delete),
            (
                RecordKey::Done(id.clone()),
                self.done(Finish::Dropped, task.last),
            ),
        ];
        self.deciding.insert(id.clone());
        self.append(
            changes,
            Then::Reply {
                request,
                reply: Reply::Accepted,
            },
        );
    }

    /// The task of a dead letter about which no decision is on its way to the log.
    fn decidable(&self, id: &TaskId) -> Option<(crate::record::TaskRecord, crate::plan::StageIx)> {
        let (dead, _) = self.dead.get(id)?;
        let stage = self.stage_of(id)?;
        (!self.deciding.contains(id)).then(|| (dead.task.clone(), stage))
    }

    /// Replies once everything that is on its way to the log has been accepted: the answer follows
    /// from it.
    fn reply_in_turn(&mut self, request: RequestId, reply: Reply) {
        if self.pending.is_empty() {
            self.reply(request, self.applied, reply);
        } else {
            self.append(Vec::new(), Then::Reply { request, reply });
        }
    }
}
