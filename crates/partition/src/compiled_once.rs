//! In development builds: the functions over each curve, compiled once, as
//! [`proofmill_groth16::compiled_once`] has its own.

#![allow(
    clippy::type_complexity,
    reason = "each type is written where the function is named"
)]

use std::hint::black_box;
use std::ops::ControlFlow;

use ark_std::rand::rngs::{OsRng, StdRng};
use ark_std::rand::{CryptoRng, RngCore};
use proofmill_groth16::{Bls12_381, Bn254};
use proofmill_kernels::Poseidon2Field;

use crate::applications::{BigMerkleTree, Squarings};
use crate::proof::distributed::{Coordination, ProveTask, Worker};
use crate::proof::{
    Index, IndexError, Journal, PartitionCurve, PartitionProof, ProveError, Prover, Step,
    VerifyError, VerifyingKey,
};
use crate::{DistributedCircuit, Partition, PartitionError, PartitionedCircuit};

/// Refers to the functions over each curve. It has no other effect.
#[doc(hidden)]
pub fn compiled_once() {
    of_curve::<Bn254>();
    of_curve::<Bls12_381>();
}

fn of_curve<E: PartitionCurve>() {
    let index: fn(_, _, &_) -> Result<Index<E>, IndexError> = Index::<E>::new;
    let verify: fn(&_, &[E::ScalarField], &PartitionProof<E>) -> Result<(), VerifyError> =
        VerifyingKey::<E>::verify;
    black_box((index as *const (), verify as *const ()));
    of_circuit::<E, Squarings<E::ScalarField>>();
    of_circuit::<E, BigMerkleTree<E::ScalarField>>();
}

fn of_circuit<E: PartitionCurve, C: DistributedCircuit<E::ScalarField>>() {
    synthesis::<E::ScalarField, C>();
    let coordination: fn(_, _, C, &[u8; 32]) -> Result<Coordination<E, C>, ProveError> =
        Coordination::<E, C>::new;
    black_box(coordination as *const ());
    proofs::<E, C, OsRng>();
    proofs::<E, C, StdRng>();
}

fn synthesis<F: Poseidon2Field, C: PartitionedCircuit<F>>() {
    let partition: fn(&C) -> Result<Partition<F>, PartitionError> =
        |circuit| Partition::new(circuit);
    let trace: fn(&Partition<F>, &C) -> _ = |partition, circuit| partition.trace(circuit);
    black_box((partition as *const (), trace as *const ()));
}

fn proofs<E: PartitionCurve, C: DistributedCircuit<E::ScalarField>, R: RngCore + CryptoRng>() {
    let whole: fn(
        Prover<'_, E>,
        &C,
        &mut Journal<E>,
        &mut R,
        &mut dyn FnMut(Step) -> ControlFlow<()>,
    ) -> _ =
        |prover, circuit, journal, rng, progress| prover.prove(circuit, journal, rng, progress);
    let part: fn(&Worker<'_, E>, &C, &ProveTask<E>, &mut R) -> _ =
        |worker, circuit, task, rng| worker.prove(circuit, task, rng);
    black_box((whole as *const (), part as *const ()));
}
