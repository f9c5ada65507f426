//! Marks of finished tasks, kept as far back as the workflow's retention says.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::spans::{Spans, Tally};
use crate::id::{Part, TaskId};
use crate::plan::StageIx;
use crate::record::{DoneRecord, EndKind};

/// Number of ended tasks after which outdated marks are searched for, so that their removal costs few
/// appends.
const FORGET_EVERY: usize = 32;

/// The marks, by stage.
pub(super) struct Marks {
    finished: Vec<Finished>,
    /// Number of ended tasks since outdated marks were last searched for.
    outdated: usize,
    /// Whether an append that removes marks is on its way.
    removing: bool,
    /// Numbers of marks, by the blocks that their tasks were about.
    about: Spans<Tally>,
}

/// The finished tasks of a stage.
#[derive(Default)]
struct Finished {
    /// Marks by first block and part.
    by_block: BTreeMap<u64, BTreeMap<Part, Mark>>,
    newest: u64,
}

/// Content of a mark that is kept in memory.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    last: u64,
    content: Option<[u8; 16]>,
    is_dropped: bool,
}

// === impl Marks ===

impl Marks {
    /// No marks, for `stages` stages.
    pub(super) fn new(stages: usize) -> Self {
        Self {
            finished: (0..stages).map(|_| Finished::default()).collect(),
            outdated: 0,
            removing: false,
            about: Spans::default(),
        }
    }

    /// Adds the mark of a task.
    pub(super) fn put(&mut self, stage: StageIx, id: &TaskId, done: &DoneRecord) {
        let finished = &mut self.finished[stage.0];
        let parts = finished.by_block.entry(id.block).or_default();
        let before = parts.insert(id.part.clone(), Mark::of(done));
        self.about.add(id.block, done.last, done.at_ms);
        if let Some(before) = before {
            self.about.remove(id.block, before.last);
        }
        finished.newest = finished.newest.max(id.block);
    }

    /// Removes the mark of a task.
    pub(super) fn remove(&mut self, stage: StageIx, id: &TaskId) {
        let finished = &mut self.finished[stage.0];
        if let Some(parts) = finished.by_block.get_mut(&id.block) {
            if let Some(mark) = parts.remove(&id.part) {
                self.about.remove(id.block, mark.last);
            }
            if parts.is_empty() {
                finished.by_block.remove(&id.block);
            }
        }
    }

    pub(super) fn get(&self, stage: StageIx, id: &TaskId) -> Option<&Mark> {
        let parts = self.finished[stage.0].by_block.get(&id.block)?;
        parts.get(&id.part)
    }

    /// Highest first block of a finished task of the stage.
    pub(super) fn newest(&self, stage: StageIx) -> u64 {
        self.finished[stage.0].newest
    }

    /// Number of a stage's finished tasks whose first block is `block`.
    pub(super) fn count(&self, stage: StageIx, block: u64) -> usize {
        let parts = self.finished[stage.0].by_block.get(&block);
        parts.map_or(0, BTreeMap::len)
    }

    /// Parts of a block that are finished at a stage.
    pub(super) fn parts(&self, stage: StageIx, block: u64) -> impl Iterator<Item = &Part> {
        let parts = self.finished[stage.0].by_block.get(&block);
        parts.into_iter().flat_map(BTreeMap::keys)
    }

    /// Finished tasks of a stage: their first blocks, parts and marks, in order.
    pub(super) fn iter(&self, stage: StageIx) -> impl Iterator<Item = (u64, &Part, &Mark)> {
        self.within(stage, Bound::Unbounded)
    }

    /// Finished tasks as in [`Marks::iter`] whose first block is below `end`.
    pub(super) fn below(
        &self,
        stage: StageIx,
        end: u64,
    ) -> impl Iterator<Item = (u64, &Part, &Mark)> {
        self.within(stage, Bound::Excluded(end))
    }

    /// Numbers of marks, by the blocks that their tasks were about.
    pub(super) fn about(&self) -> &Spans<Tally> {
        &self.about
    }

    fn within(&self, stage: StageIx, end: Bound<u64>) -> impl Iterator<Item = (u64, &Part, &Mark)> {
        let range = (Bound::Unbounded, end);
        let blocks = self.finished[stage.0].by_block.range(range);
        blocks.flat_map(|(block, parts)| parts.iter().map(move |(part, mark)| (*block, part, mark)))
    }

