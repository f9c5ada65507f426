//! What the pipeline knows of a key and of a partition: neither its curve nor its kind.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proofmill_groth16::QueryPoints;
use tokio::sync::Notify;

use super::accelerator::Accelerator;
use crate::interface::{CircuitId, PartitionProof};

/// A key with its circuit, ready to prove.
pub(crate) trait Key: Send + Sync {
    /// The bytes it takes, measured.
    fn bytes(&self) -> u64;

    /// The points of its queries.
    fn points(&self) -> QueryPoints;

    /// A partition's work with it.
    fn work(self: Arc<Self>) -> Box<dyn Work>;

    /// Whether its constraints are known in full, so that an unsatisfied witness is told from a wrong
    /// computation.
    fn knows_constraints(&self) -> bool;
}

/// One partition on its way through the stages, in this order; each step frees what the later ones do
/// not need. Where nothing else is said they run on the current rayon pool.
pub(crate) trait Work: Send {
    /// Decodes a witness.
    fn read_witness(&mut self, bytes: &[u8]) -> Result<(), StepError>;

    /// The products with the matrices, and the transforms.
    fn evaluate(&mut self, stop: &Stop) -> Result<(), StepError>;

    /// The multi-scalar products in the first group.
    fn prove(&mut self, stop: &Stop) -> Result<(), StepError>;

    /// The products, those of them on an accelerator that pay there. To be called from outside the
    /// pool, within the runtime: it waits, and computes on `pool`.
    fn prove_on(
        &mut self,
        accelerator: &Accelerator,
        pool: &rayon::ThreadPool,
        stop: &Stop,
    ) -> Result<(), StepError>;

    /// The product in the second group unless it is there, and the proof.
    fn finish(&mut self, stop: &Stop) -> Result<(), StepError>;

    /// The proof, if it is one.
    fn verify(&mut self, circuit: CircuitId) -> Result<PartitionProof, StepError>;

    /// Makes a product wrong: for [`Interference`](crate::Interference).
    fn spoil(&mut self);
}

/// Why a step did not do what it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StepError {
    /// It would fail again: why.
    Permanent(String),
    /// Another attempt may succeed: why.
    Retry(String),
    /// The device broke and is not to be used any more; another may succeed: why.
    Broken(String),
    /// The proof does not verify.
    Invalid,
    /// It was told to stop.
    Stopped,
}

/// Tells work that nobody wants it any more. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<Signal>);

#[derive(Debug, Default)]
struct Signal {
    raised: AtomicBool,
    notify: Notify,
}

// === impl Stop ===

impl Stop {
    pub(crate) fn raise(&self) {
        self.0.raised.store(true, Ordering::SeqCst);
        self.0.notify.notify_waiters();
    }

    pub(crate) fn is_raised(&self) -> bool {
        self.0.raised.load(Ordering::SeqCst)
    }

    /// Waits until it is raised.
    pub(crate) async fn raised(&self) {
        let mut notified = pin!(self.0.notify.notified());
        // Listening before looking: no signal goes unheard.
        notified.as_mut().enable();
        if !self.is_raised() {
            notified.await;
        }
    }

    /// That it is not raised: asked between two products.
    pub(crate) fn check(&self) -> Result<(), StepError> {
        if self.is_raised() {
            Err(StepError::Stopped)
        } else {
            Ok(())
        }
    }
}
