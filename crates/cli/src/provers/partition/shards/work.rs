//! The making of one shard.

use proofmill_aggregation::Srs;
use proofmill_aggregation::sharded::{LeaderMessage, Shard, ShardKey, Sharding};
use proofmill_partition::proof::distributed::ProvedParts;
use proofmill_partition::proof::{Index, PartitionCurve};
use serde::{Deserialize, Serialize};

/// One shard of an aggregation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::provers::partition) struct Share {
    /// The number of parts.
    pub(super) parts: u32,
    /// The number of shards.
    pub(super) shards: u32,
    /// The number of this shard, from 0.
    pub(super) shard: u32,
}

// === impl Share ===

impl Share {
    /// The division; a reason if there is none, or no such shard.
    pub(super) fn sharding(self) -> Result<Sharding, String> {
        let sharding = Sharding::new(self.parts as usize, self.shards as usize);
        let sharding = sharding.map_err(|error| error.to_string())?;
        match self.shard < self.shards {
            true => Ok(sharding),
            false => Err(format!("shard {} of {}", self.shard, self.shards)),
        }
    }
}

/// Makes a shard from its proved parts: gives `answer` the answer to each message, until there are no more messages or one
/// of them cannot be answered.
pub(in crate::provers::partition) fn make_shard<E: PartitionCurve>(
    index: &Index<E>,
    srs: &Srs<E>,
    share: Share,
    parts: &[u8],
    messages: impl Iterator<Item = Vec<u8>>,
    mut answer: impl FnMut(Vec<u8>),
) -> Result<(), String> {
    fn shown(error: impl std::error::Error) -> String {
        error.to_string()
    }
    let parts = ProvedParts::<E>::from_bytes(parts).map_err(shown)?;
    let (sharding, shard) = (share.sharding()?, share.shard as usize);
    let key = ShardKey::mirage(srs, index.parts().parts(), sharding, shard).map_err(shown)?;
    let mut shard = Shard::new(&key, parts.proofs(), parts.d()).map_err(shown)?;
    for bytes in messages {
        let message = LeaderMessage::from_bytes(&bytes).map_err(shown)?;
        answer(shard.receive(&message).map_err(shown)?.to_bytes());
    }
    Ok(())
}
