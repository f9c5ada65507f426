//! Appends: the size check before the log is asked, and the handling of its answer.

use std::sync::Arc;

use proofmill_bus::{MAX_BATCH_OPS, MAX_VALUE_BYTES, Op, Seq};

use super::{Core, OnAccepted};
use crate::conversation::Reply;
use crate::core::change::Change;
use crate::core::counts::{WRITE_AFTER, WriteWhen};
use crate::core::event::{Action, RequestId, Settled, Token};
use crate::core::timers::Timer;
use crate::core::work::WorkEvent;
use crate::record::{Record, RecordKey};

impl Core {
    /// Queues an append, to be applied when it is accepted. Returns its token.
    pub(super) fn append(
        &mut self,
        mut changes: Vec<(RecordKey, Change)>,
        then: OnAccepted,
    ) -> Token {
        let token = self.appends.draw_token();
        self.add_history(&mut changes);
        self.counts.count(&changes, &self.layout);
        self.counts.write(&mut changes, &self.layout);
        let ops = match ops_of(&changes) {
            Ok(ops) => ops,
            // Data from elsewhere is measured on arrival, so an oversized append is a defect. Skipping it is
            // better than a log that refuses and a coordinator that stops.
            Err(why) => {
                self.history.revert_record(&changes);
                self.counts.uncount(&changes, &self.layout);
                self.refuse_append(then, why);
                return token;
            }
        };
        let layout = &self.layout;
        self.appends
            .send(token, changes, then, |id| layout.stage_of(id));
        self.actions.push(Action::Append { token, ops });
        token
    }

    /// Drops an append that the log would refuse, and reports it; the records stay as they were.
    fn refuse_append(&mut self, then: OnAccepted, why: String) {
        if let OnAccepted::Reply { request, .. } = then {
            let why = why.clone();
            self.reply(request, self.applied, Reply::Invalid { why });
        }
        self.actions.push(Action::Defect { why });
    }

    /// Handles the acceptance of an append.
    pub(super) fn accepted(&mut self, token: Token, seq: Seq) {
        let Some((changes, then)) = self.appends.answered(token) else {
            return;
        };
        self.applied = self.applied.max(seq);
        let mut entering = Vec::new();
        for (key, change) in changes {
            match change {
                Change::Put { record, .. } => entering.extend(self.put(&key, record, seq)),
                Change::Delete => self.delete(&key),
            }
        }
        let mut cancelling = None;
        let mut rewinding = None;
        match then {
            OnAccepted::Nothing => {}
            OnAccepted::Forgotten => self.marks.removed(),
            OnAccepted::Cancel {
                request,
                target,
                found,
                rounds,
            } => cancelling = Some((request, target, found, rounds)),
            OnAccepted::Rewind { rewind, dropped } => {
                let dropped = dropped.into_iter();
                dropped.for_each(|settled| self.settle(settled, seq));
                rewinding = Some(rewind);
            }
            OnAccepted::Reply { request, reply } => self.reply(request, seq, reply),
            OnAccepted::Settled(tasks) => {
                let tasks = tasks.into_iter();
                tasks.for_each(|settled| self.settle(settled, seq));
            }
        }
        entering.into_iter().for_each(|no| self.enter(no));
        if let Some((request, target, found, rounds)) = cancelling {
            self.cancel_round(request, target, found, rounds);
        }
        if let Some(rewind) = rewinding {
            self.rewind_round(rewind);
        }
        self.resume_deferred();
    }

