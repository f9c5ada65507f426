//! One call of a client, from its first attempt to its answer.

use std::time::Duration;

use super::super::wire::CallBody;
use crate::core::Time;

/// Pause between two attempts while there is no leader.
const NO_LEADER_PAUSE: Duration = Duration::from_millis(50);

/// Pause after an attempt that could not be made.
const NOT_SENT_PAUSE: Duration = Duration::from_secs(2);

/// A call that has no answer yet.
pub(super) struct OpenCall {
    body: CallBody,
    timeout: Duration,
    /// Number of attempts begun so far, which is the number of the current one.
    attempt: u32,
    /// Term that the current attempt was made under.
    term: u64,
    /// Time of the next attempt, unless an answer comes first.
    next_attempt: Time,
    /// Whether an answer to the current attempt still counts.
    under_way: bool,
}

// === impl OpenCall ===

impl OpenCall {
    /// A call whose attempts may take `timeout` each. The first is due at once.
    pub(super) fn new(body: CallBody, timeout: Duration) -> Self {
        Self {
            body,
            timeout,
            attempt: 0,
            term: 0,
            next_attempt: Time(0),
            under_way: false,
        }
    }

    pub(super) fn body(&self) -> &CallBody {
        &self.body
    }

    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    pub(super) fn next_attempt(&self) -> Time {
        self.next_attempt
    }

    /// Begins an attempt under this term, and returns its number.
    pub(super) fn begin(&mut self, now: Time, term: u64) -> u32 {
        self.attempt += 1;
        self.term = term;
        self.under_way = true;
        self.next_attempt = now.plus(self.timeout);
        self.attempt
    }

    /// Whether this attempt is the current one, and not given up.
    pub(super) fn is_current(&self, attempt: u32) -> bool {
        self.under_way && self.attempt == attempt
    }

    /// The current attempt failed; the next is due after a pause.
    pub(super) fn failed(&mut self, now: Time, why: super::CallFailure) {
        self.under_way = false;
        self.next_attempt = match why {
            super::CallFailure::TimedOut => now,
            super::CallFailure::NoLeader => now.plus(NO_LEADER_PAUSE),
            super::CallFailure::NotSent => now.plus(NOT_SENT_PAUSE),
        };
    }

    /// A new leader was announced. If the current attempt was made under a known term, its leader
    /// is obsolete and the call is repeated at once.
    pub(super) fn leader_changed(&mut self, now: Time) {
        if self.under_way && self.term > 0 {
            self.under_way = false;
            self.next_attempt = now;
        }
    }
}
