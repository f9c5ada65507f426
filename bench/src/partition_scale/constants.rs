//! The times and sizes that the simulation is given.

use serde::Serialize;

/// Times in seconds on one core, and sizes in bytes. Each default is for a part of just under 2¹⁶ constraints over BN254;
/// `docs/large-circuits.md` says where it comes from.
#[derive(Clone, Debug, clap::Args, Serialize)]
pub(crate) struct Constants {
    /// Constraints of a part
    #[arg(long, default_value_t = 64_800)]
    pub(super) constraints: u64,
    /// Seconds in which the leader traces a part: one part after the other, before any is committed to
    #[arg(long, default_value_t = 0.005_5)]
    pub(super) trace_s: f64,
    /// Seconds in which a worker commits to a part
    #[arg(long, default_value_t = 0.009)]
    pub(super) commit_s: f64,
    /// Seconds of the challenge for each part, on the leader
    #[arg(long, default_value_t = 0.000_05)]
    pub(super) challenge_s: f64,
    /// Seconds in which a worker proves a part
    #[arg(long, default_value_t = 0.49)]
    pub(super) prove_s: f64,
    /// Seconds of the aggregation for each part, on one core
    #[arg(long, default_value_t = 0.001_28)]
    pub(super) aggregate_s: f64,
    /// Cores that share the aggregation; there are no more than workers
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) shards: u32,
    /// Share of the aggregation that stays on the leader, from 0 to 1
    #[arg(long, default_value_t = 0.02)]
    pub(super) aggregate_serial: f64,
    /// Seconds of the coordinator for each task that a worker pulls; one task after the other
    #[arg(long, default_value_t = 0.000_027)]
    pub(super) dispatch_s: f64,
    /// Seconds between a worker's request and its task, without the coordinator's own
    #[arg(long, default_value_t = 0.000_5)]
    pub(super) latency_s: f64,
    /// Classes of parts
    #[arg(long, default_value_t = 3)]
    pub(super) classes: u32,
    /// Seconds in which a worker loads the key of a class, before its first task
    #[arg(long, default_value_t = 0.1)]
    pub(super) key_load_s: f64,
    /// Bytes between the leader and a worker for a commitment: the task and its result
    #[arg(long, default_value_t = 1_600.0)]
    pub(super) commit_bytes: f64,
    /// Bytes between the leader and a worker for a proof: the task and its result
    #[arg(long, default_value_t = 4_800.0)]
    pub(super) prove_bytes: f64,
    /// Bytes a second of the leader's network
    #[arg(long, default_value_t = 1.25e9)]
    pub(super) bandwidth: f64,
}

// === impl Constants ===

impl Constants {
    /// Nothing takes any time.
    #[cfg(test)]
    pub(super) const NONE: Self = Self {
        constraints: 1,
        trace_s: 0.0,
        commit_s: 0.0,
        challenge_s: 0.0,
        prove_s: 0.0,
        aggregate_s: 0.0,
        shards: 1,
        aggregate_serial: 0.0,
        dispatch_s: 0.0,
        latency_s: 0.0,
        classes: 1,
        key_load_s: 0.0,
        commit_bytes: 0.0,
        prove_bytes: 0.0,
        bandwidth: 1.0,
    };

    /// Refuses values that are no times or sizes.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let times_and_sizes = [
            ("--trace-s", self.trace_s),
            ("--commit-s", self.commit_s),
            ("--challenge-s", self.challenge_s),
            ("--prove-s", self.prove_s),
            ("--aggregate-s", self.aggregate_s),
            ("--aggregate-serial", self.aggregate_serial),
            ("--dispatch-s", self.dispatch_s),
            ("--latency-s", self.latency_s),
            ("--key-load-s", self.key_load_s),
            ("--commit-bytes", self.commit_bytes),
            ("--prove-bytes", self.prove_bytes),
        ];
        for (option, value) in times_and_sizes {
            anyhow::ensure!(
                value.is_finite() && value >= 0.0,
                "{option} is {value}: it must be 0 or more"
            );
        }
        anyhow::ensure!(
            self.aggregate_serial <= 1.0,
            "--aggregate-serial is {}: it is a share, from 0 to 1",
            self.aggregate_serial
        );
        anyhow::ensure!(
            self.bandwidth.is_finite() && self.bandwidth > 0.0,
            "--bandwidth is {}: it must be more than 0",
            self.bandwidth
        );
        Ok(())
    }

    /// Seconds of all keys of a worker.
    pub(super) fn keys_s(&self) -> f64 {
        f64::from(self.classes) * self.key_load_s
    }

    /// Seconds of the aggregation of so many parts by so many workers.
    pub(super) fn aggregation_s(&self, parts: usize, workers: usize) -> f64 {
        let shards = workers.min(self.shards as usize) as f64;
        let share = self.aggregate_serial + (1.0 - self.aggregate_serial) / shards;
        parts as f64 * self.aggregate_s * share
    }
}
