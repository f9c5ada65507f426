//! The pipeline's view of a key and of a partition, independent of the curve and the form of the key.

use std::sync::Arc;

use proofmill_groth16::QueryPoints;
use tokio_util::sync::CancellationToken;

use super::accelerator::Accelerator;
use crate::interface::{CircuitId, PartitionProof};

/// A loaded key with its circuit, ready to prove.
pub(crate) trait Key: Send + Sync {
    /// Bytes of memory that it takes, measured.
    fn bytes(&self) -> u64;

    /// Numbers of points of its queries.
    fn points(&self) -> QueryPoints;

    /// Begins the work of one partition with the key.
    fn work(self: Arc<Self>) -> Box<dyn Work>;

    /// Whether the circuit's constraints are known in full. If so, an unsatisfied witness can be told from
    /// a wrong computation.
    fn knows_constraints(&self) -> bool;
}

/// The computation of one partition. The stages are called in the order of these methods; each frees the
/// data that later ones do not need. Unless noted otherwise, methods run on the current rayon pool.
pub(crate) trait Work: Send {
    /// Decodes a witness.
    fn read_witness(&mut self, bytes: &[u8]) -> Result<(), StepError>;

    /// The products with the matrices, and the transforms.
    fn evaluate(&mut self, stop: &CancellationToken) -> Result<(), StepError>;

    /// The multi-scalar products in the first group.
    fn prove(&mut self, stop: &CancellationToken) -> Result<(), StepError>;

    /// Computes the products, on an accelerator where that pays. Must be called outside the pool but inside
    /// the tokio runtime: it blocks while it waits, and computes on `pool`.
    fn prove_on(
        &mut self,
        accelerator: &Accelerator,
        pool: &rayon::ThreadPool,
        stop: &CancellationToken,
    ) -> Result<(), StepError>;

    /// Computes the product in the second group, unless the accelerator has done so, and assembles the
    /// proof.
    fn finish(&mut self, stop: &CancellationToken) -> Result<(), StepError>;

    /// Verifies the proof, and returns it if it is valid.
    fn verify(&mut self, circuit: CircuitId) -> Result<PartitionProof, StepError>;

    /// Falsifies a product, for [`Interference`](crate::Interference).
    fn corrupt_product(&mut self);
}

/// The outcome of a stage that did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StepError {
    /// Another attempt would fail as well, for this reason.
    Permanent(String),
    /// Another attempt may succeed; this one failed for this reason.
    Retry(String),
    /// The device broke and must not be used again; another device may succeed. The reason.
    Broken(String),
    /// The proof does not verify.
    Invalid,
    /// The work was cancelled.
    Stopped,
}

/// Fails with [`StepError::Stopped`] if the work was cancelled. Called between products.
pub(crate) fn ensure_wanted(stop: &CancellationToken) -> Result<(), StepError> {
    if stop.is_cancelled() {
        Err(StepError::Stopped)
    } else {
        Ok(())
    }
}
