//! Entries of the multiset: rows of the program and states of memory words, each packed into one field element.
//!
//! An entry is `low + 2¹⁵⁰ · top`. `low` is an integer below 2⁸⁰ in absolute value (a time that is taken may be negative
//! before it is known to be one that was put) whose parts are each in a range of their own, so that it determines them;
//! `top` is a 32-bit value.
//!
//! Where `top` is a variable without a range check, a prover could claim another `low` and let `top` be the difference,
//! divided by 2¹⁵⁰ in the field. Every such variable of a step, put or taken, therefore occurs in an equation with integers:
//! there are integers k ≤ 32 and |n| < 2⁹⁸ with `2ᵏ · top = n`. For what a step puts this needs a bound on pc, as a link is
//! pc + 4. The control bits of a row that is not the program's may be any, but the next pc is exactly one of pc + 4, the
//! immediate, the adder's sum and 2³² (`step/result.rs`), so that 2³² · pc stays an integer below 2⁹⁷ in every step.
//!
//! Let two entries, of (`low`, `top`) and (`low′`, `top′`), be equal. Then 2³² times their difference is zero in the field,
//! and an integer below 2²⁵⁰, less than the field's order: it is zero. So 2¹¹⁸ divides `low′ − low`, which is below 2⁸² in
//! absolute value: it is zero, and the entries are the same. Thus a row that is taken is one that was put, with the
//! program's tag.

use ark_ff::PrimeField;
use ark_relations::gr1cs::LinearCombination;
use proofmill_partition::{Part, PartitionError};

use crate::sum::Sum;

/// Bits of the address of a memory word: registers, data, input and output have addresses of their own.
pub(crate) const ADDRESS_BITS: usize = 32;

/// Bits of a time.
pub(crate) const TIME_BITS: usize = 28;

/// Exponent of the weight of `top`.
const TOP: u64 = 150;

/// Bits of the tag, which tells kinds of entries apart.
const TAG_BITS: usize = 2;

/// Tag of rows of the program.
pub(crate) const PROGRAM_TAG: i128 = 1;

/// Tag of states of memory words.
const MEMORY_TAG: i128 = 2;

/// Address of register 0; those of the others follow. Addresses of data words are below, those of the input and the
/// output above.
pub(crate) const REGISTERS: i128 = 1 << 30;

/// The register that is written by instructions without a destination. It stays zero.
pub(crate) const SINK: u8 = 32;

/// Address of the word that is read by instructions that access none. It is always zero.
pub(crate) const NO_WORD: i128 = REGISTERS + 33;

/// Number of words in the address space of registers: 32 of the machine, [`SINK`], and [`NO_WORD`].
pub(crate) const REGISTER_WORDS: usize = 34;

/// Address of the first word of the input.
pub(crate) const INPUT_WORDS: i128 = 1 << 31;

/// Address of the first word of the output.
pub(crate) const OUTPUT_WORDS: i128 = INPUT_WORDS + (1 << 29);

/// An entry: its two parts.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    low: Sum,
    top: Sum,
}

// === impl Entry ===

impl Entry {
    /// A row of the program: everything but the immediate, and the immediate.
    pub(crate) fn row(low: Sum, immediate: Sum) -> Self {
        let low = Sum::of(PROGRAM_TAG, [(1 << TAG_BITS, &low)]);
        let top = immediate;
        Self { low, top }
    }

    /// A memory word that has had a value since a time.
    pub(crate) fn word(address: &Sum, value: &Sum, time: &Sum) -> Self {
        let time_weight = 1 << (TAG_BITS + ADDRESS_BITS);
        let weighted = [(1 << TAG_BITS, address), (time_weight, time)];
        Self {
            low: Sum::of(MEMORY_TAG, weighted),
            top: value.clone(),
        }
    }

    /// The packed value.
    pub(crate) fn value<F: PrimeField>(&self) -> F {
        F::from(self.low.value()) + top_weight::<F>() * F::from(self.top.value())
    }

    /// The packed value as a sum of variables.
    pub(crate) fn combination<F: PrimeField>(&self) -> LinearCombination<F> {
        let mut out = self.low.combination(F::one());
        self.top.add_to(&mut out, top_weight());
        out
    }

    /// Puts the entry into the multiset.
    pub(crate) fn put<F: PrimeField>(&self, part: &mut Part<'_, F>) -> Result<(), PartitionError> {
        part.put_sum(self.value(), || self.combination())
    }

    /// Takes the entry out of the multiset.
    pub(crate) fn take<F: PrimeField>(&self, part: &mut Part<'_, F>) -> Result<(), PartitionError> {
        part.take_sum(self.value(), || self.combination())
    }
}

fn top_weight<F: PrimeField>() -> F {
    F::from(2u64).pow([TOP])
}

/// The packed state of a word, for values that need no constraint.
pub(crate) fn packed_word<F: PrimeField>(address: i128, value: u32, time: u32) -> F {
    let sum = |value| Sum::constant(value);
    Entry::word(&sum(address), &sum(value.into()), &sum(time.into())).value()
}
