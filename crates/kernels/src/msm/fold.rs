//! Two vectors of points folded by one scalar, as inner-product arguments fold their bases.

use ark_ec::short_weierstrass::{Affine, SWCurveConfig};
use rayon::prelude::*;

use super::multiply_each::{CHUNK, scaled};
use crate::portable::batch_add::batch_add_assign;
use crate::portable::inversion::Invertible;
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

/// Like [`fold`], on a chosen back end.
///
/// # Panics
///
/// As for [`fold`], and if this machine lacks the instructions.
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

/// The same by portable arithmetic, on this thread.
pub(crate) fn portable<P: SWCurveConfig<BaseField: Invertible>>(
    left: &[Affine<P>],
    right: &[Affine<P>],
    scalar: P::ScalarField,
) -> Vec<Affine<P>> {
    let mut sums = scaled(right, &vec![scalar; right.len()]);
    batch_add_assign(&mut sums, left);
    sums
}
