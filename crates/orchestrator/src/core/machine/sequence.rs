//! The sequencer: block n goes out only after block n − 1, once.

use super::{Change, Core, Phase, Then};
use crate::core::event::Action;
use crate::core::ready::TaskNo;
use crate::id::TaskId;
use crate::record::{Record, RecordKey};

/// Messages handed to the sink and not yet confirmed, at most.
const EMITTING_MAX: usize = 64;

/// A message that the sink was given.
pub(super) struct Emission {
    pub(super) no: TaskNo,
    pub(super) confirmed: bool,
}

impl Core {
    /// Hands every message whose turn it is to the sink.
    pub(super) fn pump_emission(&mut self) {
        while self.emitting.len() < EMITTING_MAX {
            let Some((&(first, _), &no)) = self.emission.first_key_value() else {
                return;
            };
            if first > self.emit_next {
                return;
            }
            let Some(task) = self.tasks.get(&no) else {
                return;
            };
            let (record, seq) = (task.record.clone(), task.seq);
            if first < self.emit_next {
                self.reject_late(no, first, record.last);
                continue;
            }
            self.emit_next = record.last.saturating_add(1);
            self.emitting.push_back(Emission {
                no,
                confirmed: false,
            });
            self.set_phase(no, Phase::Emitting);
            self.actions.push(Action::Emit {
                after: seq,
                task: record,
            });
        }
    }

    fn reject_late(&mut self, no: TaskNo, first: u64, last: u64) {
        let next = self.emit_next;
        if last < next {
            self.skip(no, format!("blocks {first} to {last} were already emitted"));
        } else {
            let reason = format!(
                "blocks {first} to {last} overlap what was already emitted: the next is {next}"
            );
            self.bury(no, reason, Vec::new());
        }
    }

    /// The sink has it. The cursor moves over what is confirmed without a gap: a confirmation that
    /// overtakes another waits for it, or the cursor would pass what the sink does not have.
    pub(super) fn emitted(&mut self, id: &TaskId, places: Vec<String>) {
        let Some(&no) = self.by_id.get(id) else {
            return;
        };
        let Some(emission) = self.emitting.iter_mut().find(|emission| emission.no == no) else {
            return;
        };
        emission.confirmed = true;
        self.note_places(no, places);
        while self
            .emitting
            .front()
            .is_some_and(|emission| emission.confirmed)
        {
            let Some(Emission { no, .. }) = self.emitting.pop_front() else {
                return;
            };
            let Some(task) = self.tasks.get(&no) else {
                continue;
            };
            let (id, stage) = (task.record.id.clone(), task.stage);
            let next = task.record.last.saturating_add(1);
            self.set_phase(no, Phase::Finishing);
            self.cursor_ahead = self.cursor_ahead.max(next);
            self.counters[stage.0].emitted += 1;
            let changes = vec![
                (RecordKey::Cursor, Change::put(Record::Cursor(next))),
                (RecordKey::Task(id.clone()), Change::Delete),
            ];
            self.append(changes, Then::Settled(vec![id]));
        }
    }
}
