//! Parts with words of memory: the program's data, and words that are zero at the start.
//!
//! A word is put once with its initial value, and its last state is taken. The last state is an arbitrary entry:
//! accesses take entries of their own address and put as many, so one of each address is left.

use ark_ff::PrimeField;
use proofmill_partition::{Part, PartitionError};

use super::portal::{self, LAST_ADDRESS};
use crate::builder::Builder;
use crate::circuit::{DATA_END, DATA_START, Rv32Circuit};
use crate::entry::{Entry, packed_word};
use crate::sum::Sum;

/// Bits of the distance between two addresses.
const DISTANCE_BITS: usize = 23;

/// A part with initial data.
pub(crate) fn data<F: PrimeField>(
    circuit: &Rv32Circuit,
    index: usize,
    wires: &mut Part<'_, F>,
) -> Result<(), PartitionError> {
    let b = Builder::new(wires.cs())?;
    let words = circuit.shape.data_words;
    let first = index * words;
    let base = portal::constant(&b, wires, DATA_START + first as i128)?;
    for row in 0..words {
        let initial = circuit.image.get(first + row).copied().unwrap_or_default();
        let value = portal::constant(&b, wires, initial.into())?;
        let address = Sum::of(row as i128, [(1, &base)]);
        Entry::word(&address, &value, &Sum::default()).put(wires)?;
        take_last(circuit, address.value(), initial, wires)?;
    }
    Ok(())
}

/// A part with words that are zero at the start. Addresses increase strictly through all such parts, from the end of
/// the initial data to the end of memory, so that no word is put twice.
pub(crate) fn zero<F: PrimeField>(
    circuit: &Rv32Circuit,
    index: usize,
    wires: &mut Part<'_, F>,
) -> Result<(), PartitionError> {
    let mut b = Builder::new(wires.cs())?;
    let words = circuit.shape.zero_words;
    let first = index * words;
    let address_of = |row: usize| match row.checked_sub(1) {
        Some(row) => circuit
            .zero_addresses
            .get(row)
            .copied()
            .map_or(0, i128::from),
        None => DATA_START + circuit.image.len() as i128 - 1,
    };
    let mut last = portal::get(&b, wires, (LAST_ADDRESS, index), address_of(first))?;
    for row in first..first + words {
        // A variable of its own: sums would grow from word to word.
        let address = b.witness(address_of(row + 1))?;
        b.enforce_range(&Sum::of(-1, [(1, &address), (-1, &last)]), DISTANCE_BITS)?;
        last = address;
        Entry::word(&last, &Sum::default(), &Sum::default()).put(wires)?;
        take_last(circuit, address_of(row + 1), 0, wires)?;
    }
    let room = Sum::of(DATA_END - 1, [(-1, &last)]);
    b.enforce_range(&room, DISTANCE_BITS)?;
    portal::set(wires, (LAST_ADDRESS, index + 1), &last)
}

fn take_last<F: PrimeField>(
    circuit: &Rv32Circuit,
    address: i128,
    initial: u32,
    wires: &mut Part<'_, F>,
) -> Result<(), PartitionError> {
    let execution = circuit.execution.as_ref();
    let state = execution.and_then(|execution| execution.data.get(&address).copied());
    let (value, time) = state.map_or((initial, 0), |state| (state.value, state.time));
    let last = wires.witness(packed_word(address, value, time))?;
    wires.take(last)
}
