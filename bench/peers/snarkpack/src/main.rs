//! bellperson's SnarkPack, as a peer of `proofmill-bench`.
//!
//! ```sh
//! proofmill-bench-snarkpack PROOFS RUNS
//! ```
//!
//! The proofs are of one circuit with one public input. One aggregate is verified, untimed. The last line is
//! `{"ms": [...]}`. `RAYON_NUM_THREADS` sets the number of threads.

use std::time::Instant;

use bellpepper_core::{Circuit, ConstraintSystem, SynthesisError};
use bellperson::groth16::aggregate::{
    AggregateProof, AggregateVersion, aggregate_proofs, setup_fake_srs, verify_aggregate_proof,
};
use bellperson::groth16::{create_random_proof, generate_random_parameters, prepare_verifying_key};
use blstrs::{Bls12, Scalar};
use ff::Field;
use rand::rngs::OsRng;

/// A root of a public square.
#[derive(Clone)]
struct Root(Option<Scalar>);

impl Circuit<Scalar> for Root {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let missing = SynthesisError::AssignmentMissing;
        let root = cs.alloc(|| "root", || self.0.ok_or(missing))?;
        let missing = SynthesisError::AssignmentMissing;
        let square = cs.alloc_input(
            || "square",
            || self.0.map(|root| root.square()).ok_or(missing),
        )?;
        cs.enforce(
            || "root² = square",
            |lc| lc + root,
            |lc| lc + root,
            |lc| lc + square,
        );
        Ok(())
    }
}

fn main() {
    let arguments: Vec<usize> = std::env::args()
        .skip(1)
        .map(|text| text.parse().expect("numbers"))
        .collect();
    let [proofs, runs] = arguments[..] else {
        panic!("PROOFS RUNS");
    };
    let rng = &mut OsRng;
    let parameters = generate_random_parameters::<Bls12, _, _>(Root(None), rng).expect("a circuit");
    // All proofs are copies of one, as their values do not change the work.
    let root = Scalar::random(&mut *rng);
    let proof = create_random_proof(Root(Some(root)), &parameters, rng).expect("a proof");
    let proofs_to_aggregate = vec![proof; proofs];
    let (key, verifier) = setup_fake_srs::<Bls12, _>(rng, proofs).specialize(proofs);
    let transcript = [1, 2, 3];
    let aggregate = || {
        aggregate_proofs::<Bls12>(
            &key,
            &transcript,
            &proofs_to_aggregate,
            AggregateVersion::V2,
        )
        .expect("a power of two")
    };
    let mut bytes = Vec::new();
    aggregate().write(&mut bytes).expect("to memory");
    let prepared = prepare_verifying_key(&parameters.vk);
    let inputs = vec![vec![root.square()]; proofs];
    let began = Instant::now();
    let decoded = AggregateProof::<Bls12>::read(&bytes[..]).expect("its own bytes");
    let holds = verify_aggregate_proof(
        &verifier,
        &prepared,
        rng,
        &inputs,
        &decoded,
        &transcript,
        AggregateVersion::V2,
    );
    assert!(holds.expect("an answer"), "its own aggregate does not hold");
    eprintln!("verification {:.1} ms, {} bytes", ms(began), bytes.len());
    let times: Vec<f64> = (0..runs)
        .map(|_| {
            let began = Instant::now();
            std::hint::black_box(aggregate());
            ms(began)
        })
        .collect();
    println!("{{\"ms\": {times:?}}}");
}

fn ms(began: Instant) -> f64 {
    began.elapsed().as_secs_f64() * 1e3
}
