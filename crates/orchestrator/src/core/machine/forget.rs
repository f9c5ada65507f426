//! Removal of marks that are no longer needed.

use super::{Core, OnAccepted};
use crate::core::change::Change;
use crate::core::limits::FORGET_MAX;
use crate::id::TaskId;
use crate::plan::StageIx;
use crate::record::RecordKey;

/// Number of blocks below the cursor for which digests of submitted messages are kept.
const BLOCKS_WITH_DIGESTS: u64 = 1000;

impl Core {
    /// Removes outdated marks, one append at a time.
    pub(super) fn forget_outdated(&mut self) {
        if !self.marks.is_removal_due() {
            return;
        }
        let marks = self.outdated_marks();
        let all = marks.len() < FORGET_MAX;
        self.marks.note_removal(all, !marks.is_empty());
        if !marks.is_empty() {
            self.append(marks, OnAccepted::Forgotten);
        }
    }

    /// Marks that can be removed. For a stage whose outputs all end up at the sequencer, these are the marks
    /// below the cursor, because the cursor answers everything that comes for those blocks. If such a stage
    /// takes messages from outside, its marks are kept for [`BLOCKS_WITH_DIGESTS`] more, to answer repeated
    /// submissions. For other stages, these are the marks older than the retention.
    fn outdated_marks(&self) -> Vec<(RecordKey, Change)> {
        let mut marks = Vec::new();
        for stage in (0..self.layout.stages()).map(StageIx) {
            let (name, retain) = (self.layout.name(stage), self.plan.retain_blocks);
            let leads = self.layout.leads_to_sequencer(stage);
            let below = match leads {
                true => self.sequencer.cursor(),
                false => self.marks.newest(stage).saturating_sub(retain),
            };
            let old = match leads && self.layout.is_entrance(stage) {
                true => below.saturating_sub(BLOCKS_WITH_DIGESTS.min(retain)),
                false => below,
            };
            let marked = self.marks.below(stage, old);
            let passed = marked.filter(|(_, _, mark)| mark.last() < old);
            let tasks = passed.map(|(block, part, _)| {
                RecordKey::Done(TaskId {
                    stage: name.clone(),
                    block,
                    part: part.clone(),
                })
            });
            let fired = self.collectors.fired_below(stage, below);
            let groups = fired.map(|key| RecordKey::Group(name.clone(), key.clone()));
            let room = FORGET_MAX - marks.len();
            let outdated = tasks.chain(groups).take(room);
            marks.extend(outdated.map(|key| (key, Change::Delete)));
        }
        marks
    }
}
