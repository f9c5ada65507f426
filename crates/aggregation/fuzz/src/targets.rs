//! Functions that feed hostile bytes to the code under test. Each ends the process, by a panic, if
//! it finds a defect.

use std::sync::LazyLock;

use proofmill_aggregation::sharded::{LeaderMessage, Progress, ShardMessage};
use proofmill_aggregation::{
    Aggregate, AggregationCurve, Commitment, Groth16Index, MirageVerifyingKey, Srs,
};
use proofmill_groth16::{Bls12_381, Bn254};

use super::case::statement;
use super::recording::{Recording, Subject};
use super::seeds::Seeds;

static BN254: LazyLock<Seeds<Bn254>> = LazyLock::new(Seeds::new);
static BLS12_381: LazyLock<Seeds<Bls12_381>> = LazyLock::new(Seeds::new);

static SHARDED_BN254: LazyLock<Subject<Bn254>> = LazyLock::new(Subject::new);
static SHARDED_BLS12_381: LazyLock<Subject<Bls12_381>> = LazyLock::new(Subject::new);
static RECORDED_BN254: LazyLock<Recording<'static, Bn254>> =
    LazyLock::new(|| Recording::new(&SHARDED_BN254));
static RECORDED_BLS12_381: LazyLock<Recording<'static, Bls12_381>> =
    LazyLock::new(|| Recording::new(&SHARDED_BLS12_381));

/// Takes bytes as every format that the crate decodes, over both curves: decoded values must encode to the same bytes,
/// and only the original aggregates may verify.
pub fn decode(bytes: &[u8]) {
    over(&BN254, bytes);
    over(&BLS12_381, bytes);
}

fn over<E: AggregationCurve>(seeds: &Seeds<E>, bytes: &[u8]) {
    if let Ok(read) = Aggregate::<E>::from_bytes(bytes) {
        assert_eq!(read.to_bytes(), bytes);
        let (key, inputs) = (&seeds.mirage_key, &seeds.mirage_inputs);
        let holds = key
            .verify(statement(inputs, &seeds.commitment), &read)
            .is_ok();
        assert_eq!(holds, read == seeds.mirage);
        let holds = seeds
            .groth16_key
            .verify(&seeds.groth16_inputs, &read)
            .is_ok();
        assert_eq!(holds, read == seeds.groth16);
    }
    if let Ok(read) = Commitment::<E>::from_bytes(bytes) {
        assert_eq!(read.to_bytes(), bytes);
        let (key, inputs) = (&seeds.mirage_key, &seeds.mirage_inputs);
        let holds = key.verify(statement(inputs, &read), &seeds.mirage).is_ok();
        assert_eq!(holds, read == seeds.commitment);
    }
    if let Ok(read) = MirageVerifyingKey::<E>::from_bytes(bytes) {
        assert_eq!(read.to_bytes(), bytes);
    }
    if let Ok(read) = Groth16Index::<E>::from_bytes(bytes) {
        assert_eq!(read.to_bytes(), bytes);
    }
    if let Ok(read) = Srs::<E>::from_bytes(bytes) {
        assert_eq!(read.to_bytes(), bytes);
        assert!(
            read == seeds.srs,
            "only who knows the secrets makes another"
        );
    }
}

/// Takes bytes as a message of an aggregation in shards, over both curves, in every state of the leader and of a shard:
/// decoded messages must encode to the same bytes, and the leader may return no other aggregate than that of one prover.
pub fn sharded(bytes: &[u8]) {
    to_shard(&RECORDED_BN254, bytes);
    to_shard(&RECORDED_BLS12_381, bytes);
    to_leader(&RECORDED_BN254, bytes);
    to_leader(&RECORDED_BLS12_381, bytes);
}

fn to_shard<E: AggregationCurve>(recording: &Recording<'_, E>, bytes: &[u8]) {
    let Ok(message) = LeaderMessage::<E>::from_bytes(bytes) else {
        return;
    };
    assert_eq!(message.to_bytes(), bytes);
    for step in &recording.steps {
        if let Ok(answer) = step.shard.clone().receive(&message) {
            let read = ShardMessage::from_bytes(&answer.to_bytes());
            assert_eq!(read.expect("an answer"), answer);
            assert!(message != step.message || answer == step.answers[0]);
        }
    }
}

fn to_leader<E: AggregationCurve>(recording: &Recording<'_, E>, bytes: &[u8]) {
    let Ok(answer) = ShardMessage::<E>::from_bytes(bytes) else {
        return;
    };
    assert_eq!(answer.to_bytes(), bytes);
    for step in &recording.steps {
        let mut leader = step.leader.clone();
        let index = leader.step();
        if leader.receive(0, index, answer.clone()).is_ok()
            && let Ok(Progress::Finished(made)) = leader.receive(1, index, step.answers[1].clone())
        {
            assert_eq!(*made, *recording.aggregate);
        }
    }
}
