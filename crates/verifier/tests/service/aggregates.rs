//! Verdicts on aggregates of Groth16 proofs, valid ones and tampered ones.

use ark_ff::One;
use ark_std::rand::rngs::StdRng;
use ark_std::rand::{Rng, SeedableRng};
use bytes::Bytes;
use proofmill_aggregation::{AggregationCurve, Groth16Index, Srs};
use proofmill_groth16::{Bls12_381, Bn254};
use proofmill_verifier::kinds::Groth16Aggregate;
use proofmill_verifier::{KeyDigest, KeyError, Kind, Kinds, Options, Request, Status};

use super::support::{Circuit, Running, id, verdicts};

/// An aggregate of five proofs under two keys.
struct Aggregated<E: AggregationCurve> {
    index: Groth16Index<E>,
    inputs: Vec<Vec<E::ScalarField>>,
    proof: Bytes,
}

impl<E: AggregationCurve> Aggregated<E> {
    fn new(seed: u64) -> Self {
        let rng = &mut StdRng::seed_from_u64(seed);
        let srs = Srs::<E>::setup(8, rng).expect("a string");
        let mut circuits = [1, 3].map(|inputs| Circuit::<E>::new(inputs, seed));
        let key_of = vec![0, 1, 1, 0, 1];
        let proved = key_of
            .iter()
            .map(|key: &u32| circuits[*key as usize].prove());
        let (inputs, proofs): (Vec<_>, Vec<_>) = proved.map(|it| (it.inputs, it.proof)).unzip();
        let keys = circuits.iter().map(Circuit::verifying_key).collect();
        let index = Groth16Index::new(&srs, keys, key_of).expect("a key");
        let aggregate = index.aggregate(&srs, &inputs, &proofs);
        let proof = aggregate.expect("an aggregate").to_bytes().into();
        Self {
            index,
            inputs,
            proof,
        }
    }

    fn key(&self) -> Bytes {
        self.index.to_bytes().into()
    }

    fn request(&self, id: &str, key: KeyDigest) -> Request {
        let kind = Groth16Aggregate::<E>::new();
        let statement = Groth16Index::<E>::encode_statement(&self.inputs);
        Request::new("a", id, kind.name(), self.proof.clone()).under(key, statement)
    }
}

async fn batches<E: AggregationCurve>() {
    let rng = &mut StdRng::seed_from_u64(23);
    let aggregates = [Aggregated::<E>::new(1), Aggregated::<E>::new(2)];
    let kind = Groth16Aggregate::<E>::new();
    for size in [1, 2, 9, 33] {
        let running = Running::of(Options::of(Kinds::all(None)));
        let mut keys = Vec::new();
        for aggregate in &aggregates {
            let added = running
                .handle
                .add_key("a", kind.name(), aggregate.key())
                .await;
            keys.push(added.expect("a key"));
        }
        let is_bad: Vec<bool> = (0..size).map(|_| rng.gen_bool(0.4)).collect();
        let requests = is_bad.iter().enumerate().map(|(number, is_bad)| {
            let of = number % 2;
            let mut request = aggregates[of].request(&id(number), keys[of]);
            match rng.gen_range(0..3) {
                _ if !is_bad => {}
                // The other's proof, which is as long, the other's statement, the other's key.
                0 => request.proof = aggregates[1 - of].proof.clone(),
                1 => request.statement = aggregates[1 - of].request("", keys[of]).statement,
                _ => request = aggregates[of].request(&id(number), keys[1 - of]),
            }
            request
        });
        let requests = requests.collect();
        for (verdict, is_bad) in verdicts(&running.handle, requests)
            .await
            .iter()
            .zip(&is_bad)
        {
            let named = matches!(verdict.status, Status::Invalid(_));
            assert_eq!(named, *is_bad, "{size} aggregates: {verdict:?}");
            assert!(named || verdict.status == Status::Valid, "{verdict:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn aggregates_of_groth16_over_bn254() {
    batches::<Bn254>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn aggregates_of_groth16_over_bls12_381() {
    batches::<Bls12_381>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_input_and_every_part_of_an_aggregate_is_bound() {
    type E = Bn254;
    let aggregated = Aggregated::<E>::new(3);
    let running = Running::of(Options::of(Kinds::all(None)));
    let kind = Groth16Aggregate::<E>::new();
    let key = running.handle.add_key("a", kind.name(), aggregated.key());
    let key = key.await.expect("a key");
    let good = aggregated.request("good", key);
    let mut requests = Vec::new();
    for proof in 0..5 {
        for input in 0..aggregated.inputs[proof].len() {
            let mut inputs = aggregated.inputs.clone();
            inputs[proof][input] += <E as ark_ec::pairing::Pairing>::ScalarField::one();
            let statement = Groth16Index::<E>::encode_statement(&inputs).into();
            let id = format!("input {proof} {input}").into();
            requests.push(Request {
                id,
                statement,
                ..good.clone()
            });
        }
    }
    // More places than elements and points, so that a byte of each is changed.
    for place in (0..good.proof.len()).step_by(29) {
        let mut proof = good.proof.to_vec();
        proof[place] ^= 1 << (place % 8);
        requests.push(Request {
            id: format!("byte {place}").into(),
            proof: proof.into(),
            ..good.clone()
        });
    }
    let lengths = [0, 1, 43, 44, good.proof.len() - 1];
    for length in lengths {
        requests.push(Request {
            id: format!("{length} bytes").into(),
            proof: good.proof.slice(..length),
            ..good.clone()
        });
    }
    for statement in [Bytes::new(), good.statement.slice(32..), "[\"1\"]".into()] {
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
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_aggregates_are_checked() {
    let running = Running::of(Options::of(Kinds::all(None)));
    let good = Aggregated::<Bn254>::new(4).key();
    let add = |kind: &'static str, key: Bytes| running.handle.add_key("a", kind, key);
    let kind = "groth16-aggregate-bn254";
    assert!(add(kind, good.clone()).await.is_ok());
    let mut bent = good.to_vec();
    let middle = bent.len() / 2;
    bent[middle] ^= 1;
    let wrong = [
        (kind, Bytes::from(bent), "checksum"),
        (kind, good.slice(..good.len() - 1), ""),
        (kind, "no key".into(), "not a key for aggregates"),
        ("groth16-aggregate-bls12-381", good.clone(), "another curve"),
        ("groth16-bn254", good, ""),
    ];
    for (kind, key, reason) in wrong {
        let refused = add(kind, key).await.unwrap_err();
        assert!(matches!(refused, KeyError::Unusable(_)), "{refused}");
        assert!(refused.to_string().contains(reason), "{refused}");
    }
}
