//! Multiples of points, each by a number of its own.

use ark_ec::short_weierstrass::{Affine, Projective, SWCurveConfig};
use ark_ec::{AffineRepr, CurveGroup};
use rayon::prelude::*;

use crate::{InstructionSet, MsmGroup};

/// Points of a task.
pub(crate) const CHUNK: usize = 64;

/// `numbers[i] · points[i]` for every i, on all threads of the current rayon pool: points that are
/// to be combined under random weights, where each is needed for itself.
///
/// Points must lie in the prime-order subgroup, or be the point at infinity. Its time depends on
/// both: do not use it where an attacker measures it and one of them is secret.
///
/// # Panics
///
/// If the slices differ in length.
pub fn multiply_each<G: MsmGroup>(points: &[G::Affine], numbers: &[u128]) -> Vec<G::Affine> {
    multiply_each_on::<G>(InstructionSet::current(), points, numbers)
}

/// As [`multiply_each`], on a chosen back end.
///
/// # Panics
///
/// As for [`multiply_each`], and if this machine has not the instructions.
pub fn multiply_each_on<G: MsmGroup>(
    set: InstructionSet,
    points: &[G::Affine],
    numbers: &[u128],
) -> Vec<G::Affine> {
    assert_eq!(points.len(), numbers.len(), "one number for each point");
    points
        .par_chunks(CHUNK)
        .zip(numbers.par_chunks(CHUNK))
        .flat_map_iter(|(points, numbers)| G::multiply_each_here(set, points, numbers))
        .collect()
}

/// By arkworks' arithmetic, on this thread.
pub(crate) fn portable<P: SWCurveConfig>(points: &[Affine<P>], numbers: &[u128]) -> Vec<Affine<P>> {
    let multiples: Vec<Projective<P>> = points
        .iter()
        .zip(numbers)
        .map(|(point, number)| point.mul_bigint([*number as u64, (*number >> 64) as u64]))
        .collect();
    Projective::normalize_batch(&multiples)
}
