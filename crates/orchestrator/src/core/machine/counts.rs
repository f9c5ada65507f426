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

use super::{Change, Core, Then, Timer};
use crate::core::view::Counters;
use crate::plan::StageIx;
use crate::record::{Finish, Record, RecordKey};

/// Changes of counters that no other append takes along are appended after so long.
const WRITE_AFTER: Duration = Duration::from_secs(5);

/// A counter that the log holds is not taken to be larger: it is counted on.
const COUNT_MAX: u64 = 1 << 60;

/// Where the numbers of a stage say how many of the accepted tasks are live or dead letters.
const OPEN: usize = 15;

/// The counters as the log has them, or will when every append on its way has been accepted.
pub(super) struct Counted {
    /// Of each stage, the counters and how many of the accepted tasks have ended.
    stages: Vec<(Counters, i64)>,
    /// How many of the accepted tasks of each stage have ended, or will have. What was refused when it
    /// came, and is a dead letter, counts the other way.
    ended: Vec<i64>,
    totals: [u64; 3],
    /// Whether a timer is set.
    due: bool,
    /// Whether the log may count what it has refused.
    wrong: bool,
}

/// An end of a task, as it is replayed.
pub(super) enum Replayed<'a> {
    Done(&'a Finish),
    Dead { late: bool },
}

