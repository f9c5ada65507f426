//! Hostile bytes: nothing panics, and nothing but what was made is taken.

use proofmill_groth16::Bn254;
use proofmill_mutation::Mutation;

use super::case::Case;
use crate::proof::{PartitionProof, VerifyingKey};
use crate::tests::chain::Chain;

const INPUTS: u64 = 2_000;

#[test]
fn no_bytes_panic() {
    let case = Case::<Bn254>::new(&Chain::blank(3));
    let circuit = Chain::new(3, 5, 9);
    let proof = case.prove(&circuit, 1).to_bytes();
    let key = case.index.verifying_key();
    Mutation::of(std::slice::from_ref(&proof))
        .inputs(INPUTS)
        .run("partitioned proof", |bytes| {
            if let Ok(read) = PartitionProof::<Bn254>::from_bytes(bytes) {
                assert_eq!(read.to_bytes(), bytes);
                let verdict = key.verify(&circuit.public, &read);
                assert_eq!(verdict.is_ok(), bytes == proof);
            }
        });
    Mutation::of(&[key.to_bytes()])
        .inputs(INPUTS)
        .run("key of partitioned proofs", |bytes| {
            if let Ok(read) = VerifyingKey::<Bn254>::from_bytes(bytes) {
                assert_eq!(read.to_bytes(), bytes);
            }
        });
}
