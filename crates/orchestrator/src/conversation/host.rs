//! The conversation with hosts, which keep partitions of collectors.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::collector::{Member, Outcome, Overdue, PartitionRef};
use crate::id::{TaskId, WorkerId};
use crate::plan::StageIx;

/// Something that happened at a host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum HostEvent {
    /// A host offers to keep partitions of collectors. Joining again replaces the earlier offer.
    Join(HostJoin),
    /// A host is alive.
    Beat {
        /// The host.
        host: WorkerId,
    },
    /// A host is gone: others keep its partitions.
    Leave {
        /// The host.
        host: WorkerId,
    },
    /// A host has decided.
    Verdicts(Verdicts),
}

/// What the core has a host do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum HostCommand {
    /// The core does not know this host: join again.
    Unknown,
    /// Something to do.
    Do {
        /// Of the host.
        session: u64,
        /// Counts what is said in a session, from 1: what is heard twice is done once, and what is
        /// lost is noticed.
        number: u64,
        /// In which partition.
        at: PartitionRef,
        /// Tells the partition's present state from those before it.
        epoch: u64,
        /// What.
        what: Do,
    },
}

/// A host's offer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HostJoin {
    /// Its name.
    pub host: WorkerId,
    /// Tells this offer from every other of this name. What was said in an earlier session counts
    /// no more, in either direction.
    pub session: u64,
    /// The collectors of which it keeps partitions.
    pub stages: BTreeSet<StageIx>,
}

/// Something that a host does in a partition.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Do {
    /// Begin the partition anew, without messages.
    Begin,
    /// Offer a message to its strategy.
    Offer(Member),
    /// The group of a message had fired before it came: it is removed.
    Forget(TaskId),
    /// T_collect of the group with this key has passed.
    Overdue(String),
    /// Another host keeps the partition now.
    End,
}

/// What a host says of what it was told to do, in that order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Verdicts {
    /// Which one.
    pub host: WorkerId,
    /// Its session.
    pub session: u64,
    /// Counts what it says in the session, from 1.
    pub number: u64,
    /// One for each [`Do::Offer`] and [`Do::Overdue`].
    pub verdicts: Vec<Verdict>,
}

/// What a strategy has decided.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Verdict {
    /// In which partition.
    pub at: PartitionRef,
    /// In which of its states.
    pub epoch: u64,
    /// What.
    pub what: Judged,
}

/// See [`Verdict`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Judged {
    /// Of a message that was offered.
    Offered(TaskId, Outcome),
    /// Of a group that was overdue.
    Overdue(Overdue),
}

// === impl HostEvent ===

impl HostEvent {
    /// The host that it happened at.
    pub fn host(&self) -> &WorkerId {
        match self {
            Self::Join(join) => &join.host,
            Self::Verdicts(verdicts) => &verdicts.host,
            Self::Beat { host } | Self::Leave { host } => host,
        }
    }

    /// Whether it is a sign of life and no more: a later one says all that it says.
    pub fn is_beat(&self) -> bool {
        matches!(self, Self::Beat { .. })
    }
}
