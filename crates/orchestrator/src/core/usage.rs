//! The use that is made of a worker: the share of time in which it has an assignment, and the ends of its attempts.

use std::time::Duration;

use super::event::Time;
use crate::traces::AttemptEnd;

/// Length of a window. The share is of the present window and the one before it, so of five to ten minutes.
const WINDOW: Duration = Duration::from_secs(300);

/// Use of a worker, since it joined.
#[derive(Clone, Debug)]
pub(super) struct Usage {
    /// Beginning of the present window.
    began: Time,
    /// Time with an assignment in the present window, until `busy_since`.
    busy: Duration,
    /// Beginning of the present stretch with an assignment, not before `began`.
    busy_since: Option<Time>,
    /// Time with an assignment in the window before; `None` in the first window.
    before: Option<Duration>,
    completed: u64,
    failed: u64,
}

// === impl Usage ===

impl Usage {
    /// Of a worker without assignments, that joins now.
    pub(super) fn new(now: Time) -> Self {
        Self {
            began: now,
            busy: Duration::ZERO,
            busy_since: None,
            before: None,
            completed: 0,
            failed: 0,
        }
    }

    /// Attempts that the worker completed.
    pub(super) fn completed(&self) -> u64 {
        self.completed
    }

    /// Attempts that failed at the worker.
    pub(super) fn failed(&self) -> u64 {
        self.failed
    }

    /// Counts the end of an attempt.
    pub(super) fn count(&mut self, end: &AttemptEnd) {
        match end {
            AttemptEnd::Completed => self.completed += 1,
            AttemptEnd::Failed { .. } => self.failed += 1,
            AttemptEnd::Released | AttemptEnd::Cancelled => {}
        }
    }

    /// Notes whether the worker has an assignment from now on.
    pub(super) fn note(&mut self, is_busy: bool, now: Time) {
        self.advance(now);
        match (self.busy_since, is_busy) {
            (None, true) => self.busy_since = Some(now),
            (Some(since), false) => {
                self.busy += since.until(now);
                self.busy_since = None;
            }
            (None, false) | (Some(_), true) => {}
        }
    }

    /// Share of time with an assignment, in percent.
    pub(super) fn busy_percent(&self, now: Time) -> u8 {
        let mut at = self.clone();
        at.advance(now);
        let busy = at.busy + at.ongoing(now) + at.before.unwrap_or_default();
        let seen = at.began.until(now) + at.before.map_or(Duration::ZERO, |_| WINDOW);
        if seen.is_zero() {
            return 0;
        }
        (100.0 * busy.as_secs_f64() / seen.as_secs_f64()).round() as u8
    }

    /// Begins a new window if the present one has ended.
    fn advance(&mut self, now: Time) {
        let windows = self.began.until(now).as_micros() / WINDOW.as_micros();
        let Some(skipped) = u32::try_from(windows).unwrap_or(u32::MAX).checked_sub(1) else {
            return;
        };
        let end = self.began.plus(WINDOW);
        let busy = self.busy + self.ongoing(end);
        self.before = Some(match (skipped, self.busy_since) {
            (0, _) => busy,
            (_, Some(_)) => WINDOW,
            (_, None) => Duration::ZERO,
        });
        self.began = end.plus(WINDOW.saturating_mul(skipped));
        self.busy = Duration::ZERO;
        self.busy_since = self.busy_since.map(|_| self.began);
    }

    /// Time with an assignment that `busy` does not have yet.
    fn ongoing(&self, until: Time) -> Duration {
        self.busy_since
            .map_or(Duration::ZERO, |since| since.until(until))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(seconds: u64) -> Time {
        Time(seconds * 1_000_000)
    }

    #[test]
    fn ends_are_counted() {
        let mut usage = Usage::new(at(0));
        let failed = AttemptEnd::Failed {
            reason: "no".into(),
            exit: None,
            permanent: false,
        };
        for end in [
            AttemptEnd::Completed,
            failed,
            AttemptEnd::Released,
            AttemptEnd::Cancelled,
        ] {
            usage.count(&end);
        }
        assert_eq!((usage.completed(), usage.failed()), (1, 1));
    }

    #[test]
    fn a_new_worker_is_not_busy_and_an_old_one_is_as_it_was_lately() {
        let mut usage = Usage::new(at(7));
        assert_eq!(usage.busy_percent(at(7)), 0);
        usage.note(true, at(7));
        assert_eq!(usage.busy_percent(at(8)), 100);
        usage.note(false, at(17));
        assert_eq!(usage.busy_percent(at(27)), 50);
        // Ten hours later nothing of it counts.
        assert_eq!(usage.busy_percent(at(36_000)), 0);
        usage.note(true, at(36_000));
        assert_eq!(usage.busy_percent(at(72_000)), 100);
    }

    proptest! {
        /// The share agrees with that of every second, looked at one by one.
        #[test]
        fn the_share_agrees_with_a_look_at_each_second(
            stretches in proptest::collection::vec((0u64..900, any::<bool>()), 1..20),
        ) {
            let mut usage = Usage::new(at(0));
            let mut seconds: Vec<bool> = Vec::new();
            for (length, is_busy) in stretches {
                usage.note(is_busy, at(seconds.len() as u64));
                seconds.extend(std::iter::repeat_n(is_busy, length as usize));
            }
            let now = seconds.len() as u64;
            let window = WINDOW.as_secs();
            let from = (now / window).saturating_sub(1) * window;
            let seen = &seconds[from as usize..];
            let busy = seen.iter().filter(|busy| **busy).count() as f64;
            let wanted = match seen.len() {
                0 => 0.0,
                seen => (100.0 * busy / seen as f64).round(),
            };
            prop_assert_eq!(f64::from(usage.busy_percent(at(now))), wanted);
        }
    }
}
