//! Environment calls: which one it is, and the positions in the input and the output.

use ark_ff::PrimeField;
use ark_relations::gr1cs::SynthesisError;
use proofmill_rv32::machine::{HALT, READ_BYTE, READ_WORD, REMAINING, WRITE_BYTE, WRITE_WORD};

use super::operands::{Fields, Operands};
use super::{InputLength, State};
use crate::builder::Builder;
use crate::row::Flag;
use crate::sum::Sum;

/// The number of environment calls, which have the numbers from 0.
const CALLS: usize = 6;

/// An environment call; all bits are 0 if the instruction is none.
pub(super) struct Calls {
    /// The program halts.
    pub(super) halt: Sum,
    /// The number of remaining bytes is asked for.
    pub(super) remaining: Sum,
    /// A byte is asked for at the end of the input.
    pub(super) byte_at_end: Sum,
    /// The input is read, not at its end.
    pub(super) reads: Sum,
    /// The output is written.
    pub(super) writes: Sum,
    /// A word is read, not at the end, or written.
    pub(super) words: Sum,
    /// Bytes of the input that are not read yet.
    pub(super) rest: Sum,
    /// The position in the input after the step.
    pub(super) read: Sum,
    /// The position in the output after the step.
    pub(super) written: Sum,
}

// === impl Calls ===

impl Calls {
    pub(super) fn new<F: PrimeField>(
        b: &mut Builder<F>,
        row: &Fields,
        operands: &Operands,
        state: &State,
        input: &InputLength,
    ) -> Result<Self, SynthesisError> {
        let call = row.flag(Flag::Call);
        let number = operands.left.number();
        let is = |i: usize| call.value() == 1 && number.value() == i as i128;
        let bits = (0..CALLS).map(|i| b.bit(is(i)));
        let bits = bits.collect::<Result<Vec<Sum>, _>>()?;
        let one_of_them = Sum::of(0, bits.iter().map(|bit| (1, bit)));
        b.enforce_zero(&one_of_them.plus(-1, call))?;
        let index = Sum::of(0, (0..).zip(&bits));
        b.enforce(call, &number.plus(-1, &index), &Sum::default())?;
        let bit = |number: u32| &bits[number as usize];

        let rest = Sum::of(0, [(1, &input.whole), (1, &input.tail), (-1, &state.read)]);
        let at_end = b.is_zero(&rest)?;
        let in_tail = b.is_zero(&input.whole.clone().plus(-1, &state.read))?;
        let byte = b.product(bit(READ_BYTE), &at_end.not())?;
        let word = b.product(bit(READ_WORD), &at_end.not())?;
        // A word advances by four bytes, or by the tail.
        let missing = b.product(&in_tail, &Sum::of(4, [(-1, &input.tail)]))?;
        let missing = b.product(&word, &missing)?;
        let advance = [(1, &byte), (4, &word), (-1, &missing)];
        let read = state.read.clone().plus(1, &Sum::of(0, advance));
        let (write_byte, write_word) = (bit(WRITE_BYTE), bit(WRITE_WORD));
        let written =
            (state.written.clone()).plus(1, &Sum::of(0, [(1, write_byte), (4, write_word)]));
        Ok(Self {
            halt: bit(HALT).clone(),
            remaining: bit(REMAINING).clone(),
            byte_at_end: Sum::of(0, [(1, bit(READ_BYTE)), (-1, &byte)]),
            reads: Sum::of(0, [(1, &byte), (1, &word)]),
            writes: Sum::of(0, [(1, write_byte), (1, write_word)]),
            words: Sum::of(0, [(1, &word), (1, write_word)]),
            rest,
            read,
            written,
        })
    }
}
