//! What an operator does with dead letters.

use super::event::{Reply, RequestId};
use super::state::{Change, Core, Then};
use crate::id::TaskId;
use crate::record::{Finish, Record, RecordKey};

impl Core {
    pub(super) fn retry_dead(&mut self, request: RequestId, id: &TaskId) {
        let Some((dead, _)) = self.dead.get(id) else {
            self.reply(request, self.applied, Reply::NotFound);
            return;
        };
        let changes = vec![
            (RecordKey::Dead(id.clone()), Change::Delete),
            (RecordKey::Task(id.clone()), Change::put_new(Record::Task(dead.task.clone()))),
        ];
        self.append(changes, Then::Reply { request, reply: Reply::Accepted });
    }

    pub(super) fn drop_dead(&mut self, request: RequestId, id: &TaskId) {
        if !self.dead.contains_key(id) {
            self.reply(request, self.applied, Reply::NotFound);
            return;
        }
        let changes = vec![
            (RecordKey::Dead(id.clone()), Change::Delete),
            (RecordKey::Done(id.clone()), self.done(Finish::Dropped)),
        ];
        self.append(changes, Then::Reply { request, reply: Reply::Accepted });
    }
}
