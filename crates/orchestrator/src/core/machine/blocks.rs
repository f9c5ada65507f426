//! State of blocks, derived from the live tasks, the dead letters, the marks of finished tasks, the
//! sequencer's position and the history.

use std::ops::RangeInclusive;

use super::Core;
use super::view::task_view;
use super::waiting::WaitReasons;
use crate::core::blocks::{
    BLOCKS_MAX, BlockState, BlockSummary, BlockView, DeadlineState, LiveStep,
};
use crate::plan::StageIx;
use crate::record::{HistoryEntry, TaskOutcome, TaskRecord};

/// Counts and facts about a block's tasks.
#[derive(Clone, Default)]
struct Tally {
    live: usize,
    leased: usize,
    dead: usize,
    /// This field and `skipped`, `dropped` and `deadline` count from the last time that the source took the
    /// block back.
    ended: bool,
    skipped: bool,
    dropped: bool,
    taken_back: bool,
    emission: bool,
    stale: bool,
    deadline: Option<DeadlineState>,
    at_ms: Option<u64>,
}

impl Core {
    /// Full view of a block.
    pub fn block(&self, block: u64) -> BlockView {
        let is_about = |task: &TaskRecord| (task.id.block..=task.last).contains(&block);
        let live = self.tasks.iter().filter(|task| is_about(task.record()));
        let mut reasons = WaitReasons::new(self);
        let mut live: Vec<LiveStep> = live
            .map(|task| LiveStep {
                task: task_view(task),
                waits_for: reasons.of(task),
            })
            .collect();
        live.sort_by(|a, b| a.task.record.id.cmp(&b.task.record.id));
        let dead = self.dead_letters().filter(|dead| is_about(&dead.task));
        let history: Vec<HistoryEntry> = self
            .history_entries()
            .filter(|it| it.is_about(block))
            .cloned()
            .collect();
        let only = block..=block;
        let tally = self.tally(&only).pop().unwrap_or_default();
        let summary = self.summary(block, &tally, self.marked(&only).contains(&true));
        BlockView {
            is_remembered: match summary.state {
                BlockState::Emitted => tally.emission,
                BlockState::Finished => tally.ended,
                _ => true,
            },
            summary,
            live,
            dead: dead.cloned().collect(),
            history,
            sources: self
                .sources
                .positions()
                .map(|(name, next)| (name.clone(), next))
                .collect(),
        }
    }

    /// Summaries of blocks; at most the first [`BLOCKS_MAX`] of the range.
    pub fn summaries(&self, blocks: RangeInclusive<u64>) -> Vec<BlockSummary> {
        let (first, last) = (*blocks.start(), *blocks.end());
        let blocks = first..=last.min(first.saturating_add(BLOCKS_MAX - 1));
        let tallies = self.tally(&blocks);
        let marks = self.marked(&blocks);
        let each = blocks.zip(tallies).zip(marks);
        each.map(|((block, tally), marked)| self.summary(block, &tally, marked))
            .collect()
    }

    fn summary(&self, block: u64, tally: &Tally, marked: bool) -> BlockSummary {
        BlockSummary {
            block,
            state: self.state_of(block, tally, marked),
            deadline: match self.slots.is_missed(block) {
                Some(true) => Some(DeadlineState::Missed),
                Some(false) => Some(DeadlineState::Running),
                None => tally.deadline,
            },
            live: tally.live,
            dead: tally.dead,
            stale: tally.stale,
            at_ms: tally.at_ms,
        }
    }

    fn tally(&self, blocks: &RangeInclusive<u64>) -> Vec<Tally> {
        let mut tallies = vec![Tally::default(); count(blocks)];
        for task in self.tasks.iter() {
            let (first, last) = (task.record().id.block, task.record().last);
            for tally in within(&mut tallies, blocks, first, last) {
                tally.live += 1;
                tally.leased += usize::from(!task.copies().is_empty());
                tally.note_time(task.record().at_ms);
            }
        }
        for dead in self.dead_letters() {
            for tally in within(&mut tallies, blocks, dead.task.id.block, dead.task.last) {
                tally.dead += 1;
                tally.note_time(dead.at_ms);
            }
        }
        for entry in self.history_entries() {
            let (first, last) = entry.span();
            for tally in within(&mut tallies, blocks, first, last) {
                tally.note(entry);
            }
        }
        tallies
    }

