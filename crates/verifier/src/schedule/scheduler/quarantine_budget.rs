//! The time that the quarantine lane may take while others are served.

use std::sync::Arc;

use crate::schedule::{Lane, Micros};

/// While the trusted lane has work, the quarantine lane gets one part in this many of the time of all threads. The
/// low priority of its threads is not enough: they share caches, memory and often the units of a core with the
/// other threads, and a job every hundred milliseconds shows in the trusted lane's 99th percentile.
const QUARANTINE_SHARE_DIVISOR: u64 = 400;

/// Microseconds after the last request of a source in good standing for which others count as served: who
/// comes at a steady rate is away for a while between two proofs.
const ABSENCE_US: u64 = 100_000;

/// The budget of the quarantine lane.
#[derive(Debug, Default)]
pub(super) struct QuarantineBudget {
    /// Running jobs in each lane.
    running: [usize; 2],
    /// The time at which the quarantine lane has made up for its last jobs.
    rests_until: Micros,
    /// The last request of a source that is in good standing now.
    others_seen: Option<Micros>,
    /// The source in the trusted lane that sent the last request there, and the last one other than that.
    recent: [Option<(Micros, Arc<str>)>; 2],
}

// === impl QuarantineBudget ===

impl QuarantineBudget {
    /// A source in good standing sends a request.
    pub(super) fn see(&mut self, now: Micros, name: &Arc<str>) {
        self.others_seen = Some(now);
        let is_last = matches!(&self.recent[0], Some((_, last)) if last == name);
        if !is_last {
            self.recent.swap(0, 1);
        }
        self.recent[0] = Some((now, name.clone()));
    }

    /// The source in the trusted lane that sent the last request there before this one's, other than it.
    pub(super) fn other(&self, name: &Arc<str>) -> Option<Arc<str>> {
        let mut recent = self.recent.iter().flatten().map(|(_, other)| other);
        recent.find(|other| *other != name).cloned()
    }

    /// Whether a source other than this one was served in the trusted lane beside its last request.
    pub(super) fn serves_others(&self, name: &Arc<str>) -> bool {
        let now = self.others_seen.unwrap_or_default();
        let mut recent = self.recent.iter().flatten();
        recent.any(|(seen, other)| other != name && now.since(*seen) < ABSENCE_US)
    }

    /// Sources in good standing sent their last request then.
    pub(super) fn see_others(&mut self, last: Option<Micros>) {
        self.others_seen = last;
    }

    /// Whether a lane may begin a job.
    pub(super) fn allows(&self, now: Micros, lane: Lane) -> bool {
        lane == Lane::Trusted
            || !self.others_are_served(now)
            || (self.running[Lane::Quarantine as usize] == 0 && now >= self.rests_until)
    }

    /// Jobs under way in a lane, those that wait for a thread included.
    pub(super) fn running(&self, lane: Lane) -> usize {
        self.running[lane as usize]
    }

    /// A lane began a job.
    pub(super) fn begin(&mut self, lane: Lane) {
        self.running[lane as usize] += 1;
    }

    /// Records the end of a job of a lane, with its time of all threads.
    pub(super) fn end(&mut self, now: Micros, lane: Lane, taken_us: u64) {
        let running = &mut self.running[lane as usize];
        *running = running.saturating_sub(1);
        if lane == Lane::Quarantine && self.others_are_served(now) {
            let rest_us = taken_us.saturating_mul(QUARANTINE_SHARE_DIVISOR);
            self.rests_until = Micros(self.rests_until.max(now).0.saturating_add(rest_us));
        }
    }

    /// The time at which the quarantine lane may go on; `None` if it may now, or if it depends on the end of a job.
    pub(super) fn next_turn(&self, now: Micros) -> Option<Micros> {
        let [trusted, quarantined] = self.running;
        let rested = (quarantined == 0).then_some(self.rests_until);
        let seen = self.others_seen.filter(|_| trusted == 0);
        let left = seen.map(|seen| Micros(seen.0.saturating_add(ABSENCE_US)));
        let turn = left.into_iter().chain(rested).min();
        turn.filter(|_| !self.allows(now, Lane::Quarantine))
    }

    fn others_are_served(&self, now: Micros) -> bool {
        let is_recent = |seen| now.since(seen) < ABSENCE_US;
        self.running[Lane::Trusted as usize] > 0 || self.others_seen.is_some_and(is_recent)
    }
}
