//! An operator's decisions about dead letters.

use super::{Core, OnAccepted};
use crate::conversation::Reply;
use crate::core::change::Change;
use crate::core::event::RequestId;
use crate::id::TaskId;
use crate::plan::{Late, StageIx};
use crate::record::{EndKind, Record, RecordKey, TaskRecord};

impl Core {
    pub(super) fn retry_dead(&mut self, request: RequestId, id: &TaskId) {
        let Some((task, stage)) = self.decidable(id) else {
            self.reply_in_turn(request, Reply::NotFound);
            return;
        };
        if let Some(why) = self.is_too_late(id, &task, stage) {
            self.reply_in_turn(request, Reply::Invalid { why });
            return;
        }
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
            // The sequencer has passed the task's blocks, so no work is left.
            Reply::Duplicate { same: None }
        } else {
            let put = Change::put_new(Record::Task(TaskRecord {
                trace: task.trace.again(),
                ..task
            }));
            changes.push((RecordKey::Task(id.clone()), put));
            Reply::Accepted
        };
        self.dead.decide(id.clone());
        self.append(changes, OnAccepted::Reply { request, reply });
    }

    pub(super) fn drop_dead(&mut self, request: RequestId, id: &TaskId) {
        let Some((task, _)) = self.decidable(id) else {
            self.reply_in_turn(request, Reply::NotFound);
            return;
        };
        let attempts = self.dead.get(id).map(|dead| &dead.attempts[..]);
        let done = self.done_record(EndKind::Dropped, &task, attempts.unwrap_or_default());
        let changes = vec![
            (RecordKey::Dead(id.clone()), Change::Delete),
            (
                RecordKey::Done(id.clone()),
                Change::put_new(Record::Done(done)),
            ),
        ];
        self.dead.decide(id.clone());
        self.append(
            changes,
            OnAccepted::Reply {
                request,
                reply: Reply::Accepted,
            },
        );
    }

    /// Reason for which a retry cannot bring a late dead letter into its group, which has left without it.
    /// `None` if the letter is not late, or a retry helps.
    fn is_too_late(&self, id: &TaskId, task: &TaskRecord, stage: StageIx) -> Option<String> {
        let dead = self.dead.get(id).filter(|dead| dead.late)?;
        let becomes = self.plan.stage(stage).collector().map(|plan| plan.late)?;
        let remedy = if self.will_be_finished(stage, id, task.last) {
            "what it carries is shown by `proofmill dlq show`; drop it".to_owned()
        } else if becomes == Late::Dead {
            format!(
                "drop it; or give collector {:?} of the workflow file `late = \"emit\"`, run it again, \
                 and retry: then the message is passed on alone",
                &*id.stage
            )
        } else {
            return None;
        };
        Some(format!(
            "a retry cannot bring {id} into its group: {}; {remedy}",
            dead.reason
        ))
    }

    /// Task of a dead letter about which no decision is on its way to the log.
    fn decidable(&self, id: &TaskId) -> Option<(TaskRecord, StageIx)> {
        let dead = self.dead.get(id)?;
        let stage = self.layout.stage_of(id)?;
        (!self.dead.is_deciding(id)).then(|| (dead.task.clone(), stage))
    }

    /// Replies once all pending appends have been answered, because the reply depends on them.
    pub(super) fn reply_in_turn(&mut self, request: RequestId, reply: Reply) {
        if self.appends.is_empty() {
            self.reply(request, self.applied, reply);
        } else {
            self.append(Vec::new(), OnAccepted::Reply { request, reply });
        }
    }
}
