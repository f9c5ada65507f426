//! Products of powers in the target group.

use ark_ec::pairing::PairingOutput;
use ark_ff::One;
use rayon::prelude::*;

use super::PairingCurve;
use crate::InstructionSet;

/// Elements of a task: their tables stay in a core's second-level cache.
const CHUNK: usize = 64;

/// `Π bases[i]^exponents[i]` in the target group, on all threads of the current rayon pool: what
/// arkworks, which writes the group additively, has as the sum of `bases[i] * exponents[i]`.
///
/// Bases must be of the target group, as every value of a pairing is. Its time depends on the exponents:
/// do not use it where an attacker measures it and they are secret.
///
/// # Panics
///
/// If the slices differ in length.
pub fn multi_power<E: PairingCurve>(
    bases: &[PairingOutput<E>],
    exponents: &[E::ScalarField],
) -> PairingOutput<E> {
    multi_power_on(InstructionSet::current(), bases, exponents)
}

/// Like [`multi_power`], on a chosen back end.
///
/// # Panics
///
/// As for [`multi_power`], and if this machine lacks the instructions.
pub fn multi_power_on<E: PairingCurve>(
    set: InstructionSet,
    bases: &[PairingOutput<E>],
    exponents: &[E::ScalarField],
) -> PairingOutput<E> {
    assert_eq!(bases.len(), exponents.len(), "one exponent for each base");
    let product = bases
        .par_chunks(CHUNK)
        .zip(exponents.par_chunks(CHUNK))
        .map(|(bases, exponents)| E::multi_power_here(set, bases, exponents))
        .reduce(E::TargetField::one, |left, right| left * right);
    PairingOutput(product)
}
