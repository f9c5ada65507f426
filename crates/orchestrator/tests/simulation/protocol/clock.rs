//! Clocks of processes, each with its own origin and rate.

use proofmill_orchestrator::core::{Now, Time};

use crate::rng::Rng;

/// A clock that shows `origin + rate * t` at the world's time `t`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin_us: u64,
    /// Rate, in thousandths of the world's time.
    rate: u64,
}

impl Clock {
    pub(crate) fn new(rng: &mut Rng) -> Self {
        Self {
            origin_us: rng.within(0, 1_000_000_000),
            rate: rng.within(900, 1_100),
        }
    }

    pub(crate) fn time(self, world_ms: u64) -> Time {
        Time(self.origin_us + world_ms * self.rate)
    }

    pub(crate) fn now(self, world_ms: u64) -> Now {
        Now {
            mono: self.time(world_ms),
            wall_ms: self.time(world_ms).0 / 1000,
        }
    }

    /// First millisecond of the world at which the clock shows this time or a later one.
    pub(crate) fn world_ms(self, time: Time) -> u64 {
        time.0.saturating_sub(self.origin_us).div_ceil(self.rate)
    }
}
