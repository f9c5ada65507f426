//! A worker's side: one part at a time.

use ark_std::rand::{CryptoRng, RngCore};
use proofmill_groth16::Proof;
use proofmill_groth16::mirage::Commitment;

use super::task::{CommitTask, ProveTask};
use crate::proof::{ClassKeys, PartitionCurve, ProveError};
use crate::{DistributedCircuit, Partition};

/// The partition and the keys that a worker commits and proves with.
#[derive(Clone, Copy, Debug)]
pub struct Worker<'a, E: PartitionCurve> {
    /// The partition.
    pub partition: &'a Partition<E::ScalarField>,
    /// The proving keys of all classes.
    pub keys: &'a ClassKeys<E>,
}

// === impl Worker ===

impl<E: PartitionCurve> Worker<'_, E> {
    /// Commits to a part's share of the traces.
    ///
    /// # Errors
    ///
    /// [`ProveError`] for a task of another partition, and if the key cannot be read.
    pub fn commit(&self, task: &CommitTask<E>) -> Result<Commitment<E>, ProveError> {
        let part = task.part();
        let key = self
            .keys
            .key(self.partition, self.partition.class_of(part)?)?;
        let commitment = key
            .prover()
            .commit_with(&task.trace.committed(), &task.opening);
        commitment.map_err(|source| ProveError::Part { part, source })
    }

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
        let part = task.part();
        let key = self
            .keys
            .key(self.partition, self.partition.class_of(part)?)?;
        let assignment = task.assignment(self.partition, circuit)?;
        let proved = key.prover().prove(assignment.z(), &task.opening, rng);
        let (proof, _) = proved.map_err(|source| ProveError::Part { part, source })?;
        Ok(proof)
    }
}