    /// Handles a refusal: the log holds a record that the append expected to be absent. Changes that this
    /// record settles are dropped, and the rest is appended again.
    pub(super) fn conflicted(&mut self, token: Token, key: &str) {
        let Some((mut changes, then)) = self.appends.answered(token) else {
            return;
        };
        self.history.revert_record(&changes);
        self.counts.uncount(&changes, &self.layout);
        // A repeated append gets these records anew.
        changes.retain(|(key, _)| !key.is_auxiliary());
        let parsed = RecordKey::parse(key);
        let at = changes.iter().position(|(other, change)| {
            let is_put = matches!(change, Change::Put { .. });
            is_put && parsed.as_ref().is_ok_and(|key| key == other)
        });
        let Some((key, refused)) = at.map(|at| changes.remove(at)) else {
            return;
        };
        if matches!(
            key,
            RecordKey::Done(_)
                | RecordKey::Group(..)
                | RecordKey::PartialResult(..)
                | RecordKey::LeaseKey
        ) {
            // Another coordinator's record came first; its other records have the consequences.
            return;
        }
        if let OnAccepted::Reply { request, .. } = then {
            let Change::Put {
                record: Record::Task(task),
                ..
            } = &refused
            else {
                return;
            };
            let stage = self.layout.stage_of(&task.id);
            let known = stage.and_then(|stage| self.reply_if_known(stage, task));
            let puts = |(_, change): &(RecordKey, Change)| matches!(change, Change::Put { .. });
            let differs = matches!(known, Some(Reply::Differs { .. }));
            if differs || !changes.iter().any(puts) {
                for (key, _) in &changes {
                    if let RecordKey::Dead(id) = key {
                        self.dead.undecide(id);
                    }
                }
                let known = known.unwrap_or(Reply::Duplicate { same: None });
                self.reply(request, self.applied, known);
                self.resume_deferred();
                return;
            }
        }
        self.leave_out_known(&mut changes);
        self.append(changes, then);
    }

    /// Drops tasks that the coordinator that came first has recorded too; they may have ended since.
    fn leave_out_known(&self, changes: &mut Vec<(RecordKey, Change)>) {
        let deletes = changes
            .iter()
            .filter(|(_, change)| matches!(change, Change::Delete));
        let replaced: Vec<RecordKey> = deletes.map(|(key, _)| key.clone()).collect();
        changes.retain(|(key, change)| match (key, change) {
            (RecordKey::Task(id), Change::Put { .. }) => {
                let dead = RecordKey::Dead(id.clone());
                let is_dead = self.dead.contains(id) && !replaced.contains(&dead);
                !self.tasks.contains(id) && !is_dead
            }
            _ => true,
        });
    }

    pub(super) fn reply(&mut self, request: RequestId, after: Seq, reply: Reply) {
        self.actions.push(Action::Reply {
            request,
            after,
            reply,
        });
    }

    fn settle(&mut self, settled: Settled, after: Seq) {
        if self.is_work_observed && settled.emitted {
            let task = Arc::clone(&settled.task);
            let event = WorkEvent::Emitted { task };
            self.actions.push(Action::Work { after, event });
        }
        self.actions.push(Action::Settle { after, settled });
    }

    /// Appends all counters that the log does not have.
    pub(super) fn flush_counts(&mut self) {
        let changes = self.counts.flush(&self.layout);
        if !changes.is_empty() {
            self.append(changes, OnAccepted::Nothing);
        }
    }

    /// Sets a timer to write changed counters, or writes them at once if the log's may be wrong.
    pub(super) fn schedule_counts_write(&mut self) {
        match self.counts.schedule_write() {
            WriteWhen::None => {}
            WriteWhen::Later => {
                let due = self.now.mono.plus(WRITE_AFTER);
                self.timers.set(due, Timer::Counts);
            }
            WriteWhen::Now => self.flush_counts(),
        }
    }
}

/// The operations of an append.
///
/// # Errors
/// The reason for which the log would refuse them.
fn ops_of(changes: &[(RecordKey, Change)]) -> Result<Vec<Op>, String> {
    if changes.len() > MAX_BATCH_OPS {
        return Err(format!("{} records at once", changes.len()));
    }
    let op = |(key, change): &(RecordKey, Change)| {
        let key = key
            .to_key()
            .map_err(|error| format!("a record of {key:?}: {error}"))?;
        Ok(match change {
            Change::Delete => Op::Delete { key },
            Change::Put { record, expect } => {
                let value = record.encode();
                if value.len() > MAX_VALUE_BYTES {
                    return Err(format!("record {key} has {} bytes", value.len()));
                }
                Op::Put {
                    key,
                    value,
                    expect: *expect,
                }
            }
        })
    };
    changes.iter().map(op).collect()
}