    /// Whether there is a mark of a finished task of each block.
    fn marked(&self, blocks: &RangeInclusive<u64>) -> Vec<bool> {
        let mut marked = vec![false; count(blocks)];
        for stage in (0..self.layout.stages()).map(StageIx) {
            let marks = self.marks.up_to(stage, *blocks.end());
            for (first, _, mark) in marks {
                within(&mut marked, blocks, first, mark.last()).for_each(|it| *it = true);
            }
        }
        marked
    }

    fn state_of(&self, block: u64, tally: &Tally, marked: bool) -> BlockState {
        let sequencer = self.plan.sequencer();
        let start = sequencer.map_or(0, |(_, start)| start);
        let is_known = tally.ended || tally.skipped || tally.dropped || tally.emission || marked;
        let retain = self.plan.retain_blocks;
        let mut stages = (0..self.layout.stages()).map(StageIx);
        let mut newest =
            || stages.any(|stage| block < self.marks.newest(stage).saturating_sub(retain));
        if tally.dead > 0 {
            BlockState::Dead
        } else if tally.leased > 0 {
            BlockState::Running
        } else if tally.live > 0 {
            BlockState::Waiting
        } else if block < start && !is_known {
            BlockState::BeforeStart
        } else if sequencer.is_some() && block < self.sequencer.cursor() {
            BlockState::Emitted
        } else if tally.dropped {
            BlockState::Dropped
        } else if tally.skipped && (sequencer.is_some() || !tally.ended) {
            BlockState::Skipped
        } else if is_known {
            BlockState::Finished
        } else if tally.taken_back {
            BlockState::TakenBack
        } else if sequencer.is_none() && newest() {
            BlockState::Forgotten
        } else {
            BlockState::NeverSeen
        }
    }
}

fn count(blocks: &RangeInclusive<u64>) -> usize {
    let count = blocks.end().saturating_sub(*blocks.start()) + 1;
    if blocks.is_empty() { 0 } else { count as usize }
}

/// Elements of `each` (one for each block of `blocks`) whose block lies in the span from `first` to `last`.
fn within<'a, T>(
    each: &'a mut [T],
    blocks: &RangeInclusive<u64>,
    first: u64,
    last: u64,
) -> impl Iterator<Item = &'a mut T> {
    let from = first.max(*blocks.start());
    let to = last.min(*blocks.end());
    let range = match from <= to {
        true => (from - blocks.start()) as usize..(to - blocks.start()) as usize + 1,
        false => 0..0,
    };
    each[range].iter_mut()
}

// === impl Tally ===

impl Tally {
    fn note_time(&mut self, at_ms: u64) {
        self.at_ms = self.at_ms.max(Some(at_ms));
    }

    fn note(&mut self, entry: &HistoryEntry) {
        self.note_time(entry.at_ms());
        match entry {
            HistoryEntry::Deadline { missed, .. } => {
                self.deadline = Some(match missed {
                    true => DeadlineState::Missed,
                    false => DeadlineState::Met,
                });
            }
            HistoryEntry::TakenBack { emitted: true, .. } => self.stale = true,
            HistoryEntry::TakenBack { .. } => {
                (self.ended, self.skipped, self.dropped) = (false, false, false);
                (self.deadline, self.taken_back) = (None, true);
            }
            HistoryEntry::TaskEnd(end) => match &end.outcome {
                TaskOutcome::Completed { .. }
                | TaskOutcome::Grouped { .. }
                | TaskOutcome::PassedOn { .. } => self.ended = true,
                TaskOutcome::Skipped { .. } => self.skipped = true,
                TaskOutcome::Dropped => self.dropped = true,
                TaskOutcome::Emitted { .. } => self.emission = true,
                TaskOutcome::Died { .. } => {}
            },
        }
    }
}
