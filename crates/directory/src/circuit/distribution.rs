//! A batch whose parts are proved by other processes.
//!
//! The witness of a part has the siblings at the part's levels, 32 bytes each. In that of the first part of an update
//! stands before them the update without siblings, as in `encoding.rs`.

use ark_ff::PrimeField;
use proofmill_partition::DistributedCircuit;

use super::UpdateBatch;
use super::encoding::{read_siblings, read_transition, write_transition};
use crate::Digest;
use crate::frame::{Fields, FormatError};

// === impl UpdateBatch ===

impl<F: PrimeField> DistributedCircuit<F> for UpdateBatch {
    fn part_witness(&self, part: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        if part >= self.shape.parts() {
            return bytes;
        }
        let (update, position) = self.shape.place(part);
        let (transition, is_idle) = self.transition(update);
        if position == 0 {
            write_transition(transition, is_idle, &mut bytes);
        }
        for level in self.shape.levels_of(position) {
            let sibling = transition.siblings.get(level).copied();
            bytes.extend(sibling.unwrap_or_default().0);
        }
        bytes
    }

    fn with_part_witness(&self, part: usize, bytes: &[u8]) -> Result<Self, String> {
        let parts = self.shape.parts();
        if part >= parts {
            return Err(format!("there is no part {part}: the circuit has {parts}"));
        }
        let read = self.read_part(part, bytes);
        read.map_err(|error| error.to_string())
    }
}

impl UpdateBatch {
    /// The batch for the code of one part: no other part's values are in it.
    fn read_part(&self, part: usize, bytes: &[u8]) -> Result<Self, FormatError> {
        let (update, position) = self.shape.place(part);
        let mut circuit = Self::blank(self.shape);
        let mut fields = Fields::of_content("witness of a part", bytes);
        // Parts above the first take nothing but siblings, the same from an idle update as from another.
        let (mut transition, is_idle) = match position {
            0 => read_transition(&mut fields)?,
            _ => (circuit.idle.clone(), true),
        };
        let levels = self.shape.levels_of(position);
        transition.siblings = vec![Digest::ZERO; levels.start];
        let siblings = read_siblings(&mut fields, levels.len())?;
        transition.siblings.extend(siblings);
        fields.end()?;
        match is_idle {
            true => circuit.idle = transition,
            false => {
                circuit.first = update;
                circuit.updates = vec![transition];
            }
        }
        Ok(circuit)
    }
}
