//! Settings of a core that no workflow file holds.

use std::time::Duration;

use super::history::HistoryOptions;
use super::tag::LEASE_KEY_BYTES;

/// Settings of a core that no workflow file holds.
#[derive(Clone, Default)]
pub struct CoreOptions {
    /// The time after [`Core::start`](super::Core::start) to wait for the heartbeats of workers that
    /// still hold leases given by an earlier coordinator, before their tasks are leased again. Zero where
    /// no worker outlives the coordinator.
    pub adopt_grace: Duration,
    /// The way in which messages find the partition of a collector.
    pub routing: Routing,
    /// The key that leases are tagged with, if the log has none: random bytes, which whoever runs the
    /// core has recorded if leases outlive it.
    pub fresh_lease_key: [u8; LEASE_KEY_BYTES],
    /// Limits of the history of blocks.
    pub history: HistoryOptions,
}

impl std::fmt::Debug for CoreOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The key is not shown.
        f.debug_struct("CoreOptions")
            .field("adopt_grace", &self.adopt_grace)
            .field("routing", &self.routing)
            .field("history", &self.history)
            .finish_non_exhaustive()
    }
}

/// The way in which messages find the partition of a collector, where hosts keep them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Routing {
    /// All of a group go to one partition.
    #[default]
    Affine,
    /// One after the other to each host, whatever they belong to: groups do not come together. For
    /// an experiment that shows this.
    RoundRobin,
}
