//! Counters that outlive the process.
//!
//! A task that ends with a mark is counted from the mark when the log is replayed. An append that ends a task
//! in another way, or removes a mark, also writes the stage's counters. Counters that follow from records
//! (accepted, completed, grouped, skipped, dropped, died, emitted) are therefore exact after a crash. The
//! other counters are as of the stage's last such append; later changes are written after [`WRITE_AFTER`] and
//! when the core drains, so a crash may lose them.

use std::collections::HashSet;
use std::time::Duration;

use proofmill_bus::MAX_BATCH_OPS;

use super::change::Change;
use super::layout::Layout;
use super::view::Counters;
use crate::plan::StageIx;
use crate::record::{EndKind, Record, RecordKey};

/// Delay after which changed counters are appended if no other append includes them.
pub(super) const WRITE_AFTER: Duration = Duration::from_secs(5);

/// Upper bound for counters read from the log, so that counting on cannot overflow.
const COUNT_MAX: u64 = 1 << 60;

/// Index of the number of open tasks (live or dead letters) among a stage's numbers in the log.
const OPEN: usize = 15;

/// The counters of the stages and of the whole workflow, and their values in the log.
pub(super) struct Counts {
    counters: Vec<Counters>,
    totals: Totals,
    /// Values in the log once every pending append has been accepted: of each stage, the counters and the
    /// number of accepted tasks that have ended.
    written: Vec<(Counters, i64)>,
    /// Totals in the log once every pending append has been accepted.
    written_totals: Totals,
    /// Number of each stage's accepted tasks that have ended, pending appends included. A message refused on
    /// arrival, which is a dead letter without having been accepted, counts as −1.
    ended: Vec<i64>,
    /// Whether a timer for writing the counters is set.
    due: bool,
    /// Whether counters in the log may include a refused append.
    wrong: bool,
}

/// Counts of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// Blocks that were done within their deadline.
    pub met: u64,
    /// Blocks whose deadline passed before they were done.
    pub missed: u64,
    /// Blocks that had been emitted when their source took them back.
    pub stale: u64,
}

/// The end of a task, read during replay.
pub(super) enum ReplayedEnd<'a> {
    Done(&'a EndKind),
    Dead { late: bool },
}

/// Next step for counters that are not in the log.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WriteWhen {
    /// Nothing to do: the log has the counters, or a timer is set.
    None,
    /// Set a timer to write the counters after [`WRITE_AFTER`].
    Later,
    /// Write the counters at once: the values in the log may be wrong.
    Now,
}

// === impl Counts ===

impl Counts {
    /// All counters at zero.
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

    /// Adds one to a counter of a stage.
    pub(super) fn add(&mut self, stage: StageIx, counter: impl FnOnce(&mut Counters) -> &mut u64) {
        *counter(&mut self.counters[stage.0]) += 1;
    }

    /// Adds `count` to a counter of blocks.
    pub(super) fn add_blocks(&mut self, count: u64, counter: impl FnOnce(&mut Totals) -> &mut u64) {
        *counter(&mut self.totals) += count;
    }

    /// Counts the changes of an append.
    pub(super) fn count(&mut self, changes: &[(RecordKey, Change)], layout: &Layout) {
        self.count_changes(changes, layout, true);
    }

    /// Takes a refused append out of the counters. Counters that other pending appends carry may still
    /// include it.
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
                Record::Done(done) => counters.of(&done.end),
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

    /// Counts an end read during replay. Ends older than the last counters record are overwritten by it.
    pub(super) fn replay(&mut self, stage: StageIx, replayed: ReplayedEnd<'_>) {
        let counters = &mut self.counters[stage.0];
        let counted = match replayed {
            ReplayedEnd::Done(end) => {
                self.ended[stage.0] += 1;
                counters.of(end)
            }
            ReplayedEnd::Dead { late } => counters.of_dead(late),
        };
        counted.into_iter().flatten().for_each(|count| *count += 1);
    }

