//! Pending timers, by due time.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::event::Time;
use super::tasks::TaskNo;
use crate::id::WorkerId;
use crate::plan::StageIx;

/// Action that is due at a time. A timer whose action is no longer needed does nothing when it fires.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// A lease of the task may have ended; the number is the assignment's.
    Lease(TaskNo, u64),
    /// The backoff of the task, or its postponement by a strategy, is over.
    Wake(TaskNo),
    /// The task's attempts from before a restart are given up.
    Unconfirmed(TaskNo),
    /// Attempts have lasted long enough to be recorded.
    Begun,
    /// A task of the stage has run long enough to be hedged.
    Hedge(StageIx),
    /// The deadline of the slot that begins with this block passes.
    Slot(u64),
    /// T_collect of the collector's group with this key passes.
    Overdue(StageIx, Arc<str>),
    /// The worker may have been silent for too long.
    Silent(WorkerId),
    /// The host's verdict timeout must be checked: it owes verdicts.
    Host(WorkerId),
    /// The adoption of leases from before the restart ends.
    Adopted,
    /// Changed counters must be written.
    Counts,
    /// The wanted number of workers must be computed again.
    Scaling,
}

/// Timers that are set, earliest first; those with the same time in the order of [`Timer`].
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

    /// Time of the earliest timer.
    pub(super) fn next(&self) -> Option<Time> {
        self.set.first().map(|(due, _)| *due)
    }

    /// Removes and returns the earliest timer if it is due by `now`.
    pub(super) fn pop_due(&mut self, now: Time) -> Option<(Time, Timer)> {
        self.next().filter(|due| *due <= now)?;
        self.set.pop_first()
    }

    #[cfg(debug_assertions)]
    pub(super) fn is_set(&self, due: Time, timer: Timer) -> bool {
        self.set.contains(&(due, timer))
    }

    /// Whether the timer is set, for any time.
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
