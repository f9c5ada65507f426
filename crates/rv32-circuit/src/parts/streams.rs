//! Parts with the input and the output: words of memory that calls access.

use ark_ff::PrimeField;
use ark_relations::gr1cs::LinearCombination;
use proofmill_partition::{Part, PartitionError};

use super::portal::{self, MARKED, TAIL_IS, WHOLE};
use crate::builder::Builder;
use crate::circuit::Rv32Circuit;
use crate::entry::{Entry, INPUT_WORDS, OUTPUT_WORDS, TIME_BITS};
use crate::part_witness::PartWitness;
use crate::shape::PACKED_WORDS;
use crate::statement::{OUTPUT_START, output_end};
use crate::sum::{Sum, number};

/// A part with the input.
///
/// Over all such parts, exactly one word is marked: the first beyond the whole ones. Its bytes beyond the tail are
/// zero.
pub(crate) fn input<F: PrimeField>(
    circuit: &Rv32Circuit,
    index: usize,
    witness: &PartWitness,
    wires: &mut Part<'_, F>,
) -> Result<(), PartitionError> {
    let mut b = Builder::new(wires.cs())?;
    let length = i128::from(witness.input_length);
    let first = index * circuit.shape.input_words;
    let base = portal::constant(&b, wires, first as i128)?;
    let whole = portal::get(&b, wires, WHOLE, length & !3)?;
    let mut tails = Vec::with_capacity(3);
    for tail in 0..3 {
        let value = i128::from(length & 3 == tail as i128);
        tails.push(portal::get(&b, wires, (TAIL_IS, tail), value)?);
    }
    let before = i128::from(length >> 2 < first as i128);
    let mut marked = portal::get(&b, wires, (MARKED, index), before)?;
    let mut group = Vec::with_capacity(PACKED_WORDS);
    for (row, state) in (first..).zip(&witness.words) {
        let bits = b.bits(state.value.into(), 32)?;
        let value = number(&bits);
        let position = Sum::of((row - first) as i128, [(1, &base)]);
        let address = position.clone().plus(1, &Sum::constant(INPUT_WORDS));
        Entry::word(&address, &value, &Sum::default()).put(wires)?;
        state.take(address.value(), wires)?;

        let mark = b.bit(length >> 2 == row as i128)?;
        b.enforce(
            &mark,
            &Sum::of(0, [(4, &position), (-1, &whole)]),
            &Sum::default(),
        )?;
        marked.add(1, &mark);
        let excess = bytes_beyond(&mut b, &bits, &tails)?;
        b.enforce(&mark, &excess, &Sum::default())?;

        group.push(value);
        if circuit.shape.input_is_public && group.len() == PACKED_WORDS {
            let first = output_end(&circuit.shape) + 1;
            packed(wires, &group, first + row / PACKED_WORDS)?;
        }
        group.truncate(group.len() % PACKED_WORDS);
    }
    portal::set(wires, (MARKED, index + 1), &marked)
}

/// The sum of a word's bytes beyond the tail, which are zero if it is.
fn bytes_beyond<F: PrimeField>(
    b: &mut Builder<F>,
    bits: &[Sum],
    tails: &[Sum],
) -> Result<Sum, PartitionError> {
    // Byte i is beyond the tail if the tail has at most i bytes. It has at most 3.
    let mut excess = number(&bits[24..]);
    let mut beyond = Sum::default();
    for (byte, tail) in tails.iter().enumerate() {
        beyond.add(1, tail);
        let term = b.product(&beyond, &number(&bits[8 * byte..8 * byte + 8]))?;
        excess.add(1, &term);
    }
    Ok(excess)
}

/// A part with the output.
pub(crate) fn output<F: PrimeField>(
    circuit: &Rv32Circuit,
    index: usize,
    witness: &PartWitness,
    wires: &mut Part<'_, F>,
) -> Result<(), PartitionError> {
    let mut b = Builder::new(wires.cs())?;
    let first = index * circuit.shape.output_words;
    let base = portal::constant(&b, wires, OUTPUT_WORDS + first as i128)?;
    let mut group = Vec::with_capacity(PACKED_WORDS);
    for (row, state) in (first..).zip(&witness.words) {
        let address = Sum::of((row - first) as i128, [(1, &base)]);
        Entry::word(&address, &Sum::default(), &Sum::default()).put(wires)?;
        let value = b.ranged(state.value.into(), 32)?;
        let time = b.ranged(state.time.into(), TIME_BITS)?;
        Entry::word(&address, &value, &time).take(wires)?;
        group.push(value);
        if group.len() == PACKED_WORDS {
            packed(wires, &group, OUTPUT_START + row / PACKED_WORDS)?;
            group.clear();
        }
    }
    Ok(())
}

/// Enforces that a public input packs these words, the first in the lowest bits.
fn packed<F: PrimeField>(
    wires: &mut Part<'_, F>,
    words: &[Sum],
    index: usize,
) -> Result<(), PartitionError> {
    let public = wires.public_input(index)?;
    let cs = wires.cs();
    if !cs.should_construct_matrices() {
        return Ok(());
    }
    let zero = LinearCombination::zero;
    cs.enforce_r1cs_constraint(zero, zero, || {
        let mut sum = zero();
        let mut weight = F::one();
        for word in words {
            word.add_to(&mut sum, weight);
            weight *= F::from(1u64 << 32);
        }
        sum.0.push((-F::one(), public.variable));
        sum
    })?;
    Ok(())
}
