//! Values for all variables of a system.

use std::fmt;

use ark_ff::PrimeField;
use ark_relations::gr1cs::{
    ConstraintSynthesizer, ConstraintSystem, OptimizationGoal, SynthesisMode,
};

use crate::R1csError;

/// The vector z: the instance, which starts with a one, then the witness.
///
/// The witness is secret: `Debug` prints sizes only.
#[derive(Clone, PartialEq, Eq)]
pub struct Assignment<F: PrimeField> {
    values: Vec<F>,
    instance: usize,
}

// === impl Assignment ===

impl<F: PrimeField> Assignment<F> {
    /// An assignment of public inputs, without the leading one, and a witness.
    pub fn new(inputs: &[F], witness: &[F]) -> Self {
        let mut values = Vec::with_capacity(1 + inputs.len() + witness.len());
        values.push(F::one());
        values.extend_from_slice(inputs);
        values.extend_from_slice(witness);
        Self {
            values,
            instance: 1 + inputs.len(),
        }
    }

    /// An assignment of the whole vector, whose first `instance` values are the instance.
    ///
    /// # Panics
    ///
    /// If `instance` is zero or exceeds the number of values.
    pub fn from_values(values: Vec<F>, instance: usize) -> Self {
        assert!(
            (1..=values.len()).contains(&instance),
            "an instance of {instance} of {} values",
            values.len()
        );
        Self { values, instance }
    }

    /// Runs a circuit for its values alone: no matrix is built, no linear combination evaluated.
    ///
    /// # Errors
    ///
    /// [`R1csError::Synthesis`] if the circuit fails, for example for want of a witness.
    pub fn from_circuit(circuit: impl ConstraintSynthesizer<F>) -> Result<Self, R1csError> {
        let cs = ConstraintSystem::new_ref();
        cs.set_optimization_goal(OptimizationGoal::Constraints);
        cs.set_mode(SynthesisMode::Prove {
            construct_matrices: false,
            generate_lc_assignments: false,
        });
        circuit.generate_constraints(cs.clone())?;
        let cs = cs.into_inner().ok_or(R1csError::StillReferenced)?;
        let mut values = cs.assignments.instance_assignment;
        let instance = values.len();
        values.extend(cs.assignments.witness_assignment);
        Ok(Self { values, instance })
    }

    /// The whole vector.
    pub fn z(&self) -> &[F] {
        &self.values
    }

    /// The instance, starting with one.
    pub fn instance(&self) -> &[F] {
        &self.values[..self.instance]
    }

    /// The public inputs: the instance without its leading one.
    pub fn inputs(&self) -> &[F] {
        &self.values[1..self.instance]
    }

    /// The witness.
    pub fn witness(&self) -> &[F] {
        &self.values[self.instance..]
    }
}

impl<F: PrimeField> fmt::Debug for Assignment<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Assignment")
            .field("instance", &self.instance)
            .field("witness", &self.witness().len())
            .finish()
    }
}
