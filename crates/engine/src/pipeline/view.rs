//! The engine as others see it.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::device::Device;
use super::scheduler::Scheduler;
use crate::interface::{BudgetStatus, Error, JobId, JobView, Load, Owner, Status};

/// How often jobs end: what a client that is refused is told to wait.
#[derive(Default)]
pub(super) struct Pace {
    last: Option<Instant>,
    /// The time between two ends, averaged over about the last eight.
    between: Option<Duration>,
}

// === impl Pace ===

impl Pace {
    pub(super) fn one_ended(&mut self) {
        let now = Instant::now();
        if let Some(last) = self.last {
            let this = now - last;
            self.between = Some(
                self.between
                    .map_or(this, |between| (between * 7 + this) / 8),
            );
        }
        self.last = Some(now);
    }

    pub(super) fn until_one_ends(&self) -> Duration {
        let guess = self.between.unwrap_or(Duration::from_secs(1));
        guess.clamp(Duration::from_millis(100), Duration::from_secs(60))
    }
}

// === impl Scheduler ===

impl Scheduler {
    pub(super) fn view(&self, id: JobId) -> Result<JobView, Error> {
        if let Some(job) = self.jobs.get(&id) {
            let held = held_by_jobs(&self.residency.budget().status());
            return Ok(job.view(held.get(&id).copied().unwrap_or(0)));
        }
        let ended = self.ended.get(&id).map(super::job::Ended::view);
        ended.ok_or(Error::UnknownJob(id))
    }

    pub(super) fn load(&self) -> Load {
        Load {
            jobs: self.jobs.len() as u64,
            draining: self.draining,
        }
    }

    pub(super) fn status(&self) -> Status {
        let mut budget = self.residency.budget().status();
        let held = held_by_jobs(&budget);
        let (circuits, evictions) = self.residency.views();
        budget.evictions = evictions;
        let mut jobs: Vec<_> = self.jobs.iter().collect();
        jobs.sort_unstable_by_key(|(_, job)| job.arrival);
        let recent = self.expiring.iter().rev().take(self.recent);
        Status {
            uptime_us: self.env.events.now(),
            started_ms: self.env.events.started_ms(),
            draining: self.draining,
            jobs: jobs
                .into_iter()
                .map(|(id, job)| job.view(held.get(id).copied().unwrap_or(0)))
                .collect(),
            recent: recent
                .filter_map(|(_, id)| self.ended.get(id))
                .map(super::job::Ended::view)
                .collect(),
            counts: self.counts,
            stages: self.lanes.status(),
            devices: self.lanes.devices.iter().map(Device::status).collect(),
            budget,
            circuits,
        }
    }
}

/// The bytes that each job's partitions hold.
fn held_by_jobs(budget: &BudgetStatus) -> HashMap<JobId, u64> {
    let mut held = HashMap::new();
    for used in &budget.owners {
        if let Owner::Partition(job, _) = used.owner {
            *held.entry(job).or_default() += used.bytes;
        }
    }
    held
}
