//! Partitions, and what the core and the hosts that keep them say to each other.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Member, Outcome, Overdue};
use crate::id::{TaskId, WorkerId};
use crate::identity::Identity;
use crate::plan::StageIx;

/// Partitions of a collector. Fixed, so that hosts can come and go in any number: a message's
/// partition never changes, only who keeps it.
pub const PARTITIONS: usize = 64;

/// One partition of one collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PartitionRef {
    /// The collector.
    pub stage: StageIx,
    /// Which, below [`PARTITIONS`].
    pub number: usize,
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

/// What the core tells a host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ToHost {
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

/// The partition of messages with this in common.
pub(crate) fn partition_of(affinity: &str) -> usize {
    let mut identity = Identity::new("proofmill partition 1");
    identity.text(affinity);
    (identity.finish_short() % PARTITIONS as u64) as usize
}

/// Who keeps a partition, by rendezvous hashing: when a host goes only its own partitions move, and
/// when one comes only those that it gets.
pub(crate) fn keeper<'a>(
    stage: &str,
    partition: usize,
    hosts: impl Iterator<Item = &'a Arc<str>>,
) -> Option<&'a Arc<str>> {
    let weight = |host: &&Arc<str>| {
        let mut identity = Identity::new("proofmill keeper 1");
        identity.text(stage);
        identity.size(partition);
        identity.text(host);
        identity.finish_short()
    };
    hosts.max_by_key(weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keepers(hosts: &[Arc<str>]) -> Vec<Arc<str>> {
        let of = |partition| keeper("join", partition, hosts.iter()).cloned();
        (0..PARTITIONS).filter_map(of).collect()
    }

    #[test]
    fn only_what_must_moves() {
        let hosts: Vec<Arc<str>> = (0..7).map(|n| format!("host-{n}").into()).collect();
        for count in 1..7 {
            let (few, more) = (keepers(&hosts[..count]), keepers(&hosts[..=count]));
            assert_eq!(few.len(), PARTITIONS);
            let moved = few
                .iter()
                .zip(&more)
                .filter(|(before, after)| before != after);
            let mut to_the_new = 0;
            for (_, after) in moved {
                assert_eq!(*after, hosts[count], "with {count} hosts before");
                to_the_new += 1;
            }
            assert!(
                to_the_new > 0,
                "the last of {} hosts keeps nothing",
                count + 1
            );
        }
    }
}
