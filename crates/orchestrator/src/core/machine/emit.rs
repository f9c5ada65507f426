//! Emission: messages go to the sink in the order of their blocks, and the cursor follows.

use super::{Core, OnAccepted};
use crate::conversation::SinkCommand;
use crate::core::change::Change;
use crate::core::event::{Action, Settled};
use crate::core::tasks::{Phase, TaskNo};
use crate::id::TaskId;
use crate::record::{Record, RecordKey, TaskEnd};

impl Core {
    /// Hands every message that is next in the order of blocks to the sink, while the sink has room.
    pub(super) fn pump_emission(&mut self) {
        let sequencer = self.plan.sequencer();
        if sequencer.is_some_and(|(stage, _)| self.pauses.has_stage(stage)) {
            return;
        }
        while self.sequencer.has_room() {
            let Some((first, no)) = self.tasks.first_queued() else {
                return;
            };
            let next = self.sequencer.next();
            if first > next {
                return;
            }
            let Some(task) = self.tasks.get(no) else {
                return;
            };
            let (record, seq) = (task.record().clone(), task.seq());
            if first < next {
                self.reject_late(no, first, record.last);
                continue;
            }
            self.sequencer.emit(no, record.last);
            self.set_phase(no, Phase::Emitting);
            self.actions.push(Action::Sink {
                after: seq,
                command: SinkCommand::Emit(record),
            });
        }
    }

    fn reject_late(&mut self, no: TaskNo, first: u64, last: u64) {
        let next = self.sequencer.next();
        if last < next {
            self.skip(no, format!("blocks {first} to {last} were already emitted"));
        } else {
            let reason = format!(
                "blocks {first} to {last} overlap what was already emitted: the next is {next}"
            );
            self.dead_letter_task(no, reason, Vec::new());
        }
    }

    /// End of a task that is emitted now, as the history records it.
    fn emitted_end(&self, no: TaskNo) -> Option<TaskEnd> {
        let task = self.tasks.get(no)?;
        let (record, timeline) = (task.record(), task.timeline());
        Some(
            task.end_details()
                .emitted(record, timeline, self.now.wall_ms),
        )
    }

    /// Handles the sink's confirmation. The cursor moves over confirmed messages without a gap.
    pub(super) fn emitted(&mut self, id: &TaskId, places: Vec<String>) {
        let Some(no) = self.tasks.no_of(id) else {
            return;
        };
        if !self.sequencer.confirm(no) {
            return;
        }
        self.tasks.set_places(no, places);
        while let Some(no) = self.sequencer.pop_confirmed() {
            let Some(task) = self.tasks.get(no) else {
                continue;
            };
            let (id, stage) = (task.id().clone(), task.stage());
            let settled = Settled::emitted(task.record());
            let next = task.record().last.saturating_add(1);
            self.set_phase(no, Phase::Finishing);
            self.sequencer.advance(next);
            self.counts.add(stage, |of| &mut of.emitted);
            let changes = vec![
                (RecordKey::Cursor, Change::put(Record::Cursor(next))),
                (RecordKey::Task(id), Change::Delete),
            ];
            self.trace_end(self.applied, |core| core.emitted_end(no));
            self.append(changes, OnAccepted::Settled(vec![settled]));
        }
    }
}
