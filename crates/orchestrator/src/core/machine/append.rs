//! Appends: what is to be recorded, measured before the log is asked.

use proofmill_bus::{MAX_BATCH_OPS, MAX_VALUE_BYTES, Op};

use super::{Change, Core, Pending, Then};
use crate::core::event::{Action, Reply, Token};
use crate::record::RecordKey;

impl Core {
    /// Queues an append, to be applied when it is accepted. Returns what its acceptance is told by.
    pub(super) fn append(&mut self, mut changes: Vec<(RecordKey, Change)>, then: Then) -> Token {
        let token = Token(self.next_token);
        self.next_token += 1;
        self.remember(&mut changes);
        self.count_changes(&changes, true);
        self.write_counts(&mut changes);
        let ops = match ops_of(&changes) {
            Ok(ops) => ops,
            // What comes from elsewhere is measured where it comes in: this is a defect, and one
            // append less is better than a log that refuses and a coordinator that stops.
            Err(why) => {
                self.unremember(&changes);
                self.uncount(&changes);
                self.refuse_append(then, why);
                return token;
            }
        };
        self.note_incoming(&changes, true);
        self.pending.insert(token, Pending { changes, then });
        self.actions.push(Action::Append { token, ops });
        token
    }

    /// An append that the log would refuse is not made: what it was for stays as it was recorded.
    fn refuse_append(&mut self, then: Then, why: String) {
        if let Then::Reply { request, .. } = then {
            let why = why.clone();
            self.reply(request, self.applied, Reply::Invalid { why });
        }
        self.actions.push(Action::Defect { why });
    }

    /// Counts the tasks that an append is to bring, until it is accepted or refused.
    pub(super) fn note_incoming(&mut self, changes: &[(RecordKey, Change)], comes: bool) {
        for (key, change) in changes {
            let (RecordKey::Task(id), Change::Put { .. }) = (key, change) else {
                continue;
            };
            let Some(stage) = self.stage_of(id) else {
                continue;
            };
            let count = &mut self.incoming[stage.0];
            if comes {
                count.add(id.block)
            } else {
                count.remove(id.block)
            }
        }
    }
}

/// The operations of an append, or why the log would refuse them.
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
