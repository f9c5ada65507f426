//! Counters that outlive the process.
//!
//! Where a task ends with a mark, the mark is counted when the log is replayed. Whatever ends it
//! otherwise, or removes a mark, writes the stage's counters with the same append. So what follows from
//! records (accepted, completed, grouped, skipped, dropped, died, emitted) is exact after a crash.
//! The other counters are as of the stage's last such append, and what has changed since is written
//! after [`WRITE_AFTER`] and when the core drains: a crash may lose that.

use std::collections::HashSet;
use std::time::Duration;

use proofmill_bus::MAX_BATCH_OPS;

use super::change::Change;
use super::layout::Layout;
use super::view::Counters;
use crate::plan::StageIx;
use crate::record::{Finish, Record, RecordKey};

/// Changes of counters that no other append takes along are appended after so long.
pub(super) const WRITE_AFTER: Duration = Duration::from_secs(5);

/// A counter that the log holds is not taken to be larger: it is counted on.
const COUNT_MAX: u64 = 1 << 60;

/// Where the numbers of a stage say how many of the accepted tasks are live or dead letters.
const OPEN: usize = 15;

/// The counters of the stages and of the whole, and what the log has of them.
pub(super) struct Counts {
    counters: Vec<Counters>,
    totals: Totals,
    /// As the log has them, or will when every append on its way has been accepted: of each stage, the
    /// counters and how many of the accepted tasks have ended,
    written: Vec<(Counters, i64)>,
    /// and the totals.
    written_totals: Totals,
    /// How many of the accepted tasks of each stage have ended, or will have. What was refused when it
    /// came, and is a dead letter, counts the other way.
    ended: Vec<i64>,
    /// Whether a timer is set.
    due: bool,
    /// Whether the log may count what it has refused.
    wrong: bool,
}

/// Counts of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// Blocks that were done within their deadline.
    pub met: u64,
    /// Blocks that were not.
    pub missed: u64,
    /// Blocks that had been emitted when their source took them back.
    pub stale: u64,
}

/// An end of a task, as it is replayed.
pub(super) enum Replayed<'a> {
    Done(&'a Finish),
    Dead { late: bool },
}

/// What there is to do for counters that the log does not have.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Writing {
    /// Nothing: it has them, or they are written in a while.
    None,
    /// Set a timer, so that they are written after [`WRITE_AFTER`].
    Later,
    /// Write them: what the log has may be wrong.
    Now,
}

// === impl Counts ===

impl Counts {
    /// Nothing has been counted of so many stages.
    pub(super) fn new(stages: usize) -> Self {
        Self {
            counters: vec![Counters::default(); stages],
            totals: Totals::default(),
            written: vec![(Counters::default(), 0); stages],
            written_totals: Totals::default(),
            ended: vec![0; stages],
            due: false,
            wrong: false,
        }
    }

    pub(super) fn of(&self, stage: StageIx) -> Counters {
        self.counters[stage.0]
    }

    pub(super) fn totals(&self) -> Totals {
        self.totals
    }

    /// Counts one more.
    pub(super) fn add(&mut self, stage: StageIx, counter: impl FnOnce(&mut Counters) -> &mut u64) {
        *counter(&mut self.counters[stage.0]) += 1;
    }

    /// Counts so many blocks more.
    pub(super) fn add_blocks(&mut self, count: u64, counter: impl FnOnce(&mut Totals) -> &mut u64) {
        *counter(&mut self.totals) += count;
    }

    /// Counts what an append brings.
    pub(super) fn count(&mut self, changes: &[(RecordKey, Change)], layout: &Layout) {
        self.count_changes(changes, layout, true);
    }

    /// The log has refused an append: what others on their way have counted of it is corrected.
    pub(super) fn uncount(&mut self, changes: &[(RecordKey, Change)], layout: &Layout) {
        self.count_changes(changes, layout, false);
        self.wrong = true;
    }

    fn count_changes(&mut self, changes: &[(RecordKey, Change)], layout: &Layout, comes: bool) {
        for (key, change) in changes {
            let Some(stage) = layout.stage_of_key(key) else {
                continue;
            };
            let ended = match (key, change) {
                (RecordKey::Task(_) | RecordKey::Dead(_), Change::Delete) => 1,
                (RecordKey::Dead(_), Change::Put { .. }) => -1,
                _ => 0,
            };
            self.ended[stage.0] += if comes { ended } else { -ended };
            let Change::Put { record, .. } = change else {
                continue;
            };
            let counters = &mut self.counters[stage.0];
            let counted = match record {
                Record::Task(_) => [Some(&mut counters.accepted), None],
                Record::Done(done) => counters.of(&done.finish),
                Record::Dead(dead) => counters.of_dead(dead.late),
                _ => continue,
            };
            for counter in counted.into_iter().flatten() {
                *counter = match comes {
                    true => counter.saturating_add(1),
                    false => counter.saturating_sub(1),
                };
            }
        }
    }

