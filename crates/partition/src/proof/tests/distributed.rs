//! Proofs whose parts are made from the bytes of tasks, and workers that return something else.

use std::sync::Arc;

use ark_ff::Field;
use proofmill_aggregation::sharded::{Leader, Progress, Shard, ShardKey};
use proofmill_aggregation::{Aggregate, Srs};
use proofmill_groth16::mirage::{Commitment, CommitmentKey};
use proofmill_groth16::{Bls12_381, Bn254, Proof};

use super::case::{Case, rng};
use crate::DistributedCircuit;
use crate::applications::{BigMerkleTree, Squarings};
use crate::proof::distributed::{
    CommitTask, CommitmentChecker, CommitmentKeys, Coordination, ProofChecker, ProveTask,
    ProvedParts, ProvedPartsError, ResultError, TaskError, Worker,
};
use crate::proof::{Index, IndexError, PartitionCurve};

const SEED: [u8; 32] = [7; 32];

/// The tasks and results of all parts.
struct Parts<E: PartitionCurve> {
    commits: Vec<(CommitTask<E>, Commitment<E>)>,
    proofs: Vec<(ProveTask<E>, Proof<E>)>,
}

fn worker<E: PartitionCurve>(case: &Case<E>) -> Worker<'_, E> {
    Worker {
        partition: case.index.partition(),
        keys: &case.held,
    }
}

fn commitment_checker<E: PartitionCurve>(case: &Case<E>) -> CommitmentChecker<'_, E> {
    CommitmentChecker {
        partition: case.index.partition(),
        keys: &case.commitment_keys,
    }
}

const fn proof_checker<E: PartitionCurve>(case: &Case<E>) -> ProofChecker<'_, E> {
    ProofChecker {
        verifiers: &case.verifiers,
    }
}

/// Makes a proof as processes would: everything between them passes through bytes.
fn prove<E, C>(case: &Case<E>, blank: &C, circuit: &C, public: &[E::ScalarField]) -> Parts<E>
where
    E: PartitionCurve,
    C: DistributedCircuit<E::ScalarField> + Clone,
{
    let (index, srs) = case.shared();
    let begin = || {
        let (index, srs) = (Arc::clone(&index), Arc::clone(&srs));
        Arc::new(Coordination::new(index, srs, circuit.clone(), &SEED).unwrap())
    };
    let coordination = begin();
    let parts = coordination.num_parts();
    assert_eq!(coordination.public_inputs(), public);
    let commits: Vec<_> = (0..parts)
        .map(|part| {
            let bytes = coordination.commit_task(part).unwrap().to_bytes();
            let task = CommitTask::from_bytes(&bytes).unwrap();
            assert_eq!((task.part(), task.to_bytes()), (part, bytes));
            let commitment = case.commitment_keys.commit(case.index.partition(), &task);
            (task, commitment.unwrap())
        })
        .collect();
    // A coordinator that begins again makes the same tasks.
    let again = begin();
    assert_eq!(again.commit_task(parts - 1).unwrap(), commits[parts - 1].0);
    let all = commits.iter().map(|(_, commitment)| *commitment).collect();
    let challenged = again.challenge(all).unwrap();
    let proofs: Vec<_> = (0..parts)
        .map(|part| {
            let bytes = challenged.prove_task(part).unwrap().to_bytes();
            let task = ProveTask::from_bytes(&bytes).unwrap();
            assert_eq!((task.part(), task.to_bytes()), (part, bytes));
            let proof = worker(case).prove(blank, &task, &mut rng(part as u64));
            (task, proof.unwrap())
        })
        .collect();
    let all: Vec<_> = proofs.iter().map(|(_, proof)| *proof).collect();
    let proof = challenged.aggregate(&all).unwrap();
    assert!(case.holds(public, &proof));
    let parts = Parts { commits, proofs };
    let all = parts.commits.iter().map(|(_, commitment)| *commitment);
    let challenged = again.challenge(all.collect()).unwrap();
    let sharded = challenged.aggregate_by(|index, srs, statement| {
        let leader = Leader::mirage(index.parts().verifying_key(), statement, 2);
        Ok(in_shards(leader.unwrap(), index, srs, &parts.proved()))
    });
    assert_eq!(sharded.unwrap().to_bytes(), proof.to_bytes());
    parts
}

