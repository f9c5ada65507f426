//! Verdicts on proofs of circuits in parts, valid ones and tampered ones.

use std::ops::ControlFlow;

use ark_ff::One;
use ark_std::rand::SeedableRng;
use ark_std::rand::rngs::StdRng;
use bytes::Bytes;
use proofmill_aggregation::Srs;
use proofmill_groth16::mirage::{ProvingKey, Setup};
use proofmill_groth16::{Bls12_381, Bn254, ResidentForm};
use proofmill_partition::applications::Squarings;
use proofmill_partition::proof::{ClassKeys, Index, Journal, PartitionCurve, Prover, VerifyingKey};
use proofmill_partition::{Partition as Parts, PartitionedCircuit};
use proofmill_verifier::kinds::Partition;
use proofmill_verifier::{KeyDigest, KeyError, Kind, Kinds, Options, Request, Status};

use super::support::{Running, id, verdicts};

/// Three parts, and a proof of them.
struct Proved<E: PartitionCurve> {
    key: VerifyingKey<E>,
    inputs: Vec<E::ScalarField>,
    proof: Bytes,
}

impl<E: PartitionCurve> Proved<E> {
    fn new(seed: u64) -> Self {
        let rng = &mut StdRng::seed_from_u64(seed);
        let values = [seed + 3, seed + 4].map(E::ScalarField::from);
        let circuit = Squarings::new(3, 2, values.to_vec()).expect("a circuit");
        let partition = Parts::new(&circuit).expect("a partition");
        let srs = Srs::<E>::setup(4, rng).expect("a string");
        let setup = Setup::<E>::new(rng);
        let classes = partition.classes().iter();
        let keys: Vec<_> = classes
            .map(|class| {
                let system = class.committed_system().expect("a system");
                setup.key(system, rng).expect("a key")
            })
            .collect();
        let of_classes = keys.iter().map(ProvingKey::vk).collect();
        let held = ClassKeys::hold(&partition, keys, ResidentForm::Plain).expect("keys");
        let index = Index::new(partition, of_classes, &srs).expect("an index");
        let prover = Prover {
            index: &index,
            srs: &srs,
            keys: &held,
        };
        let mut journal = Journal::in_memory(rng);
        let go_on = |_| ControlFlow::Continue(());
        let proof = prover.prove(&circuit, &mut journal, rng, go_on);
        Self {
            proof: proof.expect("a proof").to_bytes().into(),
            inputs: circuit.public_inputs(),
            key: index.verifying_key().clone(),
        }
    }

    fn request(&self, id: &str, key: KeyDigest) -> Request {
        let statement = VerifyingKey::<E>::encode_statement(&self.inputs);
        let kind = Partition::<E>::new();
        Request::new("a", id, kind.name(), self.proof.clone()).under(key, statement)
    }
}

/// Valid proofs of two circuits, and those with another's proof, statement or key.
async fn batch<E: PartitionCurve>() {
    let proved = [Proved::<E>::new(1), Proved::<E>::new(2)];
    let kind = Partition::<E>::new();
    let running = Running::of(Options::of(Kinds::all(None)));
    let mut keys = Vec::new();
    for of in &proved {
        let key = Bytes::from(of.key.to_bytes());
        let added = running.handle.add_key("a", kind.name(), key).await;
        keys.push(added.expect("a key"));
    }
    let requests: Vec<Request> = (0..12)
        .map(|number| {
            let of = number % 2;
            let mut request = proved[of].request(&id(number), keys[of]);
            match number / 2 {
                1 => request.proof = proved[1 - of].proof.clone(),
                2 => request.statement = proved[1 - of].request("", keys[of]).statement,
                3 => request = proved[of].request(&id(number), keys[1 - of]),
                _ => {}
            }
            request
        })
        .collect();
    let found = verdicts(&running.handle, requests).await;
    for (number, verdict) in found.iter().enumerate() {
        let is_invalid = matches!(verdict.status, Status::Invalid(_));
        assert_eq!(is_invalid, (1..=3).contains(&(number / 2)), "{verdict:?}");
        assert!(is_invalid || verdict.status == Status::Valid, "{verdict:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn proofs_of_circuits_in_parts_over_bn254() {
    batch::<Bn254>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn proofs_of_circuits_in_parts_over_bls12_381() {
    batch::<Bls12_381>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_input_and_every_byte_of_a_partitioned_proof_is_bound() {
    let proved = Proved::<Bn254>::new(3);
    let running = Running::of(Options::of(Kinds::all(None)));
    let key = Bytes::from(proved.key.to_bytes());
    let added = running.handle.add_key("a", "partition-bn254", key.clone());
    let good = proved.request("good", added.await.expect("a key"));
    let mut requests = Vec::new();
    for input in 0..proved.inputs.len() {
        let mut inputs = proved.inputs.clone();
        inputs[input] += <Bn254 as ark_ec::pairing::Pairing>::ScalarField::one();
        requests.push(Request {
            id: format!("input {input}").into(),
            statement: VerifyingKey::<Bn254>::encode_statement(&inputs).into(),
            ..good.clone()
        });
    }
    for place in (0..good.proof.len()).step_by(29) {
        let mut proof = good.proof.to_vec();
        proof[place] ^= 1 << (place % 8);
        requests.push(Request {
            id: format!("byte {place}").into(),
            proof: proof.into(),
            ..good.clone()
        });
    }
    for length in [0, 1, 43, 44, good.proof.len() - 1] {
        requests.push(Request {
            id: format!("{length} bytes").into(),
            proof: good.proof.slice(..length),
            ..good.clone()
        });
    }
    let over_modulus = Bytes::from(vec![0xff; good.statement.len()]);
    for statement in [Bytes::new(), good.statement.slice(1..), over_modulus] {
        requests.push(Request {
            id: format!("{} bytes of inputs", statement.len()).into(),
            statement,
            ..good.clone()
        });
    }
    for verdict in verdicts(&running.handle, requests).await {
        assert!(matches!(verdict.status, Status::Invalid(_)), "{verdict:?}");
    }
    let valid = verdicts(&running.handle, vec![good]).await;
    assert_eq!(valid[0].status, Status::Valid);

    for (kind, key) in [
        ("partition-bls12-381", key.clone()),
        ("partition-bn254", key.slice(..key.len() - 1)),
        ("groth16-aggregate-bn254", key),
    ] {
        let refused = running.handle.add_key("a", kind, key).await.unwrap_err();
        assert!(matches!(refused, KeyError::Unusable(_)), "{refused}");
    }
}
