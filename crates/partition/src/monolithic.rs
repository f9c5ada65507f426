//! The circuit in one piece.

use ark_ff::PrimeField;
use ark_relations::gr1cs::{ConstraintSynthesizer, ConstraintSystemRef, SynthesisError};

use crate::multiset;
use crate::part::{Directory, Whole, Wires};
use crate::{Part, PartitionError, PartitionedCircuit, Wire};

/// All parts in one constraint system: shared wires are the variables themselves, and no memory is
/// checked. The instance is the public inputs.
///
/// The multiset is no part of the constraints, which would need a random challenge: it is compared natively, with the
/// values of a circuit that has a witness. So a proof of this system says nothing about it.
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
    /// [`PartitionError`] of the first part that fails; [`PartitionError::Unmatched`] if the values that a circuit
    /// with a witness puts into the multiset are not those that it takes.
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
        let mut whole = Whole {
            directory: Directory::new(inputs),
            transfers: Vec::new(),
        };
        for part in 0..self.circuit.num_parts() {
            whole.transfers.push((Vec::new(), Vec::new()));
            let wires = Wires::Direct(&mut whole);
            self.circuit
                .synthesize(part, &mut Part::new(cs.clone(), part, wires))?;
            let found = cs.num_instance_variables();
            if found > 1 + count {
                let count = found - 1 - count;
                return Err(PartitionError::InstanceVariables { part, count });
            }
        }
        if cs.is_in_setup_mode() {
            return Ok(());
        }
        multiset::check(|| {
            let parts = whole.transfers.iter();
            parts.map(|(transfers, values)| (&transfers[..], &values[..]))
        })
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
