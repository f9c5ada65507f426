//! Parts with steps.

use ark_ff::PrimeField;
use proofmill_partition::{Part, PartitionError};

use super::portal::{self, PC, READ, TAIL, WHOLE, WRITTEN};
use crate::builder::Builder;
use crate::circuit::Rv32Circuit;
use crate::part_witness::PartWitness;
use crate::step::{self, InputLength, STEP_TIME, State};
use crate::sum::Sum;

pub(crate) fn steps<F: PrimeField>(
    circuit: &Rv32Circuit,
    index: usize,
    witness: &PartWitness,
    wires: &mut Part<'_, F>,
) -> Result<(), PartitionError> {
    let mut b = Builder::new(wires.cs())?;
    let first = index * circuit.shape.steps;
    let base = STEP_TIME * (first as i128 + 1);
    let base = portal::constant(&b, wires, base)?;
    let length = i128::from(witness.input_length);
    let input = InputLength {
        whole: portal::get(&b, wires, WHOLE, length & !3)?,
        tail: portal::get(&b, wires, TAIL, length & 3)?,
    };
    let at = &witness.at;
    let mut state = State {
        pc: portal::get(&b, wires, (PC, index), at.pc.into())?,
        read: portal::get(&b, wires, (READ, index), at.read.into())?,
        written: portal::get(&b, wires, (WRITTEN, index), at.written.into())?,
    };
    for (step, record) in witness.steps.iter().enumerate() {
        let time = Sum::of(STEP_TIME * step as i128, [(1, &base)]);
        let outcome = step::synthesize(
            &mut b,
            &state,
            &time,
            &input,
            &record.witness(&circuit.rows),
        )?;
        for entry in &outcome.takes {
            entry.take(wires)?;
        }
        for entry in &outcome.puts {
            entry.put(wires)?;
        }
        state = fresh(&mut b, outcome.state)?;
    }
    portal::set(wires, (PC, index + 1), &state.pc)?;
    portal::set(wires, (READ, index + 1), &state.read)?;
    portal::set(wires, (WRITTEN, index + 1), &state.written)
}

/// The state as variables of its own: sums would grow from step to step.
fn fresh<F: PrimeField>(b: &mut Builder<F>, state: State) -> Result<State, PartitionError> {
    let mut fresh = |sum: Sum| -> Result<Sum, PartitionError> {
        let variable = b.witness(sum.value())?;
        b.enforce_zero(&sum.plus(-1, &variable))?;
        Ok(variable)
    };
    Ok(State {
        pc: fresh(state.pc)?,
        read: fresh(state.read)?,
        written: fresh(state.written)?,
    })
}
