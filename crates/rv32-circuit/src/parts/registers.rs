//! The last part: registers, the exit code, and the end of the execution.

use ark_ff::PrimeField;
use proofmill_partition::{Part, PartitionError};
use proofmill_rv32::Register;

use super::portal::{self, MARKED, PC, WRITTEN};
use crate::builder::Builder;
use crate::circuit::Rv32Circuit;
use crate::entry::{Entry, REGISTERS, TIME_BITS};
use crate::part_witness::{PartWitness, initial_register};
use crate::row::HALTED;
use crate::sum::Sum;

/// Index of the exit code among the public inputs.
const EXIT_CODE: usize = 0;

/// Index of the output's length among the public inputs.
const OUTPUT_LENGTH: usize = 1;

pub(crate) fn registers<F: PrimeField>(
    circuit: &Rv32Circuit,
    witness: &PartWitness,
    wires: &mut Part<'_, F>,
) -> Result<(), PartitionError> {
    let mut b = Builder::new(wires.cs())?;
    let (shape, at) = (&circuit.shape, &witness.at);
    let pc = portal::get(&b, wires, (PC, shape.step_parts), at.pc.into())?;
    b.enforce_zero(&pc.plus(-1, &Sum::constant(HALTED.into())))?;
    let written = portal::get(&b, wires, (WRITTEN, shape.step_parts), at.written.into())?;
    let length = portal::public(&b, wires, OUTPUT_LENGTH, at.written.into())?;
    b.enforce_zero(&written.plus(-1, &length))?;
    let marked = portal::get(&b, wires, (MARKED, shape.input_parts), 1)?;
    b.enforce_zero(&marked.plus(-1, &Sum::constant(1)))?;

    for (register, state) in witness.words.iter().enumerate() {
        let address = Sum::constant(REGISTERS + register as i128);
        let initial = Sum::constant(initial_register(register).into());
        Entry::word(&address, &initial, &Sum::default()).put(wires)?;
        if register == Register::A0.index() {
            let value = b.ranged(state.value.into(), 32)?;
            let time = b.ranged(state.time.into(), TIME_BITS)?;
            let exit_code = portal::public(&b, wires, EXIT_CODE, state.value.into())?;
            b.enforce_zero(&value.clone().plus(-1, &exit_code))?;
            Entry::word(&address, &value, &time).take(wires)?;
            continue;
        }
        state.take(address.value(), wires)?;
    }
    Ok(())
}
