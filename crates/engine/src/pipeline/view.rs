//! The scheduler's state as shown to callers.

use std::collections::HashMap;

use super::results::Ended;
use super::scheduler::Scheduler;
use crate::interface::{BudgetStatus, Error, JobId, JobView, Load, Owner, Status};

// === impl Scheduler ===

impl Scheduler {
    pub(super) fn view(&self, id: JobId) -> Result<JobView, Error> {
        if let Some(job) = self.jobs.get(id) {
            let held = held_by_jobs(&self.residency.budget().status());
            return Ok(job.view(held.get(&id).copied().unwrap_or(0)));
        }
        let ended = self.results.get(id).map(Ended::view);
        ended.ok_or(Error::UnknownJob(id))
    }

    pub(super) fn load(&self) -> Load {
        Load {
            jobs: self.jobs.count() as u64,
            draining: self.draining,
        }
    }

    pub(super) fn status(&self) -> Status {
        let mut budget = self.residency.budget().status();
        let held = held_by_jobs(&budget);
        let (circuits, evictions) = self.residency.views();
        budget.evictions = evictions;
        let mut jobs: Vec<_> = self.jobs.iter().collect();
        jobs.sort_unstable_by_key(|(_, job)| job.arrival());
        Status {
            uptime_us: self.env.events.now(),
            started_ms: self.env.events.started_ms(),
            draining: self.draining,
            jobs: jobs
                .into_iter()
                .map(|(id, job)| job.view(held.get(&id).copied().unwrap_or(0)))
                .collect(),
            recent: self.results.recent().map(Ended::view).collect(),
            counts: self.counters.counts(),
            stages: self.stage_queues.status(),
            devices: self.devices.status(),
            budget,
            circuits,
        }
    }
}

/// Bytes that each job's partitions hold.
fn held_by_jobs(budget: &BudgetStatus) -> HashMap<JobId, u64> {
    let mut held = HashMap::new();
    for used in &budget.owners {
        if let Owner::Partition(job, _) = used.owner {
            *held.entry(job).or_default() += used.bytes;
        }
    }
    held
}
