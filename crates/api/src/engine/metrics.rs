//! The engine's metrics: its own counters, read at each scrape, and histograms made from its events.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use proofmill_engine::{Event, EventKind, JobId, JobState, Status};
use proofmill_telemetry::{Histograms, Kind, Page};

use crate::traces::add_metrics;

/// Histograms of durations.
#[derive(Debug)]
pub(crate) struct Durations {
    stages: Histograms,
    loads: Histograms,
    waits: Histograms,
    jobs: Histograms,
    /// Time of acceptance of each unfinished job, in microseconds since the engine began.
    accepted: Mutex<HashMap<JobId, u64>>,
}

// === impl Durations ===

impl Default for Durations {
    fn default() -> Self {
        Self {
            stages: Histograms::of_seconds(),
            loads: Histograms::of_seconds(),
            waits: Histograms::of_seconds(),
            jobs: Histograms::of_seconds(),
            accepted: Mutex::default(),
        }
    }
}

impl Durations {
    /// Observes the durations that an event completes.
    pub(crate) fn observe(&self, event: &Event) {
        match &event.kind {
            EventKind::Job {
                job,
                priority,
                state,
                ..
            } => {
                let mut accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
                let priority = ("priority", priority.name());
                let since = |at: u64| seconds(event.at_us.saturating_sub(at));
                match state {
                    JobState::Queued => {
                        accepted.insert(*job, event.at_us);
                    }
                    JobState::Running => {
                        if let Some(at) = accepted.get(job) {
                            self.waits.observe(&[priority], since(*at));
                        }
                    }
                    end => {
                        if let Some(at) = accepted.remove(job) {
                            let labels = [priority, ("outcome", end.name())];
                            self.jobs.observe(&labels, since(at));
                        }
                    }
                }
            }
            EventKind::Ended {
                span,
                stage,
                began_us,
                ..
            } => {
                let labels = [("circuit", &*span.circuit), ("stage", stage.name())];
                let duration_us = event.at_us.saturating_sub(*began_us);
                self.stages.observe(&labels, seconds(duration_us));
            }
            EventKind::Key {
                name,
                tier,
                began_us: Some(began_us),
                ..
            } => {
                let labels = [("circuit", &**name), ("tier", tier.name())];
                let duration_us = event.at_us.saturating_sub(*began_us);
                self.loads.observe(&labels, seconds(duration_us));
            }
            // Other events have no metric.
            _ => {}
        }
    }

    /// Forgets the unfinished jobs, since lost events may include their ends.
    pub(crate) fn missed(&self) {
        let mut accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        accepted.clear();
    }
}

/// The page of metrics.
pub(crate) fn page(status: &Status, durations: &Durations) -> String {
    let mut page = Page::new("proofmill_engine");
    let label = |key, value: &str| vec![(key, value.to_owned())];
    let single = |value: u64| vec![(Vec::new(), value as f64)];
    let counts = &status.counts;
    let outcomes = [
        ("done", counts.done),
        ("failed", counts.failed),
        ("cancelled", counts.cancelled),
        ("expired", counts.expired),
    ];
    let outcomes = outcomes.map(|(name, value)| (label("outcome", name), value as f64));
    page.add("jobs_ended", "Jobs at their end", Kind::Counter, outcomes);
    let counters = [
        ("jobs_accepted", "Jobs accepted", counts.accepted),
        (
            "jobs_repeated",
            "Submissions of jobs that were there",
            counts.repeated,
        ),
        (
            "jobs_refused",
            "Submissions refused for want of room",
            counts.refused,
        ),
        ("retries", "Partitions tried again", counts.retries),
        ("results_pruned", "Results that were pruned", counts.pruned),
        ("evictions", "Keys evicted", status.budget.evictions),
    ];
    for (name, help, value) in counters {
        page.add(name, help, Kind::Counter, single(value));
    }
    let gauges = [
        (
            "jobs_live",
            "Jobs that are not at their end",
            status.jobs.len() as u64,
        ),
        ("memory_budget_bytes", "The budget", status.budget.total),
        (
            "memory_used_bytes",
            "Reserved of the budget",
            status.budget.used,
        ),
        (
            "memory_peak_bytes",
            "The most ever reserved",
            status.budget.peak,
        ),
        (
            "memory_waiting_bytes",
            "Bytes waited for",
            status.budget.waiting_bytes,
        ),
        (
            "uptime_seconds",
            "Since the engine began",
            status.uptime_us / 1_000_000,
        ),
    ];
    for (name, help, value) in gauges {
        page.add(name, help, Kind::Gauge, single(value));
    }
    stages(&mut page, status);
    devices(&mut page, status);
    circuits(&mut page, status);
    page.add_histograms(
        "stage_seconds",
        "Time of a partition in a stage",
        &durations.stages,
    );
    page.add_histograms("key_load_seconds", "Time to load a key", &durations.loads);
    page.add_histograms(
        "job_wait_seconds",
        "From acceptance to the first stage",
        &durations.waits,
    );
    page.add_histograms("job_seconds", "From acceptance to the end", &durations.jobs);
    add_metrics(&mut page);
    page.render()
}

