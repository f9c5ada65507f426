//! The dead-letter queue, and pending decisions about dead letters.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::TaskId;
use crate::plan::StageIx;
use crate::record::DeadRecord;

/// The dead letters, by stage, block and part.
pub(super) struct DeadLetters {
    letters: BTreeMap<TaskId, DeadRecord>,
    /// Dead letters about which a decision is on its way to the log.
    deciding: BTreeSet<TaskId>,
    /// Number of dead letters, by stage.
    counts: Vec<usize>,
}

// === impl DeadLetters ===

impl DeadLetters {
    /// No dead letters, for `stages` stages.
    pub(super) fn new(stages: usize) -> Self {
        Self {
            letters: BTreeMap::new(),
            deciding: BTreeSet::new(),
            counts: vec![0; stages],
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

    pub(super) fn ids(&self) -> impl Iterator<Item = &TaskId> {
        self.letters.keys()
    }

    pub(super) fn len(&self) -> usize {
        self.letters.len()
    }

    /// Number of a stage's dead letters.
    pub(super) fn count(&self, stage: StageIx) -> usize {
        self.counts[stage.0]
    }

    /// Adds a dead letter of `stage`. A pending decision about an earlier letter of the same task is thereby
    /// settled.
    pub(super) fn put(&mut self, stage: StageIx, id: &TaskId, letter: DeadRecord) {
        self.deciding.remove(id);
        if self.letters.insert(id.clone(), letter).is_none() {
            self.counts[stage.0] += 1;
        }
    }

    /// Removes a dead letter that the log no longer has.
    pub(super) fn remove(&mut self, stage: StageIx, id: &TaskId) -> Option<DeadRecord> {
        self.deciding.remove(id);
        let letter = self.letters.remove(id)?;
        self.counts[stage.0] -= 1;
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
        let mut counts = vec![0; self.counts.len()];
        let stages = self.letters.keys().filter_map(stage_of);
        stages.for_each(|stage| counts[stage.0] += 1);
        match counts == self.counts {
            true => Ok(()),
            false => Err("the count of dead letters is off".to_owned()),
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
        assert_eq!((letters.count(stage), letters.len()), (1, 1));
        letters.decide(id.clone());
        assert!(letters.is_deciding(&id));
        assert!(letters.remove(stage, &id).is_some());
        assert!(letters.remove(stage, &id).is_none());
        assert!(!letters.is_deciding(&id));
        assert_eq!(letters.check(|_| Some(stage)), Ok(()));
        assert_eq!(letters.count(stage), 0);
    }
}