    /// Counts an ended task, whose mark may be removable.
    pub(super) fn note_outdated(&mut self) {
        self.outdated = self.outdated.saturating_add(1);
    }

    /// Makes the search for outdated marks due at once.
    pub(super) fn note_all_outdated(&mut self) {
        self.outdated = FORGET_EVERY;
    }

    /// Whether a search for outdated marks is due.
    pub(super) fn is_removal_due(&self) -> bool {
        !self.removing && self.outdated >= FORGET_EVERY
    }

    /// Notes the result of a search. `all`: the search found every outdated mark. `found`: it found some, and
    /// an append that removes them is on its way.
    pub(super) fn note_removal(&mut self, all: bool, found: bool) {
        if all {
            self.outdated = 0;
        }
        self.removing |= found;
    }

    /// Notes that the append that removes marks has been accepted.
    pub(super) fn removed(&mut self) {
        self.removing = false;
    }

    #[cfg(debug_assertions)]
    pub(super) fn check(&self) -> Result<(), String> {
        let mut by_span: BTreeMap<(u64, u64), usize> = BTreeMap::new();
        for ix in 0..self.finished.len() {
            for (first, _, mark) in self.iter(StageIx(ix)) {
                *by_span.entry((first, mark.last)).or_default() += 1;
            }
        }
        let listed = self.about.all();
        let listed = listed.map(|(first, last, it)| ((first, last), it.count));
        if by_span != listed.collect::<BTreeMap<_, _>>() {
            return Err("the index of marks by block is off".to_owned());
        }
        for (ix, finished) in self.finished.iter().enumerate() {
            let newest = finished.by_block.keys().next_back();
            let is_off = newest.is_some_and(|newest| *newest > finished.newest);
            if is_off || finished.by_block.values().any(BTreeMap::is_empty) {
                return Err(format!("stage {ix}: the marks are off"));
            }
        }
        Ok(())
    }
}

// === impl Mark ===

impl Mark {
    fn of(done: &DoneRecord) -> Self {
        Self {
            last: done.last,
            content: done.content,
            is_dropped: done.end == EndKind::Dropped,
        }
    }

    /// The last block of the task, inclusive.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Whether an operator has dropped the task.
    pub(super) fn is_dropped(&self) -> bool {
        self.is_dropped
    }

    /// Whether the task carried this content; `None` if an earlier release wrote the mark.
    pub(super) fn carried(&self, content: &[u8; 32]) -> Option<bool> {
        Some(self.content? == beginning(content))
    }
}

/// Part of a task's content digest that a mark keeps: the first 16 bytes.
pub(super) fn beginning(content: &[u8; 32]) -> [u8; 16] {
    std::array::from_fn(|at| content[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_tells_what_the_task_carried_until_it_is_removed() {
        let (mut marks, stage) = (Marks::new(1), StageIx(0));
        let id = TaskId {
            stage: "prove".into(),
            block: 3,
            part: Part::whole(),
        };
        let done = DoneRecord {
            end: EndKind::Dropped,
            last: 4,
            at_ms: 0,
            content: Some(beginning(&[1; 32])),
            timeline: None,
        };
        marks.put(stage, &id, &done);
        let mark = marks.get(stage, &id).unwrap();
        assert_eq!((mark.last(), mark.is_dropped()), (4, true));
        assert_eq!(mark.carried(&[1; 32]), Some(true));
        assert_eq!(mark.carried(&[2; 32]), Some(false));
        assert_eq!((marks.below(stage, 3).count(), marks.newest(stage)), (0, 3));
        marks.remove(stage, &id);
        assert!(marks.get(stage, &id).is_none() && marks.iter(stage).next().is_none());
    }

    #[test]
    fn one_append_at_a_time_removes_marks() {
        let mut marks = Marks::new(1);
        assert!(!marks.is_removal_due());
        marks.note_all_outdated();
        assert!(marks.is_removal_due());
        marks.note_removal(false, true);
        assert!(!marks.is_removal_due());
        marks.removed();
        assert!(marks.is_removal_due());
        marks.note_removal(true, false);
        assert!(!marks.is_removal_due());
    }
}
