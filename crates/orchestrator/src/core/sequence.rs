//! The sequencer: block n goes out only after block n − 1, once.

use super::event::Action;
use super::ready::TaskNo;
use super::state::{Change, Core, Phase, Then};
use crate::id::TaskId;
use crate::record::{Record, RecordKey};

/// Messages handed to the sink and not yet confirmed, at most.
const EMITTING_MAX: usize = 64;

/// Marks removed with one move of the cursor, at most: a batch of the log is bounded, and what is
/// left is removed with the next.
const FORGET_MAX: usize = 500;

impl Core {
    /// Hands every message whose turn it is to the sink.
    pub(super) fn pump_emission(&mut self) {
        while self.emitting < EMITTING_MAX {
            let Some((&(first, _), &no)) = self.emission.first_key_value() else { return };
            if first > self.emit_next {
                return;
            }
            let Some(task) = self.tasks.get(&no) else { return };
            let (record, seq) = (task.record.clone(), task.seq);
            if first < self.emit_next {
                self.reject_late(no, first, record.last);
                continue;
            }
            self.emit_next = record.last.saturating_add(1);
            self.emitting += 1;
            self.set_phase(no, Phase::Emitting);
            self.actions.push(Action::Emit { after: seq, task: record });
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

    /// The sink has it: the cursor moves, and what lies below it is forgotten.
    pub(super) fn emitted(&mut self, id: &TaskId) {
        let task = self.by_id.get(id).and_then(|no| self.tasks.get(no));
        let Some(task) = task.filter(|task| task.phase == Phase::Emitting) else { return };
        let next = task.record.last.saturating_add(1);
        let no = task.no;
        self.emitting = self.emitting.saturating_sub(1);
        self.set_phase(no, Phase::Finishing);
        let mut changes = vec![
            (RecordKey::Cursor, Change::put(Record::Cursor(next))),
            (RecordKey::Task(id.clone()), Change::Delete),
        ];
        let mut outdated = self.below(next);
        outdated.truncate(FORGET_MAX);
        changes.extend(outdated);
        self.counters[self.tasks[&no].stage.0].emitted += 1;
        self.append(changes, Then::Settled(vec![id.clone()]));
    }

    /// The marks that nobody asks for any more once the sequencer has passed them: whatever comes
    /// for those blocks is answered by the cursor.
    fn below(&self, next: u64) -> Vec<(RecordKey, Change)> {
        let mut changes = Vec::new();
        for (ix, stage) in self.plan.stages.iter().enumerate().filter(|(ix, _)| self.leads[*ix]) {
            for (block, parts) in self.finished[ix].by_block.range(..next) {
                changes.extend(parts.iter().map(|part| {
                    let id =
                        TaskId { stage: stage.name.clone(), block: *block, part: part.clone() };
                    (RecordKey::Done(id), Change::Delete)
                }));
            }
            let collector = self.collectors[ix].as_ref();
            for keys in collector.into_iter().flat_map(|c| c.fired_by_last.range(..next)) {
                changes.extend(keys.1.iter().map(|key| {
                    (RecordKey::Group(stage.name.clone(), key.clone()), Change::Delete)
                }));
            }
        }
        changes
    }
}
