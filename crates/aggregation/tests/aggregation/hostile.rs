//! Hostile bytes: nothing panics, and nothing but what was made is taken.

use proofmill_aggregation::{
    Aggregate, AggregationEngine, Commitment, Groth16Index, MirageVerifyingKey, Srs,
};
use proofmill_groth16::{Bls12_381, Bn254};
use proofmill_mutation::Mutation;

use crate::case::{Case, rng, srs};
use crate::groth16;

fn nothing_panics<E: AggregationEngine>(inputs: u64) {
    let srs = srs::<E>(4);
    let case = Case::<E>::random(&mut rng(20), 3, 2, 1);
    let proved = case.prove(&srs);
    let key = proved.index.verifying_key();
    let aggregate = proved.aggregate.to_bytes();
    Mutation::of(std::slice::from_ref(&aggregate))
        .inputs(inputs)
        .run("aggregate", |bytes| {
            if let Ok(read) = Aggregate::<E>::from_bytes(bytes) {
                assert_eq!(read.to_bytes(), bytes);
                let verdict = key.verify(case.statement(&proved.commitment), &read);
                assert_eq!(verdict.is_ok(), bytes == aggregate);
            }
        });
    let commitment = proved.commitment.to_bytes();
    Mutation::of(std::slice::from_ref(&commitment))
        .inputs(inputs)
        .run("commitment", |bytes| {
            if let Ok(read) = Commitment::<E>::from_bytes(bytes) {
                assert_eq!(read.to_bytes(), bytes);
                assert_eq!(read == proved.commitment, bytes == commitment);
            }
        });
    Mutation::of(&[key.to_bytes()])
        .inputs(inputs)
        .run("key", |bytes| {
            if let Ok(read) = MirageVerifyingKey::<E>::from_bytes(bytes) {
                assert_eq!(read.to_bytes(), bytes);
            }
        });
    let groth16 = groth16::index(&srs).to_bytes();
    assert!(Groth16Index::<E>::from_bytes(&groth16).is_ok());
    Mutation::of(&[groth16])
        .inputs(inputs)
        .run("groth16 key", |bytes| {
            if let Ok(read) = Groth16Index::<E>::from_bytes(bytes) {
                assert_eq!(read.to_bytes(), bytes);
            }
        });
    Mutation::of(&[srs.to_bytes()])
        .inputs(inputs)
        .run("reference string", |bytes| {
            if let Ok(read) = Srs::<E>::from_bytes(bytes) {
                assert_eq!(read, srs);
            }
        });
}

#[test]
fn no_bytes_panic_on_bls12_381() {
    nothing_panics::<Bls12_381>(2_000);
}

#[test]
fn no_bytes_panic_on_bn254() {
    nothing_panics::<Bn254>(2_000);
}
