//! The dead-letter queue, and pending decisions about dead letters.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use super::block_count::BlockCount;
use super::spans::{Spans, Tally};
use crate::id::{Part, TaskId};
use crate::plan::StageIx;
use crate::record::DeadRecord;

/// The dead letters, by stage, block and part.
pub(super) struct DeadLetters {
    letters: BTreeMap<TaskId, DeadRecord>,
    /// Dead letters about which a decision is on its way to the log.
    deciding: BTreeSet<TaskId>,
    /// Numbers of dead letters, by stage and first block.
    counts: Vec<BlockCount>,
    /// Numbers of dead letters, by the blocks that they are about.
    about: Spans<Tally>,
}

// === impl DeadLetters ===

impl DeadLetters {
    /// No dead letters, for `stages` stages.
    pub(super) fn new(stages: usize) -> Self {
        Self {
            letters: BTreeMap::new(),
            deciding: BTreeSet::new(),
            counts: BlockCount::each(stages),
            about: Spans::default(),
        }
    }

    pub(super) fn get(&self, id: &TaskId) -> Option<&DeadRecord> {
        self.letters.get(id)
    }

    pub(super) fn contains(&self, id: &TaskId) -> bool {
        self.letters.contains_key(id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &DeadRecord> {
        self.letters.values()
    }

    /// Dead letters after a task, by stage, block and part.
    pub(super) fn after(&self, id: Option<&TaskId>) -> impl Iterator<Item = &DeadRecord> {
        let from = id.map_or(Bound::Unbounded, Bound::Excluded);
        let letters = self.letters.range::<TaskId, _>((from, Bound::Unbounded));
        letters.map(|(_, letter)| letter)
    }

    /// Dead letters of a stage whose first block is `block`, by part.
    pub(super) fn beginning_at(
        &self,
        stage: &Arc<str>,
        block: u64,
    ) -> impl Iterator<Item = &DeadRecord> {
        let lowest = TaskId {
            stage: stage.clone(),
            block,
            part: Part::lowest(),
        };
        let stage = stage.clone();
        let from = self.letters.range(lowest..);
        let of_block = from.take_while(move |(id, _)| id.stage == stage && id.block == block);
        of_block.map(|(_, letter)| letter)
    }

    /// Numbers of dead letters, by the blocks that they are about.
    pub(super) fn about(&self) -> &Spans<Tally> {
        &self.about
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = &TaskId> {
        self.letters.keys()
    }

    pub(super) fn len(&self) -> usize {
        self.letters.len()
    }

    /// Numbers of a stage's dead letters.
    pub(super) fn count(&self, stage: StageIx) -> &BlockCount {
        &self.counts[stage.0]
    }

    /// Adds a dead letter of `stage`. A pending decision about an earlier letter of the same task is thereby
    /// settled.
    pub(super) fn put(&mut self, stage: StageIx, id: &TaskId, letter: DeadRecord) {
        self.deciding.remove(id);
        self.about.add(id.block, letter.task.last, letter.at_ms);
        match self.letters.insert(id.clone(), letter) {
            Some(before) => self.about.remove(id.block, before.task.last),
            None => self.counts[stage.0].add(id.block),
        }
    }

    /// Removes a dead letter that the log no longer has.
    pub(super) fn remove(&mut self, stage: StageIx, id: &TaskId) -> Option<DeadRecord> {
        self.deciding.remove(id);
        let letter = self.letters.remove(id)?;
        self.counts[stage.0].remove(id.block);
        self.about.remove(id.block, letter.task.last);
        Some(letter)
    }

    /// Notes that a decision about a letter is on its way to the log; no other may be made until the log has
    /// it.
    pub(super) fn decide(&mut self, id: TaskId) {
        self.deciding.insert(id);
    }

    /// Notes that the log has refused the decision.
    pub(super) fn undecide(&mut self, id: &TaskId) {
        self.deciding.remove(id);
    }

    pub(super) fn is_deciding(&self, id: &TaskId) -> bool {
        self.deciding.contains(id)
    }

    /// Whether no decision is on its way to the log.
    #[cfg(debug_assertions)]
    pub(super) fn all_decided(&self) -> bool {
        self.deciding.is_empty()
    }

    /// `stage_of` maps a task to its stage.
    #[cfg(debug_assertions)]
    pub(super) fn check(
        &self,
        stage_of: impl Fn(&TaskId) -> Option<StageIx>,
    ) -> Result<(), String> {
        let mut counts = BlockCount::each(self.counts.len());
        for id in self.letters.keys() {
            if let Some(stage) = stage_of(id) {
                counts[stage.0].add(id.block);
            }
        }
        if counts != self.counts {
            return Err("the count of dead letters is off".to_owned());
        }
        let mut by_span: BTreeMap<(u64, u64), usize> = BTreeMap::new();
        for letter in self.letters.values() {
            let span = (letter.task.id.block, letter.task.last);
            *by_span.entry(span).or_default() += 1;
        }
        let listed = self.about.all();
        let listed = listed.map(|(first, last, it)| ((first, last), it.count));
        match by_span == listed.collect::<BTreeMap<_, _>>() {
            true => Ok(()),
            false => Err("the index of dead letters by block is off".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Part;
    use crate::record::TaskRecord;

    fn letter(block: u64) -> DeadRecord {
        let id = TaskId {
            stage: "prove".into(),
            block,
            part: Part::from_text("0"),
        };
        DeadRecord {
            task: TaskRecord::for_tests(id),
            reason: "it failed".to_owned(),
            attempts: Vec::new(),
            at_ms: 0,
            late: false,
        }
    }

    #[test]
    fn letters_are_counted_once_and_decisions_end_with_them() {
        let mut letters = DeadLetters::new(1);
        let (stage, dead) = (StageIx(0), letter(3));
        let id = dead.task.id.clone();
        letters.put(stage, &id, dead.clone());
        letters.put(stage, &id, dead);
        let counts = letters.count(stage);
        assert_eq!(
            (counts.total(), counts.of(Some(3)), letters.len()),
            (1, 1, 1)
        );
        letters.decide(id.clone());
        assert!(letters.is_deciding(&id));
        assert!(letters.remove(stage, &id).is_some());
        assert!(letters.remove(stage, &id).is_none());
        assert!(!letters.is_deciding(&id));
        assert_eq!(letters.check(|_| Some(stage)), Ok(()));
        assert_eq!(letters.count(stage).total(), 0);
    }
}
