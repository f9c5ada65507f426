//! The scores of Ethproofs' real-time proving cohort, of the last seven days.
//!
//! Definitions: `docs/feature-rtp-cohort.md` and the function `snapshot_rtp_cohort()` (migrations 0060 and 0069) of
//! <https://github.com/ethproofs/ethproofs>. Of the blocks of the last seven days,
//!
//! - the *performance score* is the share with a proof that took less than 10 s,
//! - the *liveness score* is the share with a proof,
//! - the *stunner rate* is the share with a proof that took 10 s or longer,
//! - the *paralyzer rate* is the share that has no proof 20 minutes after the block.
//!
//! The site counts all blocks of the chain; a mill knows those that it was given. Here a block counts from its
//! acceptance, and so does one that was never accepted between two that were. A proof counts once the site has it.

use std::collections::VecDeque;

use crate::journal::Record;

/// Length of the window.
pub const WINDOW_MS: u64 = 7 * 24 * 3_600_000;

/// A proof that took less is fast.
pub const FAST_MS: u64 = 10_000;

/// Age at which a block without a proof is paralyzed.
const PARALYZED_MS: u64 = 20 * 60_000;

/// Most blocks of the window: more than seven days of slots of 12 s (50,400).
const BLOCKS_MAX: usize = 65_536;

/// Most blocks in a row that were never accepted and count as missed: a day of slots. If more are left out, the mill was
/// set to another place in the chain, and counting begins anew.
const GAP_MAX: u64 = 7_200;

/// Highest block: that of a workflow.
const BLOCK_MAX: u64 = i64::MAX as u64;

/// Record of a block.
#[derive(Clone, Copy, Debug)]
struct Cell {
    /// Time of acceptance, milliseconds since 1970-01-01 UTC.
    at_ms: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It was left out.
    Absent,
    Accepted,
    /// Proved, within this time; the site does not have the proof.
    Proved(u32),
    /// As before; the site has it.
    Reported(u32),
}

/// The window's blocks.
#[derive(Debug)]
pub struct Score {
    /// Only multiples of this number count.
    every: u64,
    /// The first block of `cells`, divided by `every`.
    first: u64,
    cells: VecDeque<Cell>,
}

/// Numbers of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scores {
    /// Blocks.
    pub blocks: usize,
    /// Blocks whose proof the site has, made in less than [`FAST_MS`].
    pub fast: usize,
    /// Blocks whose proof the site has, made in [`FAST_MS`] or longer.
    pub slow: usize,
    /// Blocks that are proved, whose proof the site does not have yet.
    pub unreported: usize,
    /// Blocks whose proof the site does not have 20 minutes after their acceptance, those left out included.
    pub paralyzed: usize,
}

// === impl Score ===

impl Score {
    /// An empty window. Blocks count if they are multiples of `every`, at least 1.
    pub fn new(every: u64) -> Self {
        Self {
            every: every.max(1),
            first: 0,
            cells: VecDeque::new(),
        }
    }

    /// Whether the block counts.
    pub fn counts(&self, block: u64) -> bool {
        block.is_multiple_of(self.every)
    }

    /// Notes what a record says.
    pub fn note(&mut self, record: Record) {
        match record {
            Record::Accepted { block, at_ms } => self.accept(block, at_ms),
            Record::Proved { block, proving_ms } => self.advance(block, |state| match state {
                State::Accepted => Some(State::Proved(shortened(proving_ms))),
                _ => None,
            }),
            Record::Reported { block } => self.advance(block, |state| match state {
                State::Proved(ms) => Some(State::Reported(ms)),
                _ => None,
            }),
        }
    }

    fn accept(&mut self, block: u64, at_ms: u64) {
        if !self.counts(block) || block > BLOCK_MAX {
            return;
        }
        let place = block / self.every;
        let end = self.first.saturating_add(self.cells.len() as u64);
        if self.cells.is_empty() || place.saturating_sub(end) > GAP_MAX {
            self.cells.clear();
            self.first = place;
        } else if place < self.first {
            return;
        }
        // The window is in the order of blocks, and so of time, whatever clocks do.
        let at_ms = self
            .cells
            .back()
            .map_or(at_ms, |last| last.at_ms.max(at_ms));
        while self.cells.len() as u64 <= place - self.first {
            let state = State::Absent;
            self.cells.push_back(Cell { at_ms, state });
        }
        let at = usize::try_from(place - self.first).unwrap_or(usize::MAX);
        if let Some(cell) = self.cells.get_mut(at)
            && cell.state == State::Absent
        {
            cell.state = State::Accepted;
        }
        while self.cells.len() > BLOCKS_MAX {
            self.pop();
        }
    }

