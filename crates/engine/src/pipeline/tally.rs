//! Counters of jobs by outcome, and the rate at which jobs end.

use std::time::{Duration, Instant};

use crate::interface::{JobCounts, JobState};

/// Wait suggested to a refused client before two jobs have ended.
const DEFAULT_WAIT: Duration = Duration::from_secs(1);

/// Counts since the service began.
#[derive(Default)]
pub(super) struct Counters {
    counts: JobCounts,
    end_rate: EndRate,
}

/// The rate at which jobs end.
#[derive(Default)]
struct EndRate {
    last: Option<Instant>,
    /// Time between two ends, averaged over about the last eight.
    between: Option<Duration>,
}

// === impl Counters ===

impl Counters {
    /// Counts a job that was accepted, or restored from the log.
    pub(super) fn accepted(&mut self) {
        self.counts.accepted += 1;
    }

    /// Counts a submission that was answered with an existing job.
    pub(super) fn repeated(&mut self) {
        self.counts.repeated += 1;
    }

    /// Counts a submission that was refused for lack of room.
    pub(super) fn refused(&mut self) {
        self.counts.refused += 1;
    }

    /// Counts another attempt at a partition.
    pub(super) fn retried(&mut self) {
        self.counts.retries += 1;
    }

    /// Counts a result that was removed.
    pub(super) fn pruned(&mut self) {
        self.counts.pruned += 1;
    }

    /// Counts a job that ended in `state` at the time `now`.
    pub(super) fn ended(&mut self, state: &JobState, now: Instant) {
        *match state {
            JobState::Done => &mut self.counts.done,
            JobState::Cancelled => &mut self.counts.cancelled,
            JobState::Expired => &mut self.counts.expired,
            _ => &mut self.counts.failed,
        } += 1;
        self.end_rate.record_end(now);
    }

    pub(super) fn counts(&self) -> JobCounts {
        self.counts
    }

    /// Estimated time until a job ends: the wait suggested to a refused client, from 100 ms to 60 s.
    pub(super) fn estimated_wait(&self) -> Duration {
        let guess = self.end_rate.between.unwrap_or(DEFAULT_WAIT);
        guess.clamp(Duration::from_millis(100), Duration::from_secs(60))
    }
}

// === impl EndRate ===

impl EndRate {
    fn record_end(&mut self, now: Instant) {
        if let Some(last) = self.last {
            let this = now - last;
            self.between = Some(
                self.between
                    .map_or(this, |between| (between * 7 + this) / 8),
            );
        }
        self.last = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_counted_by_their_state() {
        let mut counters = Counters::default();
        let now = Instant::now();
        for state in [
            JobState::Done,
            JobState::Done,
            JobState::Failed("why".to_owned()),
            JobState::Cancelled,
            JobState::Expired,
        ] {
            counters.ended(&state, now);
        }
        let counts = counters.counts();
        assert_eq!((counts.done, counts.failed), (2, 1));
        assert_eq!((counts.cancelled, counts.expired), (1, 1));
    }

    #[test]
    fn clients_wait_for_about_as_long_as_a_job_takes() {
        let mut counters = Counters::default();
        assert_eq!(counters.estimated_wait(), DEFAULT_WAIT);
        let start = Instant::now();
        for seconds in [0, 8, 16] {
            counters.ended(&JobState::Done, start + Duration::from_secs(seconds));
        }
        assert_eq!(counters.estimated_wait(), Duration::from_secs(8));
        // Clamped at both ends.
        counters.ended(&JobState::Done, start + Duration::from_secs(100_000));
        assert_eq!(counters.estimated_wait(), Duration::from_secs(60));
        let mut quick = Counters::default();
        quick.ended(&JobState::Done, start);
        quick.ended(&JobState::Done, start);
        assert_eq!(quick.estimated_wait(), Duration::from_millis(100));
    }
}
