//! Marks of finished work that nobody asks for any more.

use super::{Change, Core, Then};
use crate::id::TaskId;
use crate::plan::StageIx;
use crate::record::RecordKey;

/// Marks removed in one append, at most: a batch of the log is bounded.
pub(super) const FORGET_MAX: usize = 500;

/// Blocks below the cursor of which it is remembered what was submitted.
const ANSWERED_BLOCKS: u64 = 1000;

/// Marks are looked for after so many ends of work, so that removing them costs few appends.
const FORGET_EVERY: usize = 32;

impl Core {
    /// Work has ended for good: there may be marks to remove.
    pub(super) fn note_outdated(&mut self) {
        self.outdated = self.outdated.saturating_add(1);
    }

    /// As [`Core::note_outdated`], and they are looked for at once.
    pub(super) fn note_all_outdated(&mut self) {
        self.outdated = FORGET_EVERY;
    }

    /// Removes marks, one append at a time.
    pub(super) fn forget_outdated(&mut self) {
        if self.forgetting || self.outdated < FORGET_EVERY {
            return;
        }
        let marks = self.outdated_marks();
        if marks.len() < FORGET_MAX {
            self.outdated = 0;
        }
        if !marks.is_empty() {
            self.forgetting = true;
            self.append(marks, Then::Forgotten);
        }
    }

    /// For a stage whose work ends up at the sequencer, the marks below the cursor: whatever comes
    /// for those blocks is answered by the cursor. Where it comes from outside, what it carried is
    /// remembered a while longer, for the answer to what is submitted again. For other stages, the
    /// marks that are older than is remembered.
    fn outdated_marks(&self) -> Vec<(RecordKey, Change)> {
        let mut marks = Vec::new();
        for (ix, stage) in self.plan.stages.iter().enumerate() {
            let finished = &self.finished[ix];
            let below = if self.leads[ix] {
                self.cursor
            } else {
                finished.newest.saturating_sub(self.plan.retain_blocks)
            };
            let old = match self.leads[ix] && self.is_entrance(StageIx(ix)) {
                true => below.saturating_sub(ANSWERED_BLOCKS.min(self.plan.retain_blocks)),
                false => below,
            };
            let ids = finished
                .by_block
                .range(..old)
                .flat_map(move |(block, parts)| {
                    let passed = parts.iter().filter(move |(_, mark)| mark.last < old);
                    passed.map(|(part, _)| {
                        let part = part.clone();
                        RecordKey::Done(TaskId {
                            stage: stage.name.clone(),
                            block: *block,
                            part,
                        })
                    })
                });
            let collector = self.collectors[ix].as_ref();
            let groups = collector.into_iter().flat_map(|collector| {
                let keys = collector
                    .fired_by_last
                    .range(..below)
                    .flat_map(|(_, keys)| keys);
                keys.map(|key| RecordKey::Group(stage.name.clone(), key.clone()))
            });
            let room = FORGET_MAX - marks.len();
            marks.extend(
                ids.chain(groups)
                    .take(room)
                    .map(|key| (key, Change::Delete)),
            );
        }
        marks
    }

    /// Whether a stage reads a queue that no stage writes.
    fn is_entrance(&self, stage: StageIx) -> bool {
        let mut inputs = self.plan.stage(stage).inputs.iter();
        inputs.any(|queue| self.writers[queue.0].is_empty())
    }
}
