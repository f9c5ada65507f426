//! One step of the machine as constraints: the gadget takes the state before and returns the state after, and what it
//! puts into the multiset and takes.
//!
//! The units are those of a small processor: [`operands`] (the row of the program and the two operands), [`adder`],
//! [`multiplier`] (which shifts and divides too), [`data`] (the accessed word), [`calls`], and [`result`] (the
//! destination and the next pc).

mod adder;
mod calls;
mod data;
mod multiplier;
mod operands;
mod result;

use ark_ff::PrimeField;
use ark_relations::gr1cs::SynthesisError;

use self::adder::Adder;
use self::calls::Calls;
use self::data::{Data, Selected};
use self::multiplier::Words;
use self::operands::{Fields, Operands};
use self::result::Units;
use crate::builder::Builder;
use crate::entry::{Entry, REGISTERS, TIME_BITS};
use crate::row::{Flag, Row};
use crate::sum::Sum;

pub(crate) use multiplier::Advice;
pub(crate) use operands::low;

/// The accesses of a step: the left and the right operand, the data word, the destination.
pub(crate) const ACCESSES: usize = 4;

/// The first time of a step, as a multiple of its number from 1: an access has the time of its place.
pub(crate) const STEP_TIME: i128 = ACCESSES as i128;

/// The private values of a step. Everything else follows from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StepWitness {
    /// The row of the program.
    pub(crate) row: Row,
    /// The left operand's register.
    pub(crate) left: u32,
    /// The right operand's register.
    pub(crate) right: u32,
    /// The accessed data word before, or 0.
    pub(crate) word: u32,
    /// The destination before.
    pub(crate) destination: u32,
    /// The time of the access before, for each access.
    pub(crate) times: [u32; ACCESSES],
}

/// The state between steps.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// The address of the next instruction, or [`HALTED`](crate::row::HALTED).
    pub(crate) pc: Sum,
    /// The number of bytes of the input that were read.
    pub(crate) read: Sum,
    /// The number of bytes of the output that were written.
    pub(crate) written: Sum,
}

/// The length of the input: `4 · whole_words + tail` bytes.
#[derive(Clone, Debug)]
pub(crate) struct InputLength {
    /// Four times the number of whole words.
    pub(crate) whole: Sum,
    /// Bytes beyond, 0 to 3.
    pub(crate) tail: Sum,
}

/// What a step leaves.
#[derive(Clone, Debug)]
pub(crate) struct StepOutcome {
    /// The state after.
    pub(crate) state: State,
    /// Entries that are taken: the row, and each access's word before.
    pub(crate) takes: Vec<Entry>,
    /// Entries that are put: each access's word after.
    pub(crate) puts: Vec<Entry>,
}

/// Adds the constraints of a step. `time` is that of its first access.
pub(crate) fn synthesize<F: PrimeField>(
    b: &mut Builder<F>,
    state: &State,
    time: &Sum,
    input: &InputLength,
    witness: &StepWitness,
) -> Result<StepOutcome, SynthesisError> {
    synthesize_advised(b, state, time, input, witness, |advice| advice)
}

/// Like [`synthesize`]; what is filled into the multiplier's words may be replaced.
pub(crate) fn synthesize_advised<F: PrimeField>(
    b: &mut Builder<F>,
    state: &State,
    time: &Sum,
    input: &InputLength,
    witness: &StepWitness,
    advise: impl FnOnce(Advice) -> Advice,
) -> Result<StepOutcome, SynthesisError> {
    let row = Fields::new(b, &state.pc, &witness.row)?;
    let operands = Operands::new(b, &row, witness)?;
    let calls = Calls::new(b, &row, &operands, state, input)?;
    let selected = Selected::new(&row, &calls);
    let byte = byte_offset(witness, &operands, &calls, state);
    let advice = Advice::new(witness, &operands, byte);
    let words = Words::new(b, &operands, &advise(advice))?;
    let adder = Adder::new(b, &row, &operands, &calls, state, &words)?;
    let word = b.witness(witness.word.into())?;
    let power = multiplier::enforce(b, &row, &operands, &adder, &selected, &words, &word)?;
    let data = Data::new(b, &row, &operands, &adder, &selected, &words, &power, &word)?;
    let units = Units {
        row: &row,
        operands: &operands,
        calls: &calls,
        words: &words,
        adder: &adder,
        selected: &selected,
        data: &data,
        state,
    };
    let result = units.result(b)?;
    let result = b.product(&row.is_sink.not(), &result)?;
    let pc = units.next_pc(b)?;

    let destination = b.ranged(witness.destination.into(), 32)?;
    let register = |number: &Sum| Sum::of(REGISTERS, [(1, number)]);
    let accesses = [
        (
            register(&row.rs1),
            operands.left.number(),
            operands.left.number(),
        ),
        (
            register(&row.rs2),
            operands.register.clone(),
            operands.register.clone(),
        ),
        (data.address.clone(), word, data.after.clone()),
        (register(&row.rd), destination, result.clone()),
    ];
    let mut outcome = StepOutcome {
        state: State {
            pc,
            read: calls.read,
            written: calls.written,
        },
        takes: vec![row.entry],
        puts: Vec::with_capacity(ACCESSES),
    };
    for (place, (address, before, after)) in accesses.into_iter().enumerate() {
        let now = Sum::of(place as i128, [(1, time)]);
        // The time before is smaller by one more than a number of TIME_BITS bits.
        let gap = now.value() - 1 - i128::from(witness.times[place]);
        let gap = b.ranged(gap, TIME_BITS)?;
        let earlier = Sum::of(-1, [(1, &now), (-1, &gap)]);
        (outcome.takes).push(Entry::word(&address, &before, &earlier));
        (outcome.puts).push(Entry::word(&address, &after, &now));
    }
    Ok(outcome)
}

/// The offset of an access in its word, natively; nothing if no word is accessed.
fn byte_offset(
    witness: &StepWitness,
    operands: &Operands,
    calls: &Calls,
    state: &State,
) -> Option<u32> {
    let row = &witness.row;
    let address = if row.has(Flag::Load) || row.has(Flag::Store) {
        operands.left.value().wrapping_add(row.immediate).into()
    } else if calls.reads.value() == 1 {
        state.read.value()
    } else if calls.writes.value() == 1 {
        state.written.value()
    } else {
        return None;
    };
    Some((address & 3) as u32)
}