    /// Takes over a stage's counters from the log.
    pub(super) fn replay_stage(&mut self, stage: StageIx, numbers: &[u64]) {
        let counters = Counters::from_numbers(numbers);
        let open = numbers.get(OPEN).map_or(0, |open| *open.min(&COUNT_MAX));
        let ended = counters.accepted.cast_signed() - open.cast_signed();
        self.counters[stage.0] = counters;
        self.ended[stage.0] = ended;
        self.written[stage.0] = (counters, ended);
    }

    /// Takes over the totals from the log.
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

    /// Derives a stage's accepted tasks after a restart: those that have ended, and `open` ones, live or dead
    /// letters.
    pub(super) fn count_accepted(&mut self, stage: StageIx, open: usize) {
        let open = i64::try_from(open).unwrap_or(i64::MAX >> 1);
        let accepted = self.ended[stage.0] + open;
        self.counters[stage.0].accepted = u64::try_from(accepted).unwrap_or(0);
    }

    /// Adds the totals to an append, and the counters of the stages in which it ends a task, unless marks
    /// alone show all ends.
    pub(super) fn write(&mut self, changes: &mut Vec<(RecordKey, Change)>, layout: &Layout) {
        if implied_by_marks(changes) {
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
        // Counters that do not fit into the batch wait for the timer.
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

    /// Changes that write all counters that the log does not have.
    pub(super) fn flush(&mut self, layout: &Layout) -> Vec<(RecordKey, Change)> {
        let mut changes = Vec::new();
        for stage in 0..self.counters.len() {
            self.write_stage(StageIx(stage), &mut changes, layout);
        }
        self.write_totals(&mut changes);
        changes
    }

    /// Decides, after an event, whether counters that no append has included must be written.
    pub(super) fn schedule_write(&mut self) -> WriteWhen {
        if std::mem::take(&mut self.wrong) {
            // Equal numbers could stand for different tasks: one that the log has refused, and a later one,
            // which would be counted twice at replay. So all counters are written anew.
            let unknown = Counters {
                accepted: u64::MAX,
                ..Counters::default()
            };
            self.written.fill((unknown, 0));
            return WriteWhen::Now;
        }
        if self.due || self.is_written() {
            return WriteWhen::None;
        }
        self.due = true;
        WriteWhen::Later
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

/// Whether an append ends live tasks only, each with a mark, and records no attempt.
fn implied_by_marks(changes: &[(RecordKey, Change)]) -> bool {
    let mut marks = HashSet::new();
    let mut tasks = HashSet::new();
    for (key, change) in changes {
        match (key, change) {
            (RecordKey::Done(id), Change::Put { .. }) => marks.insert(id),
            (RecordKey::Task(id), Change::Delete) => tasks.insert(id),
            (RecordKey::Dead(_), _)
            | (RecordKey::Done(_), Change::Delete)
            | (RecordKey::Attempts(_), Change::Put { .. }) => return false,
            _ => continue,
        };
    }
    marks == tasks
}

// === impl Counters ===

impl Counters {
    /// The counters in the order of the log's record. Later releases append at the end.
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
        // Written by a release with fewer counters, by one with more, or damaged.
        let few = Counters::from_numbers(&numbers[..3]);
        assert_eq!((few.accepted, few.completed, few.emitted), (1, 3, 0));
        let many = Counters::from_numbers(&[u64::MAX; 20]);
        assert_eq!(many.emitted, COUNT_MAX);
    }

    #[test]
    fn a_change_is_written_once_and_a_refusal_writes_all_anew() {
        let mut counts = Counts::new(1);
        assert_eq!(counts.schedule_write(), WriteWhen::None);
        counts.add_blocks(2, |totals| &mut totals.met);
        assert_eq!(counts.schedule_write(), WriteWhen::Later);
        assert_eq!(counts.schedule_write(), WriteWhen::None);
        counts.note_fired();
        let mut changes = Vec::new();
        counts.write_totals(&mut changes);
        counts.write_totals(&mut changes);
        assert!(matches!(changes[..], [(RecordKey::Totals, _)]));
        assert!(counts.is_written());
        counts.wrong = true;
        assert_eq!(counts.schedule_write(), WriteWhen::Now);
        assert!(!counts.is_written());
    }
}