    fn advance(&mut self, block: u64, next: impl FnOnce(State) -> Option<State>) {
        let Some(cell) = self.at(block).and_then(|at| self.cells.get_mut(at)) else {
            return;
        };
        if let Some(next) = next(cell.state) {
            cell.state = next;
        }
    }

    /// Whether the block was accepted in the window.
    pub fn has(&self, block: u64) -> bool {
        let cell = self.at(block).and_then(|at| self.cells.get(at));
        cell.is_some_and(|cell| cell.state != State::Absent)
    }

    /// Whether the block was accepted in the window and is not proved.
    pub fn is_unproved(&self, block: u64) -> bool {
        let cell = self.at(block).and_then(|at| self.cells.get(at));
        cell.is_some_and(|cell| cell.state == State::Accepted)
    }

    /// Whether the site has the block's proof, as far as the window knows.
    pub fn is_reported(&self, block: u64) -> bool {
        let cell = self.at(block).and_then(|at| self.cells.get(at));
        cell.is_some_and(|cell| matches!(cell.state, State::Reported(_)))
    }

    /// Removes blocks that are older than the window.
    pub fn expire(&mut self, now_ms: u64) {
        let since_ms = now_ms.saturating_sub(WINDOW_MS);
        while self.cells.front().is_some_and(|cell| cell.at_ms < since_ms) {
            self.pop();
        }
    }

    /// The numbers at this time. Visits every block of the window.
    pub fn scores(&self, now_ms: u64) -> Scores {
        let mut scores = Scores::default();
        for cell in &self.cells {
            scores.blocks += 1;
            match cell.state {
                State::Reported(ms) if u64::from(ms) < FAST_MS => scores.fast += 1,
                State::Reported(_) => scores.slow += 1,
                state => {
                    scores.unreported += usize::from(matches!(state, State::Proved(_)));
                    let is_old = cell.at_ms.saturating_add(PARALYZED_MS) < now_ms;
                    scores.paralyzed += usize::from(is_old);
                }
            }
        }
        scores
    }

    /// The records that make this window anew.
    pub fn records(&self) -> impl Iterator<Item = Record> {
        self.cells
            .iter()
            .zip(self.first..)
            .flat_map(|(cell, place)| {
                let (block, at_ms) = (place * self.every, cell.at_ms);
                let (accepted, ms, reported) = match cell.state {
                    State::Absent => (false, None, false),
                    State::Accepted => (true, None, false),
                    State::Proved(ms) => (true, Some(ms), false),
                    State::Reported(ms) => (true, Some(ms), true),
                };
                let accepted = accepted.then_some(Record::Accepted { block, at_ms });
                let proved = ms.map(|ms| Record::Proved {
                    block,
                    proving_ms: u64::from(ms),
                });
                let reported = reported.then_some(Record::Reported { block });
                accepted.into_iter().chain(proved).chain(reported)
            })
    }

    fn at(&self, block: u64) -> Option<usize> {
        if !self.counts(block) {
            return None;
        }
        let at = (block / self.every).checked_sub(self.first)?;
        usize::try_from(at).ok()
    }

    /// Removes the first block, and those after it that were left out: a window begins with a block that was accepted.
    fn pop(&mut self) {
        self.cells.pop_front();
        self.first += 1;
        while self
            .cells
            .front()
            .is_some_and(|cell| cell.state == State::Absent)
        {
            self.cells.pop_front();
            self.first += 1;
        }
    }
}

fn shortened(proving_ms: u64) -> u32 {
    u32::try_from(proving_ms).unwrap_or(u32::MAX)
}

// === impl Scores ===

impl Scores {
    /// Share of the blocks with a proof made in less than 10 s; `None` without blocks.
    pub fn performance(&self) -> Option<f64> {
        self.share(self.fast)
    }

    /// Share of the blocks with a proof.
    pub fn liveness(&self) -> Option<f64> {
        self.share(self.fast + self.slow)
    }

    /// Share of the blocks with a proof made in 10 s or longer.
    pub fn stunner(&self) -> Option<f64> {
        self.share(self.slow)
    }

    /// Share of the blocks without a proof after 20 minutes.
    pub fn paralyzer(&self) -> Option<f64> {
        self.share(self.paralyzed)
    }