fn stages(page: &mut Page, status: &Status) {
    type Value = fn(&proofmill_engine::StageStatus) -> f64;
    let metrics: [(&str, &str, Kind, Value); 4] = [
        ("stage_busy", "Partitions in a stage", Kind::Gauge, |it| {
            it.busy.into()
        }),
        (
            "stage_queued",
            "Partitions before a stage",
            Kind::Gauge,
            |it| it.queued.into(),
        ),
        (
            "stage_partitions",
            "Partitions that left a stage",
            Kind::Counter,
            |it| it.ended as f64,
        ),
        (
            "stage_busy_seconds",
            "Time partitions spent in a stage",
            Kind::Counter,
            |it| seconds(it.busy_us),
        ),
    ];
    for (name, help, kind, value) in metrics {
        let each = status.stages.iter().map(|it| {
            let labels = vec![("stage", it.stage.name().to_owned())];
            (labels, value(it))
        });
        page.add(name, help, kind, each);
    }
}

fn devices(page: &mut Page, status: &Status) {
    type Value = fn(&proofmill_engine::DeviceStatus) -> f64;
    let metrics: [(&str, &str, Kind, Value); 6] = [
        (
            "device_busy",
            "Whether a device has a partition",
            Kind::Gauge,
            |it| u8::from(it.busy).into(),
        ),
        (
            "device_broken",
            "Whether a device is not used any more",
            Kind::Gauge,
            |it| u8::from(it.broken.is_some()).into(),
        ),
        (
            "device_busy_seconds",
            "Time a device worked",
            Kind::Counter,
            |it| seconds(it.busy_us),
        ),
        (
            "device_products",
            "Partitions a device finished",
            Kind::Counter,
            |it| it.products as f64,
        ),
        (
            "device_failures",
            "Attempts that failed on a device",
            Kind::Counter,
            |it| it.failures as f64,
        ),
        (
            "device_suspected",
            "Wrong proofs that a device is to blame for",
            Kind::Counter,
            |it| it.suspected as f64,
        ),
    ];
    for (name, help, kind, value) in metrics {
        let each = status
            .devices
            .iter()
            .map(|it| (vec![("device", it.name.clone())], value(it)));
        page.add(name, help, kind, each);
    }
}

fn circuits(page: &mut Page, status: &Status) {
    type Value = fn(&proofmill_engine::CircuitView) -> f64;
    let metrics: [(&str, &str, Kind, Value); 4] = [
        ("circuit_proofs", "Proofs delivered", Kind::Counter, |it| {
            it.proofs as f64
        }),
        (
            "circuit_loads",
            "Times a key was loaded",
            Kind::Counter,
            |it| it.loads as f64,
        ),
        (
            "circuit_evictions",
            "Times a key was evicted",
            Kind::Counter,
            |it| it.evictions as f64,
        ),
        (
            "circuit_bytes",
            "Bytes a key holds of the budget",
            Kind::Gauge,
            |it| it.bytes as f64,
        ),
    ];
    for (name, help, kind, value) in metrics {
        let each = status
            .circuits
            .iter()
            .map(|it| (vec![("circuit", it.name.clone())], value(it)));
        page.add(name, help, kind, each);
    }
}

fn seconds(microseconds: u64) -> f64 {
    microseconds as f64 / 1e6
}
