//! Portals between parts, whose values are integers.

use ark_ff::PrimeField;
use proofmill_partition::{Name, Part, PartitionError};

use crate::builder::Builder;
use crate::sum::Sum;

/// Address of the instruction before the steps of a part.
pub(super) const PC: &str = "pc";
/// Bytes of the input read before the steps of a part.
pub(super) const READ: &str = "read";
/// Bytes of the output written before the steps of a part.
pub(super) const WRITTEN: &str = "written";
/// Address of the last word of memory before those of a part.
pub(super) const LAST_ADDRESS: &str = "last address";
/// Number of words of the input, before those of a part, that are marked as the first beyond the whole ones.
pub(super) const MARKED: &str = "marked";
/// Bytes in whole words of the input.
pub(super) const WHOLE: &str = "whole";
/// Bytes of the input beyond whole words.
pub(super) const TAIL: &str = "tail";
/// Whether the tail has this many bytes.
pub(super) const TAIL_IS: &str = "tail is";

/// Reads a portal.
pub(super) fn get<F: PrimeField>(
    b: &Builder<F>,
    wires: &mut Part<'_, F>,
    name: impl Into<Name>,
    value: i128,
) -> Result<Sum, PartitionError> {
    let wire = wires.get(name)?;
    Ok(b.wire(wire, value))
}

/// Sets a portal.
pub(super) fn set<F: PrimeField>(
    wires: &mut Part<'_, F>,
    name: impl Into<Name>,
    sum: &Sum,
) -> Result<(), PartitionError> {
    wires.set_sum(name, F::from(sum.value()), || sum.combination(F::one()))
}

/// Reads a public input.
pub(super) fn public<F: PrimeField>(
    b: &Builder<F>,
    wires: &mut Part<'_, F>,
    index: usize,
    value: i128,
) -> Result<Sum, PartitionError> {
    let wire = wires.public_input(index)?;
    Ok(b.wire(wire, value))
}

/// A value that the partition fixes.
pub(super) fn constant<F: PrimeField>(
    b: &Builder<F>,
    wires: &mut Part<'_, F>,
    value: i128,
) -> Result<Sum, PartitionError> {
    let wire = wires.constant(F::from(value))?;
    Ok(b.wire(wire, value))
}
