//! Partitions, and the rule that assigns them to hosts.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::identity::Identity;
use crate::plan::StageIx;

/// Number of partitions of a collector. It is fixed, so that any number of hosts can come and go: a message's
/// partition never changes, only the host that keeps it.
pub const PARTITIONS: usize = 64;

/// One partition of one collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PartitionRef {
    /// Stage of the collector.
    pub stage: StageIx,
    /// Number of the partition, below [`PARTITIONS`].
    pub number: usize,
}

/// Partition of the messages with this affinity
/// ([`StrategyFactory::affinity`](super::StrategyFactory::affinity)).
pub(crate) fn partition_of(affinity: &str) -> usize {
    let mut identity = Identity::new("proofmill partition 1");
    identity.text(affinity);
    (identity.finish_short() % PARTITIONS as u64) as usize
}

/// Host that keeps a partition, by rendezvous hashing. When a host goes, only its own partitions move; when
/// one comes, only those that it gets. `None` if there are no hosts.
pub(crate) fn host_of<'a>(
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

    fn assigned(hosts: &[Arc<str>]) -> Vec<Arc<str>> {
        let of = |partition| host_of("join", partition, hosts.iter()).cloned();
        (0..PARTITIONS).filter_map(of).collect()
    }

    #[test]
    fn only_what_must_moves() {
        let hosts: Vec<Arc<str>> = (0..7).map(|n| format!("host-{n}").into()).collect();
        for count in 1..7 {
            let (few, more) = (assigned(&hosts[..count]), assigned(&hosts[..=count]));
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
