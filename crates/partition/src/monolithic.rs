//! The circuit in one piece.

use ark_ff::PrimeField;
use ark_relations::gr1cs::{ConstraintSynthesizer, ConstraintSystemRef, SynthesisError};

use crate::part::{Directory, Wires};
use crate::{Part, PartitionError, PartitionedCircuit, Wire};

/// All parts in one constraint system: shared wires are the variables themselves, and no memory is
/// checked. The instance is the public inputs.
#[derive(Clone, Copy, Debug)]
pub struct Monolithic<'a, C> {
    circuit: &'a C,
}

// === impl Monolithic ===

impl<'a, C> Monolithic<'a, C> {
    /// The parts of a circuit, together.
    pub const fn new(circuit: &'a C) -> Self {
        Self { circuit }
    }

    /// Allocates and constrains all parts.
    ///
    /// # Errors
    ///
    /// [`PartitionError`] of the first part that fails.
    pub fn synthesize<F: PrimeField>(
        &self,
        cs: &ConstraintSystemRef<F>,
    ) -> Result<(), PartitionError>
    where
        C: PartitionedCircuit<F>,
    {
        let count = self.circuit.num_public_inputs();
        let values = match cs.is_in_setup_mode() {
            true => vec![F::zero(); count],
            false => self.circuit.public_inputs(),
        };
        if values.len() != count {
            return Err(PartitionError::Length {
                what: "public inputs",
                expected: count,
                found: values.len(),
            });
        }
        let mut inputs = Vec::with_capacity(count);
        for value in values {
            let variable = cs.new_input_variable(|| Ok(value))?;
            inputs.push(Wire { variable, value });
        }
        let mut directory = Directory::new(inputs);
        for part in 0..self.circuit.num_parts() {
            let wires = Wires::Direct(&mut directory);
            self.circuit
                .synthesize(part, &mut Part::new(cs.clone(), part, wires))?;
            let found = cs.num_instance_variables();
            if found > 1 + count {
                let count = found - 1 - count;
                return Err(PartitionError::InstanceVariables { part, count });
            }
        }
        Ok(())
    }
}

impl<F: PrimeField, C: PartitionedCircuit<F>> ConstraintSynthesizer<F> for Monolithic<'_, C> {
    fn generate_constraints(self, cs: ConstraintSystemRef<F>) -> Result<(), SynthesisError> {
        self.synthesize(&cs).map_err(|error| match error {
            PartitionError::Synthesis(error) => error,
            _ => SynthesisError::Unsatisfiable,
        })
    }
}
