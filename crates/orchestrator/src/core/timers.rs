//! Timers: what is to be looked at, and when.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::event::Time;
use super::tasks::TaskNo;
use crate::id::WorkerId;
use crate::plan::StageIx;

/// A thing that is due. A timer that has nothing to do any more does nothing when it fires.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// The lease of the task, in this assignment, ends.
    Lease(TaskNo, u64),
    /// The task has waited for its backoff, or for the strategy that postponed it.
    Wake(TaskNo),
    /// Attempts at the task from before a restart are given up.
    Lost(TaskNo),
    /// Attempts have lasted long enough to be recorded.
    Begun,
    /// A task of the stage has lasted long enough to be hedged.
    Hedge(StageIx),
    /// The deadline of the block that a slot begins with passes.
    Slot(u64),
    /// The time of a collector's group with this key is up.
    Overdue(StageIx, Arc<str>),
    /// The worker may have been silent for long.
    Silent(WorkerId),
    /// The host owes verdicts.
    Host(WorkerId),
    /// No more leases from before the restart are adopted.
    Adopted,
    /// Counters have changed and are to be written.
    Counts,
}

/// The timers that are set, earliest first; those of the same time in the order of [`Timer`].
#[derive(Default)]
pub(super) struct Timers {
    set: BTreeSet<(Time, Timer)>,
}

// === impl Timers ===

impl Timers {
    pub(super) fn set(&mut self, due: Time, timer: Timer) {
        self.set.insert((due, timer));
    }

    pub(super) fn cancel(&mut self, due: Time, timer: Timer) {
        self.set.remove(&(due, timer));
    }

    /// When the next one is due.
    pub(super) fn next(&self) -> Option<Time> {
        self.set.first().map(|(due, _)| *due)
    }

    /// The next one, if it is due by now, and when it was.
    pub(super) fn pop_due(&mut self, now: Time) -> Option<(Time, Timer)> {
        self.next().filter(|due| *due <= now)?;
        self.set.pop_first()
    }

    #[cfg(debug_assertions)]
    pub(super) fn is_set(&self, due: Time, timer: Timer) -> bool {
        self.set.contains(&(due, timer))
    }

    /// Whether a timer is set, at whatever time.
    #[cfg(debug_assertions)]
    pub(super) fn is_set_at_all(&self, timer: &Timer) -> bool {
        self.set.iter().any(|(_, other)| other == timer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_fire_in_order_and_not_before_they_are_due() {
        let mut timers = Timers::default();
        timers.set(Time(20), Timer::Adopted);
        timers.set(Time(10), Timer::Counts);
        timers.set(Time(10), Timer::Begun);
        timers.set(Time(15), Timer::Slot(3));
        timers.cancel(Time(15), Timer::Slot(3));
        assert_eq!(timers.next(), Some(Time(10)));
        assert_eq!(timers.pop_due(Time(9)), None);
        assert_eq!(timers.pop_due(Time(10)), Some((Time(10), Timer::Begun)));
        assert_eq!(timers.pop_due(Time(19)), Some((Time(10), Timer::Counts)));
        assert_eq!(timers.pop_due(Time(19)), None);
        assert!(timers.is_set(Time(20), Timer::Adopted) && !timers.is_set_at_all(&Timer::Slot(3)));
    }
}
