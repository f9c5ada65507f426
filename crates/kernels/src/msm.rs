//! Multi-scalar multiplication.

use ark_ff::PrimeField;

use crate::MsmGroup;
use crate::portable;

/// `Σ scalars[i] · bases[i]`, on all threads of the current rayon pool.
///
/// Scalars 0 and 1 are set apart first: most of a witness of bits is one or the other, and costs
/// nothing or an addition.
///
/// # Panics
///
/// If the slices differ in length.
pub fn msm<G: MsmGroup>(bases: &[G::Affine], scalars: &[G::ScalarField]) -> G {
    assert_eq!(bases.len(), scalars.len(), "one scalar for each base");
    portable::msm::msm(bases, |i| scalars[i].into_bigint())
}

/// As [`msm`], for scalars already out of Montgomery form. They must be below the group's order.
///
/// # Panics
///
/// If the slices differ in length.
pub fn msm_bigint<G: MsmGroup>(
    bases: &[G::Affine],
    scalars: &[<G::ScalarField as PrimeField>::BigInt],
) -> G {
    assert_eq!(bases.len(), scalars.len(), "one scalar for each base");
    portable::msm::msm(bases, |i| scalars[i])
}

/// `scalars[i] · base` for every `i`: windowed, with a table of `base`'s multiples.
///
/// Not in constant time: meant for key generation on a machine nobody else shares.
pub fn fixed_base<G: MsmGroup>(base: G, scalars: &[G::ScalarField]) -> Vec<G::Affine> {
    portable::fixed_base::fixed_base(base, scalars)
}