impl Core {
    /// Counts what an append brings, or takes that back if the log has refused it.
    pub(super) fn count_changes(&mut self, changes: &[(RecordKey, Change)], comes: bool) {
        for (key, change) in changes {
            let Some(stage) = self.stage_of_key(key) else {
                continue;
            };
            let ended = match (key, change) {
                (RecordKey::Task(_) | RecordKey::Dead(_), Change::Delete) => 1,
                (RecordKey::Dead(_), Change::Put { .. }) => -1,
                _ => 0,
            };
            self.counted.ended[stage.0] += if comes { ended } else { -ended };
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

    /// The log has refused an append: what others on their way have counted of it is corrected.
    pub(super) fn uncount(&mut self, changes: &[(RecordKey, Change)]) {
        self.count_changes(changes, false);
        self.counted.wrong = true;
    }

    /// Counts an end that is replayed: those after the last record that has the counters.
    pub(super) fn count_replayed(&mut self, stage: StageIx, replayed: Replayed<'_>) {
        if self.started {
            return;
        }
        let counters = &mut self.counters[stage.0];
        let counted = match replayed {
            Replayed::Done(finish) => {
                self.counted.ended[stage.0] += 1;
                counters.of(finish)
            }
            Replayed::Dead { late } => counters.of_dead(late),
        };
        counted.into_iter().flatten().for_each(|count| *count += 1);
    }

    /// The log has the counters of a stage.
    pub(super) fn put_counts(&mut self, stage: StageIx, numbers: &[u64]) {
        if !self.started {
            let counters = Counters::from_numbers(numbers);
            let open = numbers.get(OPEN).map_or(0, |open| *open.min(&COUNT_MAX));
            let ended = counters.accepted.cast_signed() - open.cast_signed();
            self.counters[stage.0] = counters;
            self.counted.ended[stage.0] = ended;
            self.counted.stages[stage.0] = (counters, ended);
        }
    }

    /// After a restart: what was accepted has ended, is live or is a dead letter.
    pub(super) fn count_accepted(&mut self) {
        let mut accepted = self.counted.ended.clone();
        for task in self.tasks.values() {
            accepted[task.stage.0] += 1;
        }
        for (ix, accepted) in accepted.into_iter().enumerate() {
            let all = accepted + i64::try_from(self.buried[ix]).unwrap_or(i64::MAX >> 1);
            self.counters[ix].accepted = u64::try_from(all).unwrap_or(0);
        }
    }

    /// The log has the counters of the whole.
    pub(super) fn put_totals(&mut self, numbers: &[u64]) {
        if !self.started {
            let mut totals = numbers.iter().map(|count| *count.min(&COUNT_MAX));
            let mut next = || totals.next().unwrap_or(0);
            self.counted.totals = [next(), next(), next()];
            [self.blocks_met, self.blocks_missed, self.blocks_stale] = self.counted.totals;
        }
    }

    fn totals(&self) -> [u64; 3] {
        [self.blocks_met, self.blocks_missed, self.blocks_stale]
    }

    /// Adds the counters of the stages in which an append ends something, if that is not to be seen from
    /// marks.
    pub(super) fn write_counts(&mut self, changes: &mut Vec<(RecordKey, Change)>) {
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
            let stage = self.stage_of_key(key).filter(|_| ends);
            stages.extend(stage.filter(|stage| !stages.contains(stage)));
        }
        for stage in stages {
            self.write_counts_of(stage, changes);
        }
        self.write_totals(changes);
    }

    fn write_counts_of(&mut self, stage: StageIx, changes: &mut Vec<(RecordKey, Change)>) {
        let counters = self.counters[stage.0];
        let counted = (counters, self.counted.ended[stage.0]);
        // What does not fit waits for the timer.
        if counted == self.counted.stages[stage.0] || changes.len() >= MAX_BATCH_OPS {
            return;
        }
        self.counted.stages[stage.0] = counted;
        let open = counters.accepted.cast_signed() - counted.1;
        let key = RecordKey::Counts(self.plan.stage(stage).name.clone());
        let mut numbers = counters.to_numbers().to_vec();
        numbers.push(u64::try_from(open).unwrap_or(0));
        let record = Record::Counts(numbers);
        changes.push((key, Change::put(record)));
    }

    fn write_totals(&mut self, changes: &mut Vec<(RecordKey, Change)>) {
        let totals = self.totals();
        if totals == self.counted.totals || changes.len() >= MAX_BATCH_OPS {
            return;
        }
        self.counted.totals = totals;
        let record = Record::Counts(totals.to_vec());
        changes.push((RecordKey::Totals, Change::put(record)));
    }

    /// Appends all counters that the log does not have.
    pub(super) fn flush_counts(&mut self) {
        let mut changes = Vec::new();
        for stage in 0..self.counters.len() {
            self.write_counts_of(StageIx(stage), &mut changes);
        }
        self.write_totals(&mut changes);
        if !changes.is_empty() {
            self.append(changes, Then::Nothing);
        }
    }

    /// Counters that have changed are written in a while, if nothing else takes them along.
    pub(super) fn arm_counts(&mut self) {
        if std::mem::take(&mut self.counted.wrong) {
            // The same number may be of other tasks: of one that the log has refused, and of one that
            // comes after the counters, and is counted again when the log is replayed.
            let unknown = Counters {
                accepted: u64::MAX,
                ..Counters::default()
            };
            self.counted.stages.fill((unknown, 0));
            self.flush_counts();
            return;
        }
        if self.counted.due {
            return;
        }
        let counters = self.counters.iter().zip(&self.counted.ended);
        let written = self.counted.stages.iter();
        let is_counted = counters
            .map(|(counters, ended)| (*counters, *ended))
            .eq(written.copied())
            && self.totals() == self.counted.totals;
        if is_counted {
            return;
        }
        self.counted.due = true;
        let due = self.now.mono.plus(WRITE_AFTER);
        self.timers.insert((due, Timer::Counts));
    }

    /// The timer has fired.
    pub(super) fn counts_due(&mut self) {
        self.counted.due = false;
        self.flush_counts();
    }

    /// The stage of the task that a record is about.
    fn stage_of_key(&self, key: &RecordKey) -> Option<StageIx> {
        match key {
            RecordKey::Task(id)
            | RecordKey::Done(id)
            | RecordKey::Dead(id)
            | RecordKey::Tries(id) => self.stage_of(id),
            _ => None,
        }
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

// === impl Counted ===

impl Counted {
    pub(super) fn new(stages: usize) -> Self {
        Self {
            stages: vec![(Counters::default(), 0); stages],
            ended: vec![0; stages],
            totals: [0; 3],
            due: false,
            wrong: false,
        }
    }
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
}
