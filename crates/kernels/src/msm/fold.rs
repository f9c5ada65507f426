//! Two vectors of points folded by one scalar, as inner-product arguments fold their bases.

use ark_ec::CurveGroup;
use ark_ec::short_weierstrass::{Affine, Projective, SWCurveConfig};
use ark_ff::PrimeField;
use rayon::prelude::*;

use super::multiply_each::CHUNK;
use crate::{InstructionSet, MsmGroup};

/// `left[i] + scalar · right[i]` for every i, on all threads of the current rayon pool.
///
/// Points must lie in the prime-order subgroup, or be the point at infinity. Its time depends on all:
/// do not use it where an attacker measures it and one of them is secret.
///
/// # Panics
///
/// If the slices differ in length.
pub fn fold<G: MsmGroup>(
    left: &[G::Affine],
    right: &[G::Affine],
    scalar: G::ScalarField,
) -> Vec<G::Affine> {
    fold_on::<G>(InstructionSet::current(), left, right, scalar)
}

/// As [`fold`], on a chosen back end.
///
/// # Panics
///
/// As for [`fold`], and if this machine has not the instructions.
pub fn fold_on<G: MsmGroup>(
    set: InstructionSet,
    left: &[G::Affine],
    right: &[G::Affine],
    scalar: G::ScalarField,
) -> Vec<G::Affine> {
    assert_eq!(left.len(), right.len(), "one point for each point");
    left.par_chunks(CHUNK)
        .zip(right.par_chunks(CHUNK))
        .flat_map_iter(|(left, right)| G::fold_here(set, left, right, scalar))
        .collect()
}

/// By arkworks' arithmetic, on this thread.
pub(crate) fn portable<P: SWCurveConfig>(
    left: &[Affine<P>],
    right: &[Affine<P>],
    scalar: P::ScalarField,
) -> Vec<Affine<P>> {
    let scalar = scalar.into_bigint();
    let sums: Vec<Projective<P>> = left
        .iter()
        .zip(right)
        .map(|(left, right)| P::mul_affine(right, scalar.as_ref()) + left)
        .collect();
    Projective::normalize_batch(&sums)
}