/// An aggregate made in shards, each of which decodes the parts that it is sent.
fn in_shards<E: PartitionCurve>(
    mut leader: Leader<'_, E>,
    index: &Index<E>,
    srs: &Srs<E>,
    proved: &[Vec<u8>],
) -> Aggregate<E> {
    let sharding = leader.sharding();
    let keys: Vec<_> = (0..sharding.shards())
        .map(|shard| ShardKey::mirage(srs, index.parts().parts(), sharding, shard).unwrap())
        .collect();
    let mut shards: Vec<_> = keys
        .iter()
        .map(|key| {
            let bytes = sharding.items(key.shard(), proved).concat();
            let parts = ProvedParts::<E>::from_bytes(&bytes).unwrap();
            Shard::new(key, parts.proofs(), parts.d()).unwrap()
        })
        .collect();
    loop {
        let (step, message) = (leader.step(), leader.message().clone());
        for (number, shard) in shards.iter_mut().enumerate() {
            let answer = shard.receive(&message).unwrap();
            if let Progress::Finished(made) = leader.receive(number, step, answer).unwrap() {
                return *made;
            }
        }
    }
}

impl<E: PartitionCurve> Parts<E> {
    /// Commitment and proof of each part, encoded.
    fn proved(&self) -> Vec<Vec<u8>> {
        let proofs = self.proofs.iter();
        let proved =
            proofs.map(|(task, proof)| [task.commitment().to_bytes(), proof.to_bytes()].concat());
        proved.collect()
    }
}

fn squarings<E: PartitionCurve>() -> (Case<E>, Parts<E>) {
    let blank = Squarings::blank(5, 2, 2).unwrap();
    let values = [3u64, 4].map(E::ScalarField::from).to_vec();
    let circuit = Squarings::new(5, 2, values).unwrap();
    let case = Case::<E>::new(&blank);
    let power = |base: u64| E::ScalarField::from(base).pow([1 << 10]);
    let parts = prove(&case, &blank, &circuit, &[power(3) + power(4)]);
    (case, parts)
}

#[test]
fn parts_are_proved_from_the_bytes_of_their_tasks() {
    squarings::<Bls12_381>();
    let leaves = vec![[1; 16], [2; 16]];
    let blank = BigMerkleTree::blank(1, 1, 2).unwrap();
    let circuit = BigMerkleTree::new(leaves, 1, 2).unwrap();
    let case = Case::<Bn254>::new(&blank);
    let public = crate::PartitionedCircuit::public_inputs(&circuit);
    prove(&case, &blank, &circuit, &public);
}

#[test]
fn each_false_result_is_found_among_valid_ones() {
    let (case, Parts { commits, proofs }) = squarings::<Bn254>();
    let (commitments, rng) = (commitment_checker(&case), &mut rng(9));
    let checker = proof_checker(&case);
    let valid = |count| vec![Ok(()); count];
    assert_eq!(commitments.check(&commits, rng).unwrap(), valid(5));
    assert_eq!(checker.check(&proofs, rng), valid(5));

    // Commitments: a random point, another part's of the same class, and one that is of the right values but not of the
    // right randomness.
    let mut lies = commits.clone();
    lies[0].1 = Commitment {
        point: (commits[0].1.point + commits[1].1.point).into(),
    };
    lies[1].1 = commits[2].1;
    lies[3].1 = Commitment {
        point: (commits[3].1.point + case.keys[1].vk().plain.alpha_g1).into(),
    };
    let mut expected = valid(5);
    for part in [0, 1, 3] {
        expected[part] = Err(ResultError::Commitment { part });
    }
    assert_eq!(commitments.check(&lies, rng).unwrap(), expected);

    // Proofs: a changed one, another part's, and one from before the challenges were drawn anew.
    let mut lies = proofs.clone();
    lies[0].1.a = proofs[1].1.a;
    lies[2].1 = proofs[3].1;
    lies[4].0.challenges.alpha += ark_bn254::Fr::ONE;
    let mut expected = valid(5);
    for part in [0, 2, 4] {
        expected[part] = Err(ResultError::Proof { part });
    }
    assert_eq!(checker.check(&lies, rng), expected);
}

