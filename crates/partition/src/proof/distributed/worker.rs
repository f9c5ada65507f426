//! A worker's side after the challenges are drawn: one part at a time.

use ark_std::rand::{CryptoRng, RngCore};
use proofmill_groth16::Proof;
use proofmill_r1cs::Assignment;

use super::task::ProveTask;
use crate::proof::{ClassKeys, PartitionCurve, ProveError};
use crate::{DistributedCircuit, Partition};

/// The partition and the keys that a worker proves with.
#[derive(Clone, Copy, Debug)]
pub struct Worker<'a, E: PartitionCurve> {
    /// The partition.
    pub partition: &'a Partition<E::ScalarField>,
    /// The proving keys of all classes.
    pub keys: &'a ClassKeys<E>,
}

// === impl Worker ===

impl<E: PartitionCurve> Worker<'_, E> {
    /// Proves a part; `circuit` is the circuit without a witness.
    ///
    /// # Errors
    ///
    /// [`ProveError`] for a task of another partition or with another part's witness, and if the key cannot be read.
    pub fn prove<C: DistributedCircuit<E::ScalarField>>(
        &self,
        circuit: &C,
        task: &ProveTask<E>,
        rng: &mut (impl RngCore + CryptoRng),
    ) -> Result<Proof<E>, ProveError> {
        let assignment = task.assignment(self.partition, circuit)?;
        self.prove_assigned(task, &assignment, rng)
    }

    /// Like [`prove`](Self::prove), with the values of the part's variables, which [`ProveTask::assignment`] has made.
    ///
    /// # Errors
    ///
    /// [`ProveError`] for a task of another partition or values of another task, and if the key cannot be read.
    pub fn prove_assigned(
        &self,
        task: &ProveTask<E>,
        assignment: &Assignment<E::ScalarField>,
        rng: &mut (impl RngCore + CryptoRng),
    ) -> Result<Proof<E>, ProveError> {
        let part = task.part();
        let key = self
            .keys
            .key(self.partition, self.partition.class_of(part)?)?;
        let proved = key.prover().prove(assignment.z(), &task.opening, rng);
        let (proof, _) = proved.map_err(|source| ProveError::Part { part, source })?;
        Ok(proof)
    }
}
