//! In development builds: the functions over each curve, compiled once.
//!
//! A function that is generic over curves is compiled in each crate that calls it, unless a crate that this one depends on
//! has it already and neither is optimised above level 1. In a development build of the workspace that is a third of the
//! time that test programs take to compile, and these functions would have the level of the caller: none in the program.

#![allow(
    clippy::type_complexity,
    reason = "each type is written where the function is named"
)]

use std::hint::black_box;
use std::sync::Arc;

use ark_ec::pairing::Pairing;
use ark_std::rand::rngs::{OsRng, StdRng};
use ark_std::rand::{CryptoRng, RngCore};
use proofmill_r1cs::iden3::R1csFile;
use proofmill_r1cs::{Assignment, R1cs};

use crate::{
    Bls12_377, Bls12_381, Bn254, KeyError, KeyedProof, PointCheck, PreparedVerifyingKey, Proof,
    ProveError, ProverStage, ProvingKey, ResidentForm, ResidentKey, SetupError, SnarkCurve,
    StageReport, Timings, VerifyError, VerifyingKey, mirage, prove, setup_with_progress, snarkjs,
    verify, verify_batch, verify_each,
};

type Proved<E> = Result<(Proof<E>, Vec<StageReport>), ProveError>;
type Scalar<E> = <E as Pairing>::ScalarField;

/// Refers to the functions over each curve. It has no other effect.
#[doc(hidden)]
pub fn compiled_once() {
    of_curve::<Bn254>();
    of_curve::<Bls12_381>();
    of_curve::<Bls12_377>();
}

fn of_curve<E: SnarkCurve>() {
    keys::<E>();
    verification::<E>();
    with_randomness::<E, OsRng>();
    with_randomness::<E, StdRng>();
}

fn keys<E: SnarkCurve>() {
    let resident: fn(_, _, _) -> Result<ResidentKey<E>, ProveError> = ResidentKey::<E>::new;
    let of_zkey: fn(_, _) -> Result<ResidentKey<E>, ProveError> = ResidentKey::<E>::from_zkey;
    let of_mirage: fn(_, _, ResidentForm) -> Result<mirage::ResidentKey<E>, ProveError> =
        mirage::ResidentKey::<E>::new;
    let mapped: fn(&_, Arc<_>) -> Result<mirage::ResidentKey<E>, KeyError> =
        |path, r1cs| mirage::ResidentKey::<E>::map(path, r1cs);
    black_box((resident as *const (), of_zkey as *const ()));
    black_box((of_mirage as *const (), mapped as *const ()));
    let read: fn(&[u8], PointCheck) -> Result<ProvingKey<E>, KeyError> = ProvingKey::from_bytes;
    let read_mirage: fn(&[u8], PointCheck) -> Result<mirage::ProvingKey<E>, KeyError> =
        mirage::ProvingKey::from_bytes;
    let write: fn(&ProvingKey<E>) -> Vec<u8> = ProvingKey::to_bytes;
    let write_mirage: fn(&mirage::ProvingKey<E>) -> Vec<u8> = mirage::ProvingKey::to_bytes;
    black_box((read as *const (), read_mirage as *const ()));
    black_box((write as *const (), write_mirage as *const ()));
}

fn verification<E: SnarkCurve>() {
    let read: fn(&[u8]) -> Result<VerifyingKey<E>, KeyError> = VerifyingKey::from_bytes;
    let one: fn(&PreparedVerifyingKey<E>, &[Scalar<E>], &Proof<E>) -> _ = verify::<E>;
    let each: fn(&[KeyedProof<'_, E>]) -> Vec<Result<(), VerifyError>> = verify_each::<E>;
    black_box((read as *const (), one as *const (), each as *const ()));
    let of_mirage: fn(&_, _, &_, &_) -> Result<(), VerifyError> = mirage::verify::<E>;
    black_box(of_mirage as *const ());
}

fn with_randomness<E: SnarkCurve, R: RngCore + CryptoRng>() {
    let keys: fn(&R1cs<Scalar<E>>, &mut R) -> Result<ProvingKey<E>, SetupError> =
        |r1cs, rng| setup_with_progress(r1cs, rng, &|_| {});
    let key: fn(&mirage::Setup<E>, mirage::CommittedR1cs<'_, Scalar<E>>, &mut R) -> _ =
        |setup, circuit, rng| setup.key_with_progress(circuit, rng, &|_| {});
    let zkey: fn(&R1csFile<'_>, &mut R) -> _ = |circuit, rng| {
        snarkjs::setup_zkey::<E, _>(circuit, rng, std::io::Cursor::new(Vec::new()), &|_| {})
    };
    black_box((keys as *const (), key as *const (), zkey as *const ()));
    let staged: fn(
        &ResidentKey<E>,
        &[Scalar<E>],
        &mut R,
        &mut dyn FnMut(ProverStage),
    ) -> Proved<E> = |key, z, rng, enter| key.prover().prove_observed(z, rng, enter);
    let whole: fn(
        &ProvingKey<E>,
        &R1cs<Scalar<E>>,
        &Assignment<Scalar<E>>,
        &mut R,
    ) -> Result<(Proof<E>, Timings), ProveError> =
        |key, r1cs, assignment, rng| prove(key, r1cs, assignment, rng);
    let of_mirage: fn(
        &mirage::ResidentKey<E>,
        &[Scalar<E>],
        &mirage::Opening<E>,
        &mut R,
    ) -> Proved<E> = |key, z, opening, rng| key.prover().prove(z, opening, rng);
    black_box((
        staged as *const (),
        whole as *const (),
        of_mirage as *const (),
    ));
    let batch: fn(&PreparedVerifyingKey<E>, &[(&[Scalar<E>], &Proof<E>)], &mut R) -> _ =
        |key, proofs, rng| verify_batch(key, proofs, rng);
    let mirages: fn(&[mirage::Claim<'_, E>], &mut R) -> _ =
        |claims, rng| mirage::verify_batch(claims, rng);
    black_box((batch as *const (), mirages as *const ()));
}