#[test]
fn commitment_keys_of_other_classes_are_refused() {
    let case = Case::<Bn254>::new(&Squarings::blank(5, 2, 2).unwrap());
    let partition = case.index.partition();
    let keys: Vec<_> = case.keys.iter().map(CommitmentKey::from).collect();
    let refused = CommitmentKeys::new(partition, keys[1..].to_vec()).unwrap_err();
    assert!(matches!(refused, IndexError::Classes { found: 2, .. }));
    let mut turned = keys;
    turned.rotate_left(1);
    let refused = CommitmentKeys::new(partition, turned).unwrap_err();
    assert!(matches!(refused, IndexError::OtherCircuit { class: 0, .. }));
}

#[test]
fn other_bytes_are_no_task_and_another_parts_witness_is_refused() {
    let (case, Parts { commits, proofs }) = squarings::<Bn254>();
    let bytes = commits[1].0.to_bytes();
    for length in 0..bytes.len() {
        assert!(CommitTask::<Bn254>::from_bytes(&bytes[..length]).is_err());
    }
    let longer = [&bytes[..], &[0]].concat();
    let refused = CommitTask::<Bn254>::from_bytes(&longer).unwrap_err();
    assert_eq!(refused, TaskError::Length(longer.len()));
    let mut other = bytes.clone();
    other[0] = 2;
    let refused = CommitTask::<Bn254>::from_bytes(&other).unwrap_err();
    assert_eq!(refused, TaskError::Version(2));
    let bytes = proofs[0].0.to_bytes();
    for length in 0..bytes.len() {
        assert!(ProveTask::<Bn254>::from_bytes(&bytes[..length]).is_err());
    }

    let blank = Squarings::blank(5, 2, 2).unwrap();
    let mut task = proofs[1].0.clone();
    task.witness = proofs[0].0.witness.clone();
    let refused = worker(&case).prove(&blank, &task, &mut rng(1)).unwrap_err();
    let expected = "part 1: its witness: 2 values, where the part takes 0";
    assert_eq!(refused.to_string(), expected);
    let mut task = proofs[0].0.clone();
    task.part = 5;
    assert!(worker(&case).prove(&blank, &task, &mut rng(1)).is_err());
    task.part = 1 << 30;
    let claims = [(task, proofs[0].1)];
    let part = 1 << 30;
    let verdicts = proof_checker(&case).check(&claims, &mut rng(1));
    assert_eq!(verdicts, [Err(ResultError::Proof { part })]);
}

#[test]
fn other_bytes_are_no_proved_parts() {
    let (_, parts) = squarings::<Bn254>();
    let bytes = parts.proved().concat();
    let read = |bytes: &[u8]| ProvedParts::<Bn254>::from_bytes(bytes);
    assert_eq!(read(&bytes).unwrap().d().len(), 5);
    assert!(read(&[]).unwrap().proofs().is_empty());
    let each = ProvedParts::<Bn254>::encoded_size();
    for length in [1, each - 1, each + 1] {
        let refused = read(&bytes[..length]).unwrap_err();
        assert!(matches!(refused, ProvedPartsError::Length { .. }));
    }
    // A number above the field's, in the second part's commitment and in its proof.
    for (at, is_commitment) in [
        (each, true),
        (each + Commitment::<Bn254>::encoded_size(), false),
    ] {
        let mut changed = bytes.clone();
        changed[at..at + 32].fill(0x3f);
        match read(&changed).unwrap_err() {
            ProvedPartsError::Commitment { part: 1, .. } => assert!(is_commitment),
            ProvedPartsError::Proof { part: 1, .. } => assert!(!is_commitment),
            other => panic!("{other}"),
        }
    }
}
