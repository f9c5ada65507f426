//! Points of a curve by their x-coordinates.

use ark_ec::CurveGroup;
use ark_ec::short_weierstrass::{Affine, SWCurveConfig};
use rayon::prelude::*;

use crate::{InstructionSet, MsmGroup};

/// Points of a task.
const CHUNK: usize = 64;

/// For each x-coordinate, one of the two opposite points of the curve with it; `None` if there are none. The
/// point may be outside the subgroup of prime order ([`in_subgroup_each`](crate::in_subgroup_each)). Runs on all
/// threads of the current rayon pool.
pub fn point_of_x_each<G: MsmGroup>(xs: &[G::BaseField]) -> Vec<Option<G::Affine>> {
    point_of_x_each_on::<G>(InstructionSet::current(), xs)
}

/// Like [`point_of_x_each`], on a chosen back end.
///
/// # Panics
///
/// If this machine lacks the instructions.
pub fn point_of_x_each_on<G: MsmGroup>(
    set: InstructionSet,
    xs: &[<G as CurveGroup>::BaseField],
) -> Vec<Option<G::Affine>> {
    xs.par_chunks(CHUNK)
        .flat_map_iter(|xs| G::point_of_x_each_here(set, xs))
        .collect()
}

/// The same by arkworks' arithmetic, on this thread.
pub(crate) fn portable<P: SWCurveConfig>(xs: &[P::BaseField]) -> Vec<Option<Affine<P>>> {
    xs.iter().map(|x| point_of_x(*x)).collect()
}

pub(crate) fn point_of_x<P: SWCurveConfig>(x: P::BaseField) -> Option<Affine<P>> {
    Affine::get_point_from_x_unchecked(x, false)
}
