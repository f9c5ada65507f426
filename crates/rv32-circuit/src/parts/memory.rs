//! Parts with words of memory: the program's data, and words that are zero at the start.
//!
//! A word is put once with its initial value, and its last state is taken. The last state is an arbitrary entry:
//! accesses take entries of their own address and put as many, so one of each address is left.

use ark_ff::PrimeField;
use proofmill_partition::{Part, PartitionError};

use super::portal::{self, LAST_ADDRESS};
use crate::builder::Builder;
use crate::circuit::{DATA_END, DATA_START, Rv32Circuit};
use crate::entry::Entry;
use crate::part_witness::PartWitness;
use crate::sum::Sum;

/// Bits of the distance between two addresses.
const DISTANCE_BITS: usize = 23;

/// A part with initial data.
pub(crate) fn data<F: PrimeField>(
    circuit: &Rv32Circuit,
    index: usize,
    witness: &PartWitness,
    wires: &mut Part<'_, F>,
) -> Result<(), PartitionError> {
    let b = Builder::new(wires.cs())?;
    let first = index * circuit.shape.data_words;
    let base = portal::constant(&b, wires, DATA_START + first as i128)?;
    for (row, last) in witness.words.iter().enumerate() {
        let initial = circuit.image.get(first + row).copied().unwrap_or_default();
        let value = portal::constant(&b, wires, initial.into())?;
        let address = Sum::of(row as i128, [(1, &base)]);
        Entry::word(&address, &value, &Sum::default()).put(wires)?;
        last.take(address.value(), wires)?;
    }
    Ok(())
}

/// A part with words that are zero at the start. Addresses increase strictly through all such parts, from the end of
/// the initial data to the end of memory, so that no word is put twice.
pub(crate) fn zero<F: PrimeField>(
    index: usize,
    witness: &PartWitness,
    wires: &mut Part<'_, F>,
) -> Result<(), PartitionError> {
    let mut b = Builder::new(wires.cs())?;
    let mut addresses = witness.addresses.iter().copied().map(i128::from);
    let before = addresses.next().unwrap_or_default();
    let mut last = portal::get(&b, wires, (LAST_ADDRESS, index), before)?;
    for (value, word) in addresses.zip(&witness.words) {
        // A variable of its own: sums would grow from word to word.
        let address = b.witness(value)?;
        b.enforce_range(&Sum::of(-1, [(1, &address), (-1, &last)]), DISTANCE_BITS)?;
        last = address;
        Entry::word(&last, &Sum::default(), &Sum::default()).put(wires)?;
        word.take(value, wires)?;
    }
    let room = Sum::of(DATA_END - 1, [(-1, &last)]);
    b.enforce_range(&room, DISTANCE_BITS)?;
    portal::set(wires, (LAST_ADDRESS, index + 1), &last)
}