    /// Counts an end that is replayed: those after the last record that has the counters.
    pub(super) fn replay(&mut self, stage: StageIx, replayed: Replayed<'_>) {
        let counters = &mut self.counters[stage.0];
        let counted = match replayed {
            Replayed::Done(finish) => {
                self.ended[stage.0] += 1;
                counters.of(finish)
            }
            Replayed::Dead { late } => counters.of_dead(late),
        };
        counted.into_iter().flatten().for_each(|count| *count += 1);
    }

    /// The log has the counters of a stage.
    pub(super) fn replay_stage(&mut self, stage: StageIx, numbers: &[u64]) {
        let counters = Counters::from_numbers(numbers);
        let open = numbers.get(OPEN).map_or(0, |open| *open.min(&COUNT_MAX));
        let ended = counters.accepted.cast_signed() - open.cast_signed();
        self.counters[stage.0] = counters;
        self.ended[stage.0] = ended;
        self.written[stage.0] = (counters, ended);
    }

    /// The log has the counters of the whole.
    pub(super) fn replay_totals(&mut self, numbers: &[u64]) {
        let mut totals = numbers.iter().map(|count| *count.min(&COUNT_MAX));
        let mut next = || totals.next().unwrap_or(0);
        let totals = Totals {
            met: next(),
            missed: next(),
            stale: next(),
        };
        (self.totals, self.written_totals) = (totals, totals);
    }

    /// After a restart: what a stage has accepted has ended, or is `open`, live or a dead letter.
    pub(super) fn count_accepted(&mut self, stage: StageIx, open: usize) {
        let open = i64::try_from(open).unwrap_or(i64::MAX >> 1);
        let accepted = self.ended[stage.0] + open;
        self.counters[stage.0].accepted = u64::try_from(accepted).unwrap_or(0);
    }

    /// Adds to an append the counters of the stages in which it ends something, if that is not to be seen
    /// from marks.
    pub(super) fn write(&mut self, changes: &mut Vec<(RecordKey, Change)>, layout: &Layout) {
        if is_told_by_marks(changes) {
            self.write_totals(changes);
            return;
        }
        let mut stages: Vec<StageIx> = Vec::new();
        for (key, change) in changes.iter() {
            let ends = match change {
                Change::Put { .. } => !matches!(key, RecordKey::Task(_)),
                Change::Delete => matches!(
                    key,
                    RecordKey::Task(_) | RecordKey::Dead(_) | RecordKey::Done(_)
                ),
            };
            let stage = layout.stage_of_key(key).filter(|_| ends);
            stages.extend(stage.filter(|stage| !stages.contains(stage)));
        }
        for stage in stages {
            self.write_stage(stage, changes, layout);
        }
        self.write_totals(changes);
    }

    fn write_stage(
        &mut self,
        stage: StageIx,
        changes: &mut Vec<(RecordKey, Change)>,
        layout: &Layout,
    ) {
        let counters = self.counters[stage.0];
        let counted = (counters, self.ended[stage.0]);
        // What does not fit waits for the timer.
        if counted == self.written[stage.0] || changes.len() >= MAX_BATCH_OPS {
            return;
        }
        self.written[stage.0] = counted;
        let open = counters.accepted.cast_signed() - counted.1;
        let key = RecordKey::Counts(layout.name(stage).clone());
        let mut numbers = counters.to_numbers().to_vec();
        numbers.push(u64::try_from(open).unwrap_or(0));
        let record = Record::Counts(numbers);
        changes.push((key, Change::put(record)));
    }

    fn write_totals(&mut self, changes: &mut Vec<(RecordKey, Change)>) {
        if self.totals == self.written_totals || changes.len() >= MAX_BATCH_OPS {
            return;
        }
        self.written_totals = self.totals;
        let Totals { met, missed, stale } = self.totals;
        let record = Record::Counts(vec![met, missed, stale]);
        changes.push((RecordKey::Totals, Change::put(record)));
    }

