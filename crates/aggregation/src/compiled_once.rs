//! In development builds: the functions over each curve, compiled once, as
//! [`proofmill_groth16::compiled_once`] has its own.

#![allow(
    clippy::type_complexity,
    reason = "each type is written where the function is named"
)]

use std::hint::black_box;

use ark_std::rand::rngs::{OsRng, StdRng};
use ark_std::rand::{CryptoRng, RngCore};
use proofmill_groth16::{Bls12_381, Bn254, Proof};

use crate::{
    Aggregate, AggregateError, AggregateProveError, AggregateVerifyError, AggregationCurve,
    AggregationFileError, Groth16Index, IndexError, MirageIndex, MirageParts, MirageStatement,
    MirageVerifyingKey, Srs, SrsError,
};

/// Refers to the functions over each curve. It has no other effect.
#[doc(hidden)]
pub fn compiled_once() {
    of_curve::<Bn254>();
    of_curve::<Bls12_381>();
}

fn of_curve<E: AggregationCurve>() {
    strings::<E, OsRng>();
    strings::<E, StdRng>();
    let read: fn(&[u8]) -> Result<Aggregate<E>, AggregateError> = Aggregate::from_bytes;
    let index: fn(&Srs<E>, _, _) -> Result<Groth16Index<E>, IndexError> = Groth16Index::new;
    let aggregate: fn(
        &_,
        &_,
        &[Vec<E::ScalarField>],
        &[Proof<E>],
    ) -> Result<Aggregate<E>, AggregateProveError> = Groth16Index::<E>::aggregate;
    let verify: fn(&_, &[Vec<E::ScalarField>], &Aggregate<E>) -> Result<(), AggregateVerifyError> =
        Groth16Index::<E>::verify;
    black_box((read as *const (), index as *const ()));
    black_box((aggregate as *const (), verify as *const ()));
    let index: fn(&Srs<E>, MirageParts<E>) -> Result<MirageIndex<E>, IndexError> = MirageIndex::new;
    let aggregate: fn(
        &_,
        &_,
        MirageStatement<'_, E>,
        &[Proof<E>],
        &[E::G1Affine],
    ) -> Result<Aggregate<E>, AggregateProveError> = MirageIndex::<E>::aggregate;
    let verify: fn(&_, MirageStatement<'_, E>, &Aggregate<E>) -> Result<(), AggregateVerifyError> =
        MirageVerifyingKey::<E>::verify;
    black_box((
        index as *const (),
        aggregate as *const (),
        verify as *const (),
    ));
}

fn strings<E: AggregationCurve, R: RngCore + CryptoRng>() {
    let make: fn(usize, &mut R) -> Result<Srs<E>, SrsError> =
        |capacity, rng| Srs::setup(capacity, rng);
    let contribute: fn(&mut Srs<E>, &mut R) = |srs, rng| srs.contribute(rng);
    let check: fn(&Srs<E>) -> Result<(), SrsError> = Srs::check;
    let read: fn(&[u8]) -> Result<Srs<E>, AggregationFileError> = Srs::from_bytes;
    black_box((make as *const (), contribute as *const ()));
    black_box((check as *const (), read as *const ()));
}
