//! The leader of an aggregation whose shards workers make.

use proofmill_aggregation::sharded::{
    Leader, LeaderError, Progress, Shard, ShardKey, ShardMessage,
};
use proofmill_aggregation::{Aggregate, MirageStatement, Srs};
use proofmill_bus::Connection;
use proofmill_partition::proof::distributed::ProvedParts;
use proofmill_partition::proof::{Index, PartitionCurve};
use tokio::runtime::Handle;

use super::bus::BusNetwork;
use super::crew::{Crew, Network};

/// Leads aggregations over the workers of a bus.
#[derive(Clone)]
pub(in crate::provers::partition) struct Leaders {
    connection: Connection,
    runtime: Handle,
    shards: usize,
}

/// The leader of one aggregation, over any network.
pub(super) struct Leading<'a> {
    pub(super) network: &'a dyn Network,
    /// The runtime of the network.
    pub(super) runtime: &'a Handle,
    /// Most shards.
    pub(super) shards: usize,
}

/// The reason why workers made no aggregate.
enum NoAggregate {
    /// A worker gave no answer, or none that decodes.
    Answer(String),
    /// The aggregate does not verify.
    False,
}

// === impl Leaders ===

impl Leaders {
    /// Leads aggregations in `shards` shards at most; the runtime is that of the connection.
    pub(in crate::provers::partition) fn new(
        connection: &Connection,
        runtime: &Handle,
        shards: usize,
    ) -> Self {
        Self {
            connection: connection.clone(),
            runtime: runtime.clone(),
            shards,
        }
    }

    /// The aggregate of proved parts, made by workers and verified; `None` if they made none, for a reason that is in the
    /// log. For a thread that may block.
    pub(in crate::provers::partition) fn aggregate<E: PartitionCurve>(
        &self,
        index: &Index<E>,
        srs: &Srs<E>,
        statement: MirageStatement<'_, E>,
        parts: &[Vec<u8>],
    ) -> Option<Aggregate<E>> {
        let partition = hex::encode(index.partition().digest());
        let leading = Leading {
            network: &BusNetwork::new(&self.connection, &partition),
            runtime: &self.runtime,
            shards: self.shards,
        };
        leading.aggregate(index, srs, statement, parts)
    }
}

// === impl Leading ===

impl Leading<'_> {
    /// See [`Leaders::aggregate`].
    pub(super) fn aggregate<E: PartitionCurve>(
        &self,
        index: &Index<E>,
        srs: &Srs<E>,
        statement: MirageStatement<'_, E>,
        parts: &[Vec<u8>],
    ) -> Option<Aggregate<E>> {
        let crew = Crew::find(self.network, self.shards, parts);
        let Some(mut crew) = self.runtime.block_on(crew) else {
            tracing::info!("there are no two workers for the aggregation: it is made here");
            return None;
        };
        let key = index.parts().verifying_key();
        let mut leader = match Leader::mirage(key, statement, crew.shards()) {
            Ok(leader) => leader,
            Err(error) => {
                tracing::warn!(%error, "the aggregation cannot be divided: it is made here");
                return None;
            }
        };
        let shards = crew.shards();
        let made = self.lead(&mut leader, &mut crew);
        if let Err(NoAggregate::False) = made {
            name_liars(&leader, index, srs, parts, &crew);
        }
        self.runtime.block_on(crew.end());
        match made {
            Ok(aggregate) => {
                tracing::info!(shards, "workers made the aggregate");
                Some(aggregate)
            }
            Err(NoAggregate::Answer(why)) => {
                tracing::warn!(why, "workers did not make the aggregate: it is made here");
                None
            }
            Err(NoAggregate::False) => None,
        }
    }

    fn lead<E: PartitionCurve>(
        &self,
        leader: &mut Leader<'_, E>,
        crew: &mut Crew<'_>,
    ) -> Result<Aggregate<E>, NoAggregate> {
        loop {
            let (step, message) = (leader.step(), leader.message().to_bytes());
            let answers = self.runtime.block_on(crew.answers(message));
            let answers = answers.map_err(NoAggregate::Answer)?;
            for (shard, bytes) in answers.iter().enumerate() {
                let of_worker = |why: String| {
                    let worker = crew.worker(shard);
                    NoAggregate::Answer(format!("worker {worker}, shard {shard}: {why}"))
                };
                let answer = ShardMessage::from_bytes(bytes);
                let answer = answer.map_err(|error| of_worker(error.to_string()))?;
                match leader.receive(shard, step, answer) {
                    Ok(Progress::Finished(aggregate)) => return Ok(*aggregate),
                    Ok(_) => {}
                    Err(LeaderError::Invalid(_)) => return Err(NoAggregate::False),
                    Err(error) => return Err(of_worker(error.to_string())),
                }
            }
        }
    }
}

/// Writes the workers into the log whose answers are not those that their parts yield.
fn name_liars<E: PartitionCurve>(
    leader: &Leader<'_, E>,
    index: &Index<E>,
    srs: &Srs<E>,
    parts: &[Vec<u8>],
    crew: &Crew<'_>,
) {
    let sharding = leader.sharding();
    for shard in 0..sharding.shards() {
        let own = ProvedParts::<E>::from_bytes(&sharding.items(shard, parts).concat());
        let key = ShardKey::mirage(srs, index.parts().parts(), sharding, shard);
        let (Ok(own), Ok(key)) = (own, key) else {
            continue;
        };
        let Ok(replay) = Shard::new(&key, own.proofs(), own.d()) else {
            continue;
        };
        if let Some(answer) = leader.first_false_answer(replay) {
            let worker = crew.worker_of_answer(shard, answer);
            tracing::warn!(
                worker,
                shard,
                answer,
                "a worker's share of the aggregation is false: the aggregation is made here"
            );
        }
    }
}