    /// The records of all counters that the log does not have: they are to be appended.
    pub(super) fn flush(&mut self, layout: &Layout) -> Vec<(RecordKey, Change)> {
        let mut changes = Vec::new();
        for stage in 0..self.counters.len() {
            self.write_stage(StageIx(stage), &mut changes, layout);
        }
        self.write_totals(&mut changes);
        changes
    }

    /// What there is to do, after an event, for counters that nothing else has taken along.
    pub(super) fn arm(&mut self) -> Writing {
        if std::mem::take(&mut self.wrong) {
            // The same number may be of other tasks: of one that the log has refused, and of one that
            // comes after the counters, and is counted again when the log is replayed.
            let unknown = Counters {
                accepted: u64::MAX,
                ..Counters::default()
            };
            self.written.fill((unknown, 0));
            return Writing::Now;
        }
        if self.due || self.is_written() {
            return Writing::None;
        }
        self.due = true;
        Writing::Later
    }

    /// The timer has fired.
    pub(super) fn note_fired(&mut self) {
        self.due = false;
    }

    fn is_written(&self) -> bool {
        let counters = self.counters.iter().zip(&self.ended);
        counters
            .map(|(counters, ended)| (*counters, *ended))
            .eq(self.written.iter().copied())
            && self.totals == self.written_totals
    }
}

/// Whether an append ends only live tasks, each with a mark, and no attempt.
fn is_told_by_marks(changes: &[(RecordKey, Change)]) -> bool {
    let mut marks = HashSet::new();
    let mut tasks = HashSet::new();
    for (key, change) in changes {
        match (key, change) {
            (RecordKey::Done(id), Change::Put { .. }) => marks.insert(id),
            (RecordKey::Task(id), Change::Delete) => tasks.insert(id),
            (RecordKey::Dead(_), _)
            | (RecordKey::Done(_), Change::Delete)
            | (RecordKey::Tries(_), Change::Put { .. }) => return false,
            _ => continue,
        };
    }
    marks == tasks
}

// === impl Counters ===

impl Counters {
    /// As the log holds them: later releases add at the end.
    fn to_numbers(self) -> [u64; 15] {
        [
            self.accepted,
            self.leased,
            self.completed,
            self.grouped,
            self.skipped,
            self.dropped,
            self.failed,
            self.retried,
            self.expired,
            self.hedged,
            self.cancelled,
            self.stale_results,
            self.died,
            self.emitted,
            self.late,
        ]
    }

    fn from_numbers(numbers: &[u64]) -> Self {
        let mut counters = Self::default();
        let fields = [
            &mut counters.accepted,
            &mut counters.leased,
            &mut counters.completed,
            &mut counters.grouped,
            &mut counters.skipped,
            &mut counters.dropped,
            &mut counters.failed,
            &mut counters.retried,
            &mut counters.expired,
            &mut counters.hedged,
            &mut counters.cancelled,
            &mut counters.stale_results,
            &mut counters.died,
            &mut counters.emitted,
            &mut counters.late,
        ];
        for (field, number) in fields.into_iter().zip(numbers) {
            *field = *number.min(&COUNT_MAX);
        }
        counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_as_they_were_written() {
        let numbers: [u64; 15] = std::array::from_fn(|at| at as u64 + 1);
        assert_eq!(Counters::from_numbers(&numbers).to_numbers(), numbers);
        // Of a release that had fewer, or of one that has more, or damaged.
        let few = Counters::from_numbers(&numbers[..3]);
        assert_eq!((few.accepted, few.completed, few.emitted), (1, 3, 0));
        let many = Counters::from_numbers(&[u64::MAX; 20]);
        assert_eq!(many.emitted, COUNT_MAX);
    }

    #[test]
    fn a_change_is_written_once_and_a_refusal_writes_all_anew() {
        let mut counts = Counts::new(1);
        assert_eq!(counts.arm(), Writing::None);
        counts.add_blocks(2, |totals| &mut totals.met);
        assert_eq!(counts.arm(), Writing::Later);
        assert_eq!(counts.arm(), Writing::None);
        counts.note_fired();
        let mut changes = Vec::new();
        counts.write_totals(&mut changes);
        counts.write_totals(&mut changes);
        assert!(matches!(changes[..], [(RecordKey::Totals, _)]));
        assert!(counts.is_written());
        counts.wrong = true;
        assert_eq!(counts.arm(), Writing::Now);
        assert!(!counts.is_written());
    }
}
