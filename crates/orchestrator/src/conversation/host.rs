//! Messages between the core and hosts, which keep partitions of collectors.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::collector::PartitionRef;
use crate::grouping::{Member, OfferDecision, OverdueDecision};
use crate::id::{TaskId, WorkerId};
use crate::plan::StageIx;

/// An event at a host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum HostEvent {
    /// A host offers to keep partitions of collectors. Joining again replaces the earlier offer.
    Join(HostJoin),
    /// A host is alive; sent every second.
    Heartbeat {
        /// The host.
        host: WorkerId,
    },
    /// A host leaves; its partitions pass to others.
    Leave {
        /// The host.
        host: WorkerId,
    },
    /// A host reports the decisions of its strategies.
    Verdicts(Verdicts),
}

/// A command of the core to a host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum HostCommand {
    /// The core does not know this host, which must join again.
    Unknown,
    /// A request about a partition.
    Request {
        /// Session of the host, see [`HostJoin::session`].
        session: u64,
        /// Number of the command in its session, from 1. A repeated command is ignored, and a missing one is
        /// noticed.
        number: u64,
        /// The partition.
        partition: PartitionRef,
        /// Distinguishes the partition's present state from earlier ones.
        epoch: u64,
        /// The request.
        request: HostRequest,
    },
}

/// A host's offer to keep partitions.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HostJoin {
    /// Name of the host.
    pub host: WorkerId,
    /// Number that differs from those of all other offers under this name. Messages of an earlier session are
    /// ignored, in both directions.
    pub session: u64,
    /// Collectors of which the host keeps partitions.
    pub stages: BTreeSet<StageIx>,
}

/// A request about a partition.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum HostRequest {
    /// Begin the partition anew, without messages.
    Begin,
    /// Offer a message to the partition's strategy.
    Offer(Member),
    /// Forget a message that came after its group had fired.
    Forget(TaskId),
    /// T_collect of the group with this key has passed.
    Overdue(String),
    /// Drop the partition: another host keeps it now.
    End,
}

/// A host's answers to requests, in the order of the requests.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Verdicts {
    /// Name of the host.
    pub host: WorkerId,
    /// Session of the host.
    pub session: u64,
    /// Number of the message in its session, from 1.
    pub number: u64,
    /// One for each [`HostRequest::Offer`] and [`HostRequest::Overdue`].
    pub verdicts: Vec<Verdict>,
}

/// A strategy's decision.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Verdict {
    /// The partition.
    pub partition: PartitionRef,
    /// Epoch of the partition's state, as in the request.
    pub epoch: u64,
    /// The decision.
    pub decision: Decision,
}

/// The decision itself, see [`Verdict`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Decision {
    /// About a message that was offered.
    Offered(TaskId, OfferDecision),
    /// About a group that was overdue.
    Overdue(OverdueDecision),
}

// === impl HostEvent ===

impl HostEvent {
    /// Name of the host.
    pub fn host(&self) -> &WorkerId {
        match self {
            Self::Join(join) => &join.host,
            Self::Verdicts(verdicts) => &verdicts.host,
            Self::Heartbeat { host } | Self::Leave { host } => host,
        }
    }

    /// Whether the event only shows that the host is alive, so that a later one replaces it.
    pub fn is_heartbeat(&self) -> bool {
        matches!(self, Self::Heartbeat { .. })
    }
}
