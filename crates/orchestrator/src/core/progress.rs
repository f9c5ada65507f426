//! Attempts that have just begun, and which of them are to be recorded.
//!
//! That an attempt has begun is recorded when it has lasted [`BRIEF`]: most attempts at a task of
//! milliseconds end before, and cost no record.

use std::collections::VecDeque;
use std::time::Duration;

use super::event::Time;
use super::tasks::TaskNo;

/// An attempt that has lasted for less is not recorded as begun.
const BRIEF: Duration = Duration::from_millis(100);

/// What the log does not say yet of attempts.
#[derive(Default)]
pub(super) struct Progress {
    /// Tasks at which attempts have begun of which nothing is recorded, and when that is due; earliest
    /// first. There is a timer while there are any.
    brief: VecDeque<(Time, TaskNo)>,
    /// Those of them that have lasted long enough.
    lasting: Vec<TaskNo>,
    /// Among the actions of this event, the assignments that wait for the record that they have begun.
    careful: Vec<usize>,
}

// === impl Progress ===

impl Progress {
    /// An attempt at a task has begun. Returns when a timer is to fire, if none is set.
    pub(super) fn begin(&mut self, no: TaskNo, now: Time) -> Option<Time> {
        let due = now.plus(BRIEF);
        let is_first = self.brief.is_empty();
        self.brief.push_back((due, no));
        is_first.then_some(due)
    }

    /// The timer has fired. Attempts that will soon have lasted long enough are recorded with those that
    /// have: one append is cheaper than two. Returns when the timer is to fire again, if it is.
    pub(super) fn ripen(&mut self, now: Time) -> Option<Time> {
        let soon = now.plus(BRIEF / 4);
        while let Some((due, no)) = self.brief.pop_front() {
            if due > soon {
                self.brief.push_front((due, no));
                return Some(due);
            }
            self.lasting.push(no);
        }
        None
    }

    /// Whether attempts have lasted long enough to be recorded.
    pub(super) fn has_lasting(&self) -> bool {
        !self.lasting.is_empty()
    }

    /// The tasks of those, since this was asked last.
    pub(super) fn take_lasting(&mut self) -> Vec<TaskNo> {
        std::mem::take(&mut self.lasting)
    }

    /// An assignment, which is the action of this number, waits for the record that it has begun.
    pub(super) fn wait_for_record(&mut self, action: usize) {
        self.careful.push(action);
    }

    /// Whether an assignment waits for its record.
    pub(super) fn is_awaited(&self) -> bool {
        !self.careful.is_empty()
    }

    /// The actions that wait for their record.
    pub(super) fn take_waiting(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.careful)
    }

    /// `is_set` tells whether the timer is set for then.
    #[cfg(debug_assertions)]
    pub(super) fn check(&self, is_set: impl Fn(Time) -> bool) -> Result<(), String> {
        if !self.brief.iter().is_sorted_by_key(|(due, _)| *due) {
            return Err("attempts that have begun are out of order".to_owned());
        }
        match self.brief.front() {
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
        assert_eq!(progress.ripen(ms(100)), Some(ms(160)));
        assert_eq!(progress.take_lasting(), [task(1), task(2)]);
        assert_eq!(progress.check(|due| due == ms(160)), Ok(()));
        assert_eq!(progress.ripen(ms(160)), None);
        assert!(progress.has_lasting());
    }
}
