//! Time of the next call: the site's limits, and waits after failures.

use std::collections::VecDeque;
use std::time::Duration;

/// Window of the site's limiter.
const MINUTE_MS: u64 = 60_000;

/// Wait after a failed call; each further one is twice as long, up to [`WAIT_MAX_MS`].
const WAIT_MIN_MS: u64 = 1_000;

/// Longest wait after failed calls: an outage costs one call a minute.
const WAIT_MAX_MS: u64 = 60_000;

/// Wait after a refusal that only a person can end.
const MISCONFIGURED_MS: u64 = 60_000;

/// The limits on calls as a whole: those of the site's limiter, and waits after failures.
#[derive(Debug)]
pub(crate) struct Pace {
    per_minute: usize,
    /// Most calls in a minute now: fewer after the site's limiter has asked for a pause, and then more again.
    allowed: usize,
    /// Calls that succeeded since `allowed` changed.
    succeeded: usize,
    /// Times of the last calls, at most `per_minute`.
    made_ms: VecDeque<u64>,
    /// End of the wait after a failure; a success ends it too.
    failed_until_ms: u64,
    /// End of the pause that the site asked for.
    limited_until_ms: u64,
    failures: u32,
}

// === impl Pace ===

impl Pace {
    pub(crate) fn new(per_minute: u32) -> Self {
        let per_minute = per_minute.max(1) as usize;
        Self {
            per_minute,
            allowed: per_minute,
            succeeded: 0,
            made_ms: VecDeque::new(),
            failed_until_ms: 0,
            limited_until_ms: 0,
            failures: 0,
        }
    }

    /// Earliest time of the next call.
    pub(crate) fn due_ms(&self) -> u64 {
        let first = self.made_ms.len().checked_sub(self.allowed);
        let oldest = first.and_then(|first| self.made_ms.get(first));
        let limited_ms = oldest.map_or(0, |at_ms| at_ms.saturating_add(MINUTE_MS));
        limited_ms
            .max(self.failed_until_ms)
            .max(self.limited_until_ms)
    }

    /// Notes a call made now.
    pub(crate) fn called(&mut self, now_ms: u64) {
        self.made_ms.push_back(now_ms);
        while self.made_ms.len() > self.per_minute {
            self.made_ms.pop_front();
        }
    }

    /// Notes an answer that shows that the site works.
    pub(crate) fn succeeded(&mut self) {
        self.failures = 0;
        self.failed_until_ms = 0;
        self.succeeded += 1;
        // A minute's worth of them.
        if self.succeeded >= self.allowed && self.allowed < self.per_minute {
            self.allowed += 1;
            self.succeeded = 0;
        }
    }

    /// Notes a call without success.
    pub(crate) fn failed(&mut self, now_ms: u64) {
        self.failures = self.failures.saturating_add(1);
        self.wait(now_ms, wait_ms(self.failures));
    }

    /// Notes a refusal that only a person can end.
    pub(crate) fn misconfigured(&mut self, now_ms: u64) {
        self.failures = self.failures.saturating_add(1);
        self.wait(now_ms, MISCONFIGURED_MS);
    }

    /// Notes a pause that the site asks for. It is no failure.
    pub(crate) fn limited(&mut self, now_ms: u64, pause: Duration) {
        // Calls that were in flight together are refused together.
        if now_ms >= self.limited_until_ms {
            self.allowed = (self.allowed * 3 / 4).max(1);
            self.succeeded = 0;
        }
        let pause_ms = u64::try_from(pause.as_millis()).unwrap_or(MINUTE_MS);
        let until_ms = now_ms.saturating_add(pause_ms);
        self.limited_until_ms = self.limited_until_ms.max(until_ms);
    }

    /// Calls without success since the last one with it.
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }

    fn wait(&mut self, now_ms: u64, wait_ms: u64) {
        self.failed_until_ms = self.failed_until_ms.max(now_ms.saturating_add(wait_ms));
    }
}

/// Wait after this many failures in a row, from 1.
pub(crate) fn wait_ms(failures: u32) -> u64 {
    let doubled = failures.saturating_sub(1).min(16);
    (WAIT_MIN_MS << doubled).min(WAIT_MAX_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_minute_has_more_calls_than_allowed() {
        let mut pace = Pace::new(3);
        let mut times = Vec::new();
        let mut now_ms = 0;
        for _ in 0..10 {
            now_ms = pace.due_ms().max(now_ms + 5);
            pace.called(now_ms);
            times.push(now_ms);
        }
        for window in times.windows(4) {
            assert!(window[3] - window[0] >= MINUTE_MS, "{times:?}");
        }
    }

    #[test]
    fn a_stricter_limit_is_found() {
        let mut pace = Pace::new(60);
        for minute in 0..10 {
            pace.limited(minute * MINUTE_MS, Duration::from_secs(30));
            pace.limited(minute * MINUTE_MS + 5, Duration::from_secs(1));
        }
        assert_eq!(pace.allowed, 2);
        for _ in 0..10_000 {
            pace.succeeded();
        }
        assert_eq!(pace.allowed, 60);
    }

    #[test]
    fn waits_double_up_to_a_minute_and_end_with_a_success() {
        let mut pace = Pace::new(60);
        let mut waits = Vec::new();
        for _ in 0..9 {
            pace.failed(0);
            waits.push(pace.due_ms() / 1_000);
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        pace.succeeded();
        assert_eq!((pace.due_ms(), pace.failures()), (0, 0));
        pace.limited(1_000, Duration::from_secs(17));
        // Another call, made before, is answered after it.
        pace.succeeded();
        assert_eq!((pace.due_ms(), pace.failures()), (18_000, 0));
    }
}
