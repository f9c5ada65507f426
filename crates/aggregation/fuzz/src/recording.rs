//! A recorded aggregation in two shards, to start from.

use proofmill_aggregation::sharded::{
    Leader, LeaderMessage, Progress, Shard, ShardKey, ShardMessage,
};
use proofmill_aggregation::{Aggregate, AggregationCurve, Commitment, MirageVerifyingKey};

use super::case::{Case, rng, srs, statement};

const SHARDS: usize = 2;
const PROOFS: usize = 5;

/// What an aggregation refers to.
pub struct Subject<E: AggregationCurve> {
    case: Case<E>,
    key: MirageVerifyingKey<E>,
    commitment: Commitment<E>,
    shard_keys: Vec<ShardKey<E>>,
    /// The aggregate of one prover.
    pub aggregate: Aggregate<E>,
}

/// The leader and a shard before each message, and the messages.
pub struct Recording<'a, E: AggregationCurve> {
    /// The aggregate of one prover.
    pub aggregate: &'a Aggregate<E>,
    /// The steps in their order.
    pub steps: Vec<Step<'a, E>>,
}

/// A message of the leader, and its answers.
pub struct Step<'a, E: AggregationCurve> {
    /// The leader before any answer.
    pub leader: Leader<'a, E>,
    /// The first shard before the message.
    pub shard: Shard<'a, E>,
    /// The leader's message.
    pub message: LeaderMessage<E>,
    /// The answer of each shard.
    pub answers: [ShardMessage<E>; SHARDS],
}

/// The messages of an aggregation, for both curves.
pub fn messages() -> Vec<Vec<u8>> {
    use proofmill_groth16::{Bls12_381, Bn254};

    let bn254 = Subject::<Bn254>::new();
    let bls12_381 = Subject::<Bls12_381>::new();
    let mut messages = Recording::new(&bn254).encode();
    messages.extend(Recording::new(&bls12_381).encode());
    messages
}

// === impl Subject ===

impl<E: AggregationCurve> Subject<E> {
    /// The same at every call.
    pub fn new() -> Self {
        let srs = srs::<E>(PROOFS.next_power_of_two());
        let case = Case::<E>::random(&mut rng(21), PROOFS, 2, 1);
        let proved = case.prove(&srs);
        let key = proved.index.verifying_key().clone();
        let leader = Leader::mirage(&key, case.statement(&proved.commitment), SHARDS);
        let sharding = leader.expect("a power of two").sharding();
        let shard_keys = (0..SHARDS)
            .map(|shard| ShardKey::mirage(&srs, &case.parts, sharding, shard).expect("a shard"))
            .collect();
        Self {
            case,
            key,
            commitment: proved.commitment,
            shard_keys,
            aggregate: proved.aggregate,
        }
    }
}

// === impl Recording ===

impl<'a, E: AggregationCurve> Recording<'a, E> {
    /// Makes the aggregate in shards.
    pub fn new(subject: &'a Subject<E>) -> Self {
        let case = &subject.case;
        let statement = statement(&case.inputs, &subject.commitment);
        let leader = Leader::mirage(&subject.key, statement, SHARDS);
        let mut leader = leader.expect("a power of two");
        let shards = subject.shard_keys.iter().map(|key| {
            let (shard, sharding) = (key.shard(), key.sharding());
            let (proofs, d) = (
                sharding.items(shard, &case.proofs),
                sharding.items(shard, &case.d),
            );
            Shard::new(key, &proofs, &d).expect("a proof for each place")
        });
        let mut shards: Vec<_> = shards.collect();
        let mut steps = Vec::new();
        loop {
            let message = leader.message().clone();
            let (before, shard) = (leader.clone(), shards[0].clone());
            let answers = std::array::from_fn(|number: usize| {
                shards[number].receive(&message).expect("the next message")
            });
            steps.push(Step {
                leader: before,
                shard,
                message,
                answers: answers.clone(),
            });
            let index = leader.step();
            for (number, answer) in answers.into_iter().enumerate() {
                let progress = leader
                    .receive(number, index, answer)
                    .expect("an honest shard");
                if let Progress::Finished(aggregate) = progress {
                    assert_eq!(*aggregate, subject.aggregate);
                    return Self {
                        aggregate: &subject.aggregate,
                        steps,
                    };
                }
            }
        }
    }

    /// The bytes of all messages.
    pub fn encode(&self) -> Vec<Vec<u8>> {
        let mut messages = Vec::new();
        for step in &self.steps {
            messages.push(step.message.to_bytes());
            messages.push(step.answers[0].to_bytes());
        }
        messages
    }
}
