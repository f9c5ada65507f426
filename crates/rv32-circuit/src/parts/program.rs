//! Parts with the program: each row is in the multiset as often as it is executed.

use ark_ff::PrimeField;
use proofmill_partition::{Part, PartitionError};

use crate::circuit::Rv32Circuit;
use crate::entry::Entry;
use crate::part_witness::PartWitness;
use crate::row::Row;
use crate::step::low;
use crate::sum::Sum;

pub(crate) fn program<F: PrimeField>(
    circuit: &Rv32Circuit,
    index: usize,
    witness: &PartWitness,
    wires: &mut Part<'_, F>,
) -> Result<(), PartitionError> {
    let first = index * circuit.shape.program_rows;
    for (row, count) in witness.counts.iter().enumerate() {
        // Beyond the last, the row of a halted program again.
        let halted = Row::halted();
        let value = packed(circuit.rows.get(first + row).unwrap_or(&halted));
        let row = wires.constant(value)?;
        let times = wires.witness(F::from(*count))?;
        wires.put_times(row, times)?;
    }
    Ok(())
}

/// The entry of a row.
pub(crate) fn packed<F: PrimeField>(row: &Row) -> F {
    let sum = |value| Sum::constant(value);
    let registers = [row.rd, row.rs1, row.rs2].map(|number| sum(number.into()));
    let [rd, rs1, rs2] = &registers;
    let low = low(&sum(row.pc.into()), &sum(row.flags.into()), [rd, rs1, rs2]);
    Entry::row(low, sum(row.immediate.into())).value()
}
