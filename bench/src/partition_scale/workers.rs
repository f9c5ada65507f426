//! Workers, some of which are slow, and some of which die.

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use serde::Serialize;

/// Faults of workers.
#[derive(Clone, Debug, clap::Args, Serialize)]
pub(crate) struct Faults {
    /// Share of workers that are slow, from 0 to 1
    #[arg(long, default_value_t = 0.0)]
    pub(super) slow: f64,
    /// Times that a slow worker takes longer than the others
    #[arg(long, default_value_t = 3.0)]
    pub(super) slow_factor: f64,
    /// Share of workers that die, each at a random time of its first --deaths-within seconds of work, from 0 to 1
    #[arg(long, default_value_t = 0.0)]
    pub(super) deaths: f64,
    /// Seconds from the beginning of the commitments in which the workers that die do so
    #[arg(long, default_value_t = 60.0)]
    pub(super) deaths_within: f64,
    /// Seconds after which the task of a dead worker goes to another
    #[arg(long, default_value_t = 10.0)]
    pub(super) lease_s: f64,
    /// Seed of the choice of slow and dying workers
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
}

/// A worker: one core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Worker {
    /// Times that it takes longer than the constants say.
    pub(super) slowness: f64,
    /// Time of its death; infinity if it lives.
    pub(super) dies_at: f64,
    /// Seconds of keys that it must still load.
    pub(super) keys_s: f64,
}

/// The workers of a proof.
#[derive(Clone, Debug)]
pub(super) struct Workers {
    pub(super) all: Vec<Worker>,
}

// === impl Faults ===

impl Faults {
    /// No worker is slow or dies.
    pub(super) const NONE: Self = Self {
        slow: 0.0,
        slow_factor: 1.0,
        deaths: 0.0,
        deaths_within: 0.0,
        lease_s: 0.0,
        seed: 0,
    };

    pub(super) fn are_none(&self) -> bool {
        self.slow == 0.0 && self.deaths == 0.0
    }

    /// Refuses values that are no shares, factors or times.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        for (option, share) in [("--slow", self.slow), ("--deaths", self.deaths)] {
            anyhow::ensure!(
                (0.0..=1.0).contains(&share),
                "{option} is {share}: it is a share of the workers, from 0 to 1"
            );
        }
        anyhow::ensure!(
            self.slow_factor.is_finite() && self.slow_factor >= 1.0,
            "--slow-factor is {}: it must be 1 or more",
            self.slow_factor
        );
        for (option, seconds) in [
            ("--deaths-within", self.deaths_within),
            ("--lease-s", self.lease_s),
        ] {
            anyhow::ensure!(
                seconds.is_finite() && seconds >= 0.0,
                "{option} is {seconds}: it must be 0 or more"
            );
        }
        Ok(())
    }
}

// === impl Workers ===

impl Workers {
    /// So many workers. The same seed makes the same of them slow and dying; the two are chosen independently.
    pub(super) fn new(count: usize, faults: &Faults) -> Self {
        let healthy = Worker {
            slowness: 1.0,
            dies_at: f64::INFINITY,
            keys_s: 0.0,
        };
        let mut all = vec![healthy; count];
        let rng = &mut StdRng::seed_from_u64(faults.seed);
        for worker in chosen(count, faults.slow, rng) {
            all[worker].slowness = faults.slow_factor;
        }
        for worker in chosen(count, faults.deaths, rng) {
            all[worker].dies_at = rng.random::<f64>() * faults.deaths_within;
        }
        Self { all }
    }
}

/// A share of so many workers, rounded to the nearest whole number of them.
fn chosen(count: usize, share: f64, rng: &mut StdRng) -> Vec<usize> {
    let mut workers: Vec<usize> = (0..count).collect();
    workers.shuffle(rng);
    workers.truncate((count as f64 * share).round() as usize);
    workers
}