    fn share(&self, count: usize) -> Option<f64> {
        (self.blocks > 0).then(|| count as f64 / self.blocks as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOT_MS: u64 = 12_000;

    fn accepted(block: u64, at_ms: u64) -> Record {
        Record::Accepted { block, at_ms }
    }

    fn reported(score: &mut Score, block: u64, proving_ms: u64) {
        score.note(Record::Proved { block, proving_ms });
        score.note(Record::Reported { block });
    }

    #[test]
    fn shares_are_of_all_blocks_of_the_window() {
        let mut score = Score::new(1);
        for block in 0..10 {
            score.note(accepted(block, block * SLOT_MS));
        }
        for (block, proving_ms) in [(0, 9_999), (1, 10_000), (2, 4_000), (3, u64::MAX)] {
            reported(&mut score, block, proving_ms);
        }
        score.note(Record::Proved {
            block: 4,
            proving_ms: 1,
        });
        let scores = score.scores(PARALYZED_MS + 6 * SLOT_MS);
        assert_eq!(
            scores,
            Scores {
                blocks: 10,
                fast: 2,
                slow: 2,
                unreported: 1,
                paralyzed: 2,
            }
        );
        assert_eq!(scores.performance(), Some(0.2));
        assert_eq!(scores.liveness(), Some(0.4));
        assert_eq!(Scores::default().liveness(), None);
    }

    #[test]
    fn a_week_later_a_block_is_forgotten() {
        let mut score = Score::new(1);
        for block in 0..3 {
            score.note(accepted(block, block));
            reported(&mut score, block, 1);
        }
        score.expire(WINDOW_MS + 1);
        assert_eq!(score.scores(WINDOW_MS + 1).blocks, 2);
        assert!(!score.is_reported(0) && score.is_reported(1));
        score.expire(3 * WINDOW_MS);
        assert_eq!(score.scores(0), Scores::default());
        // Records about forgotten blocks change nothing, and new blocks are taken.
        reported(&mut score, 2, 1);
        score.note(accepted(9, 3 * WINDOW_MS));
        assert_eq!(score.scores(3 * WINDOW_MS).blocks, 1);
    }

    #[test]
    fn blocks_left_out_count_as_missed_unless_the_mill_moved() {
        let mut score = Score::new(1);
        score.note(accepted(100, 0));
        score.note(accepted(104, 5));
        // A reorganisation, or a source that is behind.
        score.note(accepted(102, 6));
        score.note(accepted(99, 7));
        assert_eq!(score.scores(0).blocks, 5);
        assert!(score.is_unproved(102) && !score.is_unproved(101) && !score.is_unproved(99));
        score.note(accepted(104 + GAP_MAX, 8));
        assert_eq!(score.scores(0).blocks, 5 + GAP_MAX as usize);
        score.note(accepted(19_000_000, 9));
        assert_eq!(score.scores(0).blocks, 1);
        score.note(accepted(u64::MAX, 9));
        score.note(accepted(u64::MAX - 1, 9));
        assert_eq!(score.scores(0).blocks, 1);
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_go_first() {
        let mut score = Score::new(1);
        for block in 0..BLOCKS_MAX as u64 + 10 {
            score.note(accepted(block, 1));
        }
        assert_eq!(score.scores(0).blocks, BLOCKS_MAX);
        assert!(!score.is_unproved(9) && score.is_unproved(10));
    }

    #[test]
    fn only_every_nth_block_counts() {
        let mut score = Score::new(10);
        for block in 0..35 {
            score.note(accepted(block, block));
            reported(&mut score, block, 1);
        }
        let scores = score.scores(0);
        assert_eq!((scores.blocks, scores.fast), (4, 4));
    }

    proptest::proptest! {
        #[test]
        fn a_window_is_made_anew_from_its_records(
            events in proptest::collection::vec((0_u8..3, 0_u64..40, 0_u64..30_000), 0..200),
            every in 1_u64..4,
        ) {
            let mut score = Score::new(every);
            for (kind, block, number) in events {
                score.note(match kind {
                    0 => Record::Accepted { block, at_ms: number },
                    1 => Record::Proved { block, proving_ms: number },
                    _ => Record::Reported { block },
                });
            }
            let mut again = Score::new(every);
            score.records().for_each(|record| again.note(record));
            let times = |score: &Score| score.cells.iter().filter(|it| it.state != State::Absent).map(|it| it.at_ms).collect::<Vec<_>>();
            proptest::prop_assert_eq!(times(&again), times(&score));
            proptest::prop_assert_eq!(again.scores(0), score.scores(0));
        }
    }
}
