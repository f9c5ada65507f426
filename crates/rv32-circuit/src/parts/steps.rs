//! Parts with steps.

use ark_ff::PrimeField;
use proofmill_partition::{Part, PartitionError};

use super::portal::{self, PC, READ, TAIL, WHOLE, WRITTEN};
use crate::builder::Builder;
use crate::circuit::Rv32Circuit;
use crate::execution::Execution;
use crate::row::Row;
use crate::step::{self, InputLength, STEP_TIME, State, StepWitness};
use crate::sum::Sum;

pub(crate) fn steps<F: PrimeField>(
    circuit: &Rv32Circuit,
    index: usize,
    wires: &mut Part<'_, F>,
) -> Result<(), PartitionError> {
    let mut b = Builder::new(wires.cs())?;
    let execution = circuit.execution.as_ref();
    let count = circuit.shape.steps;
    let first = index * count;
    let base = STEP_TIME * (first as i128 + 1);
    let base = portal::constant(&b, wires, base)?;
    let length = execution.map_or(0, |execution| execution.input.len() as i128);
    let input = InputLength {
        whole: portal::get(&b, wires, WHOLE, length & !3)?,
        tail: portal::get(&b, wires, TAIL, length & 3)?,
    };
    let checkpoint = execution.and_then(|execution| execution.checkpoints.get(index));
    let at = checkpoint.copied().unwrap_or_default();
    let mut state = State {
        pc: portal::get(&b, wires, (PC, index), at.pc.into())?,
        read: portal::get(&b, wires, (READ, index), at.read.into())?,
        written: portal::get(&b, wires, (WRITTEN, index), at.written.into())?,
    };
    for step in 0..count {
        let witness = witness(execution, &circuit.rows, first + step);
        let time = Sum::of(STEP_TIME * step as i128, [(1, &base)]);
        let outcome = step::synthesize(&mut b, &state, &time, &input, &witness)?;
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

/// The private values of a step; those of a halted program where there is no witness.
fn witness(execution: Option<&Execution>, rows: &[Row], step: usize) -> StepWitness {
    let known = execution.and_then(|execution| execution.witness(rows, step));
    known.unwrap_or(StepWitness {
        row: Row::halted(),
        left: 0,
        right: 0,
        word: 0,
        destination: 0,
        times: [0; 4],
    })
}
