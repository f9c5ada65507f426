//! The accessed data word: loads and stores, and the words of the input and the output.

use ark_ff::PrimeField;
use ark_relations::gr1cs::SynthesisError;

use super::adder::Adder;
use super::calls::Calls;
use super::multiplier::Words;
use super::operands::{Fields, Operands, Word};
use crate::builder::Builder;
use crate::entry::{INPUT_WORDS, NO_WORD};
use crate::row::Flag;
use crate::sum::{Sum, number};

/// What kind of access a step makes: sums of bits, each 0 or 1.
pub(super) struct Selected {
    /// Any access.
    pub(super) accesses: Sum,
    /// An access to the input or the output.
    streams: Sum,
    /// A store or a write.
    changes: Sum,
    /// A load or a read.
    pub(super) fetches: Sum,
    /// Of two or four bytes.
    second_byte: Sum,
    /// Of four bytes.
    upper_half: Sum,
}

/// The access to a data word.
pub(super) struct Data {
    /// The word's address, or [`NO_WORD`].
    pub(super) address: Sum,
    /// The word after.
    pub(super) after: Sum,
    /// The loaded value, sign-extended.
    pub(super) loaded: Sum,
}

// === impl Selected ===

impl Selected {
    pub(super) fn new(row: &Fields, calls: &Calls) -> Self {
        let ones = |terms: &[&Sum]| Sum::of(0, terms.iter().map(|term| (1, *term)));
        let (load, store) = (row.flag(Flag::Load), row.flag(Flag::Store));
        Self {
            accesses: ones(&[load, store, &calls.reads, &calls.writes]),
            streams: ones(&[&calls.reads, &calls.writes]),
            changes: ones(&[store, &calls.writes]),
            fetches: ones(&[load, &calls.reads]),
            second_byte: ones(&[row.flag(Flag::SecondByte), &calls.words]),
            upper_half: ones(&[row.flag(Flag::UpperHalf), &calls.words]),
        }
    }

    /// The low 8, 16 or 32 bits of a word.
    fn part<F: PrimeField>(&self, b: &mut Builder<F>, word: &Word) -> Result<Sum, SynthesisError> {
        let second = b.product(&self.second_byte, &word.part(8, 16))?;
        let upper = b.product(&self.upper_half, &word.part(16, 32))?;
        let weighted = [(1 << 8, &second), (1 << 16, &upper)];
        Ok(Sum::of(0, weighted).plus(1, &word.part(0, 8)))
    }
}

// === impl Data ===

impl Data {
    /// `word` is the word before, and the high word of the multiplier is the same, shifted by the offset's bytes to the
    /// right. `power` is 2⁸ᵒ for the offset o.
    #[expect(
        clippy::too_many_arguments,
        reason = "one unit has wires from all others"
    )]
    pub(super) fn new<F: PrimeField>(
        b: &mut Builder<F>,
        row: &Fields,
        operands: &Operands,
        adder: &Adder,
        selected: &Selected,
        words: &Words,
        power: &Sum,
        word: &Sum,
    ) -> Result<Self, SynthesisError> {
        let zero = Sum::default();
        b.enforce(&selected.accesses.not(), word, &zero)?;
        // Half words are at even offsets, words at zero.
        b.enforce(&selected.second_byte, &adder.bits[0], &zero)?;
        b.enforce(&selected.upper_half, &adder.bits[1], &zero)?;
        let address = number(&adder.bits[2..]).plus(-1, &Sum::constant(NO_WORD));
        let address = b.product(&selected.accesses, &address)?;
        let address = Sum::of(NO_WORD, [(1, &address), (INPUT_WORDS, &selected.streams)]);

        let before = selected.part(b, &words.high)?;
        let stored = selected.part(b, &operands.right)?;
        let change = b.product(&stored.plus(-1, &before), power)?;
        let change = b.product(&selected.changes, &change)?;

        let byte_sign = b.product(row.flag(Flag::SignedByte), &words.high.bits[7])?;
        let half_sign = b.product(row.flag(Flag::SignedHalf), &words.high.bits[15])?;
        let extension = [
            ((1 << 32) - (1 << 8), &byte_sign),
            ((1 << 32) - (1 << 16), &half_sign),
        ];
        Ok(Self {
            address,
            after: word.clone().plus(1, &change),
            loaded: before.plus(1, &Sum::of(0, extension)),
        })
    }
}
