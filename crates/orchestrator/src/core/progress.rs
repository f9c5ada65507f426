//! Attempts that have just begun, and the choice of those to record.
//!
//! The beginning of an attempt is recorded once it has lasted for [`MIN_RECORDED`]. Most attempts at tasks of
//! milliseconds end earlier, and cost no record.

use std::collections::VecDeque;
use std::time::Duration;

use super::event::Time;
use super::tasks::TaskNo;

/// Duration below which an attempt is not recorded as begun.
const MIN_RECORDED: Duration = Duration::from_millis(100);

/// Attempts whose beginning the log does not have.
#[derive(Default)]
pub(super) struct Progress {
    /// Tasks with attempts that are not recorded as begun, each with the time at which the record is due,
    /// earliest first. A timer is set while there are any.
    short: VecDeque<(Time, TaskNo)>,
    /// Tasks with attempts that have lasted long enough to be recorded.
    due: Vec<TaskNo>,
    /// Indices, among this event's actions, of assignments that wait until their beginning is recorded.
    waiting: Vec<usize>,
}

// === impl Progress ===

impl Progress {
    /// Notes that an attempt at a task has begun. Returns the time for a timer, if none is set.
    pub(super) fn begin(&mut self, no: TaskNo, now: Time) -> Option<Time> {
        let due = now.plus(MIN_RECORDED);
        let is_first = self.short.is_empty();
        self.short.push_back((due, no));
        is_first.then_some(due)
    }

    /// Handles the timer. Attempts that will soon have lasted long enough are recorded with those that have:
    /// one append is cheaper than two. Returns the time at which the timer must fire again, if any.
    pub(super) fn collect_due(&mut self, now: Time) -> Option<Time> {
        let soon = now.plus(MIN_RECORDED / 4);
        while let Some((due, no)) = self.short.pop_front() {
            if due > soon {
                self.short.push_front((due, no));
                return Some(due);
            }
            self.due.push(no);
        }
        None
    }

    /// Whether there are attempts that have lasted long enough to be recorded.
    pub(super) fn has_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Takes the tasks of the attempts that have lasted long enough.
    pub(super) fn take_due(&mut self) -> Vec<TaskNo> {
        std::mem::take(&mut self.due)
    }

    /// Makes an assignment, given by the index of its action, wait until its beginning is recorded.
    pub(super) fn wait_for_record(&mut self, action: usize) {
        self.waiting.push(action);
    }

    /// Whether an assignment waits for its record.
    pub(super) fn is_awaited(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes the indices of the actions that wait for their record.
    pub(super) fn take_waiting(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.waiting)
    }

    /// `is_set` tells whether a timer is set for a time.
    #[cfg(debug_assertions)]
    pub(super) fn check(&self, is_set: impl Fn(Time) -> bool) -> Result<(), String> {
        if !self.short.iter().is_sorted_by_key(|(due, _)| *due) {
            return Err("attempts that have begun are out of order".to_owned());
        }
        match self.short.front() {
            Some((due, _)) if !is_set(*due) => Err("nothing records what has begun".to_owned()),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_recorded_when_they_have_lasted_and_those_that_soon_will_have_with_them() {
        let mut progress = Progress::default();
        let ms = |ms: u64| Time(ms * 1000);
        let task = TaskNo::new;
        assert_eq!(progress.begin(task(1), ms(0)), Some(ms(100)));
        assert_eq!(progress.begin(task(2), ms(20)), None);
        assert_eq!(progress.begin(task(3), ms(60)), None);
        assert_eq!(progress.collect_due(ms(100)), Some(ms(160)));
        assert_eq!(progress.take_due(), [task(1), task(2)]);
        assert_eq!(progress.check(|due| due == ms(160)), Ok(()));
        assert_eq!(progress.collect_due(ms(160)), None);
        assert!(progress.has_due());
    }
}
