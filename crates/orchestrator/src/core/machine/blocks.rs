//! State of blocks, derived from the live tasks, the dead letters, the marks of finished tasks, the
//! sequencer's position and the history.

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::Core;
use super::view::phase_of;
use super::waiting::WaitReasons;
use crate::conversation::PAGE_MAX;
use crate::core::blocks::{
    ATTEMPTS_MAX, BLOCKS_MAX, BlockState, BlockSummary, BlockView, DeadStep, DeadlineState,
    LeaseSpan, LiveStep, STREAM_END_MAX,
};
use crate::core::tasks::{ActiveLease, Task};
use crate::plan::StageIx;
use crate::record::{Attempt, DeadRecord, Failure, HistoryEntry, TaskOutcome};
use crate::text::{beginning_of, end_of};

/// Counts and facts about a block's tasks.
#[derive(Clone, Default)]
struct BlockTally {
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

/// Maximum number of tasks or dead letters that are looked at for the view of one block.
const EXAMINED_MAX: usize = 4 * PAGE_MAX;

/// Maximum bytes of text of failed attempts in the view of one block. Attempts beyond it come without their
/// streams.
const STREAMS_MAX: usize = 1 << 20;

impl Core {
    /// Full view of a block.
    pub fn block(&self, block: u64) -> BlockView {
        let mut room = STREAMS_MAX;
        let mut reasons = WaitReasons::new(self);
        let live = self.tasks_about(block).take(EXAMINED_MAX);
        let live = live.filter(|task| task.record().last >= block);
        let live = live.take(PAGE_MAX).map(|task| LiveStep {
            task: task.id().clone(),
            last: task.record().last,
            phase: phase_of(task),
            accepted_ms: task.record().at_ms,
            leases: task.copies().iter().map(lease_span).collect(),
            failed: task.failed_count(),
            attempts: last_attempts(task.attempts(), &mut room),
            waits_for: reasons.of(task),
        });
        let live = live.collect();
        let dead = self.dead_about(block).take(EXAMINED_MAX);
        let dead = dead.filter(|dead| dead.task.last >= block);
        let dead = dead.take(PAGE_MAX).map(|dead| DeadStep {
            task: dead.task.id.clone(),
            last: dead.task.last,
            reason: dead.reason.clone(),
            failed: dead.attempts.len(),
            attempts: last_attempts(&dead.attempts, &mut room),
            accepted_ms: dead.task.at_ms,
            at_ms: dead.at_ms,
        });
        let dead = dead.collect();
        let only = block..=block;
        let entries: Vec<&HistoryEntry> = self.history_about(&only).collect();
        let left_out = entries.len().saturating_sub(PAGE_MAX);
        let history = entries[left_out..].iter().copied().cloned().collect();
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
            dead,
            history,
            sources: self
                .sources
                .positions()
                .map(|(name, next)| (name.clone(), next))
                .collect(),
        }
    }

    /// Live tasks by stage, block and part: those about `block`, and others that begin where one of them does.
    pub(super) fn tasks_about(&self, block: u64) -> impl Iterator<Item = &Task> {
        let places = self.task_places(block);
        places.flat_map(move |(stage, first)| self.tasks.beginning_at(stage, first, None))
    }

    /// The stages, each with the first blocks of the tasks about `block`, in order.
    pub(super) fn task_places(&self, block: u64) -> impl Iterator<Item = (StageIx, u64)> {
        let firsts = self.tasks.about().beginnings(&(block..=block));
        by_stage_and_first(self.layout.stages_by_name(), firsts)
    }

    /// Dead letters, as in [`Core::tasks_about`].
    pub(super) fn dead_about(&self, block: u64) -> impl Iterator<Item = &DeadRecord> {
        let firsts = self.dead.about().beginnings(&(block..=block));
        let places = by_stage_and_first(self.layout.stages_by_name(), firsts);
        places.flat_map(move |(stage, first)| {
            self.dead.beginning_at(&self.plan.stage(stage).name, first)
        })
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

    fn summary(&self, block: u64, tally: &BlockTally, marked: bool) -> BlockSummary {
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

    fn tally(&self, blocks: &RangeInclusive<u64>) -> Vec<BlockTally> {
        let mut tallies = vec![BlockTally::default(); count(blocks)];
        for (first, last, tasks) in self.tasks.about().touching(blocks) {
            for tally in within(&mut tallies, blocks, first, last) {
                tally.live += tasks.count;
                tally.leased += tasks.leased;
                tally.note_time(tasks.latest_ms);
            }
        }
        for (first, last, letters) in self.dead.about().touching(blocks) {
            for tally in within(&mut tallies, blocks, first, last) {
                tally.dead += letters.count;
                tally.note_time(letters.latest_ms);
            }
        }
        for entry in self.history_about(blocks) {
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
        for (first, last, _) in self.marks.about().touching(blocks) {
            within(&mut marked, blocks, first, last).for_each(|it| *it = true);
        }
        marked
    }

    fn state_of(&self, block: u64, tally: &BlockTally, marked: bool) -> BlockState {
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

/// Each stage with each of the first blocks, in order.
fn by_stage_and_first(
    stages: &[StageIx],
    firsts: Vec<u64>,
) -> impl Iterator<Item = (StageIx, u64)> {
    let firsts: Arc<[u64]> = firsts.into();
    stages.iter().flat_map(move |stage| {
        let firsts = Arc::clone(&firsts);
        (0..firsts.len()).map(move |at| (*stage, firsts[at]))
    })
}

fn lease_span(held: &ActiveLease) -> LeaseSpan {
    LeaseSpan {
        worker: held.worker().clone(),
        attempt: held.attempt(),
        since_ms: held.since_wall_ms(),
    }
}

/// The last attempts, with the ends of their streams as far as `room` goes.
fn last_attempts(attempts: &[Attempt], room: &mut usize) -> Vec<Attempt> {
    let left_out = attempts.len().saturating_sub(ATTEMPTS_MAX);
    let shown = attempts[left_out..].iter().map(|attempt| {
        let failure = &attempt.failure;
        let reason = beginning_of(&failure.reason, STREAM_END_MAX.min(*room));
        *room -= reason.len();
        let stdout = end_of(&failure.stdout, STREAM_END_MAX.min(*room));
        *room -= stdout.len();
        let stderr = end_of(&failure.stderr, STREAM_END_MAX.min(*room));
        *room -= stderr.len();
        Attempt {
            number: attempt.number,
            worker: attempt.worker.clone(),
            at_ms: attempt.at_ms,
            failure: Failure {
                permanent: failure.permanent,
                reason: reason.to_owned(),
                exit: failure.exit,
                stdout: stdout.to_owned(),
                stderr: stderr.to_owned(),
                wall_ms: failure.wall_ms,
            },
        }
    });
    shown.collect()
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

// === impl BlockTally ===

impl BlockTally {
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
