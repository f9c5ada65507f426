//! The first part: the state before the first step, and the length of the input.

use ark_ff::PrimeField;
use proofmill_partition::{Part, PartitionError};

use super::portal::{self, LAST_ADDRESS, MARKED, PC, READ, TAIL, TAIL_IS, WHOLE, WRITTEN};
use crate::builder::Builder;
use crate::circuit::{DATA_START, Rv32Circuit};
use crate::part_witness::PartWitness;
use crate::statement::output_end;
use crate::sum::Sum;

/// Bits of the number of whole words of the input.
const WORDS_BITS: usize = 24;

pub(crate) fn start<F: PrimeField>(
    circuit: &Rv32Circuit,
    witness: &PartWitness,
    wires: &mut Part<'_, F>,
) -> Result<(), PartitionError> {
    let mut b = Builder::new(wires.cs())?;
    let last = DATA_START + circuit.image.len() as i128 - 1;
    for (name, value) in [
        (PC, circuit.entry.into()),
        (READ, 0),
        (WRITTEN, 0),
        (LAST_ADDRESS, last),
        (MARKED, 0),
    ] {
        portal::set(wires, (name, 0), &Sum::constant(value))?;
    }

    let length = i128::from(witness.input_length);
    let words = b.ranged(length >> 2, WORDS_BITS)?;
    let tails = (0..4).map(|tail| b.bit(length & 3 == tail));
    let tails = tails.collect::<Result<Vec<Sum>, _>>()?;
    b.enforce_zero(&Sum::of(-1, tails.iter().map(|tail| (1, tail))))?;
    let whole = Sum::of(0, [(4, &words)]);
    let tail = Sum::of(0, (0..).zip(&tails));
    if circuit.shape.input_is_public {
        let index = output_end(&circuit.shape);
        let public = portal::public(&b, wires, index, length)?;
        b.enforce_zero(&public.plus(-1, &whole).plus(-1, &tail))?;
    }
    portal::set(wires, WHOLE, &whole)?;
    portal::set(wires, TAIL, &tail)?;
    for (index, is) in tails[..3].iter().enumerate() {
        portal::set(wires, (TAIL_IS, index), is)?;
    }
    Ok(())
}
