//! Shortage: whether a pool has lacked workers for long enough that its fallback pool is to be asked.
//!
//! The time without enough workers is added up, and the time with enough is subtracted. A pool whose workers come and
//! go, such as machines that are taken away again, therefore cannot put the fallback pool off for ever, and a moment
//! with enough workers does not send the fallback pool home.

use std::time::Duration;

use crate::core::event::Time;

/// The time that a pool has lacked workers.
#[derive(Default)]
pub(super) struct Shortage {
    /// Time without enough workers less the time with enough: from nothing to the limit.
    level: Duration,
    updated: Option<Time>,
    is_lacking: bool,
}

// === impl Shortage ===

impl Shortage {
    /// Notes whether workers are missing now. Returns whether the fallback pool is to be asked: from the moment the
    /// level has reached `limit` until it has gone down to nothing.
    pub(super) fn update(&mut self, now: Time, is_missing: bool, limit: Duration) -> bool {
        let passed = self
            .updated
            .map_or(Duration::ZERO, |before| before.until(now));
        self.updated = Some(now);
        self.level = match is_missing {
            true => self.level.saturating_add(passed).min(limit),
            false => self.level.saturating_sub(passed),
        };
        if self.level == limit && is_missing {
            self.is_lacking = true;
        } else if self.level.is_zero() {
            self.is_lacking = false;
        }
        self.is_lacking
    }

    /// The time that workers have been missing, up to the limit.
    pub(super) fn lasting(&self) -> Duration {
        self.level
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    fn at(shortage: &mut Shortage, second: u64, is_missing: bool) -> bool {
        shortage.update(Time(second * 1_000_000), is_missing, LIMIT)
    }

    #[test]
    fn the_fallback_is_asked_after_the_limit_and_until_the_pool_has_been_whole_as_long() {
        let mut shortage = Shortage::default();
        assert!(!at(&mut shortage, 0, true));
        assert!(!at(&mut shortage, 59, true));
        assert!(at(&mut shortage, 60, true));
        assert!(at(&mut shortage, 1_000, true));
        assert!(at(&mut shortage, 1_059, false));
        assert!(!at(&mut shortage, 1_060, false));
        assert!(!at(&mut shortage, 1_100, true));
    }

    #[test]
    fn workers_that_come_for_moments_do_not_put_the_fallback_off() {
        let mut shortage = Shortage::default();
        let mut asked_at = None;
        for second in 0..600 {
            // Of every 20 s the pool is whole for 5 s.
            if at(&mut shortage, second, second % 20 >= 5) {
                asked_at = asked_at.or(Some(second));
            } else {
                assert_eq!(asked_at, None, "asked, and sent home at {second}");
            }
        }
        assert!(asked_at.is_some_and(|second| second < 150), "{asked_at:?}");
    }
}
