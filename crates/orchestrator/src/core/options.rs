//! Settings of a core that are not part of the workflow file.

use std::time::Duration;

use super::history::HistoryOptions;
use super::tag::LEASE_KEY_BYTES;
use crate::plan::PoolPlan;

/// Settings of a core that are not part of the workflow file.
#[derive(Clone, Default)]
pub struct CoreOptions {
    /// Time after [`Core::start`](super::Core::start) during which heartbeats of workers that still hold
    /// leases of an earlier coordinator are awaited, and nothing is leased. Zero if no worker outlives the
    /// coordinator.
    pub adopt_grace: Duration,
    /// Assignment of messages to the partitions of a collector.
    pub routing: Routing,
    /// Key for tagging leases, used if the log has none: random bytes. The caller must record it in the log
    /// if leases outlive the process.
    pub fresh_lease_key: [u8; LEASE_KEY_BYTES],
    /// Limits of the history of blocks.
    pub history: HistoryOptions,
    /// Whether to make reports for traces ([`Action::Trace`](super::Action::Trace)).
    pub traces: bool,
    /// Pools of workers whose wanted number is computed; nothing is computed if there are none.
    pub pools: Vec<PoolPlan>,
}

impl std::fmt::Debug for CoreOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The lease key is secret and not shown.
        f.debug_struct("CoreOptions")
            .field("adopt_grace", &self.adopt_grace)
            .field("routing", &self.routing)
            .field("history", &self.history)
            .field("traces", &self.traces)
            .field("pools", &self.pools)
            .finish_non_exhaustive()
    }
}

/// Assignment of messages to the partitions of a collector, if hosts keep them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Routing {
    /// All messages of a group go to one partition.
    #[default]
    Affine,
    /// Messages go to the hosts in turn, so that the messages of a group do not meet. For an experiment that
    /// demonstrates this.
    RoundRobin,
}
