//! The coordinator's side: tasks for all parts, the challenges, the aggregation.

use std::fmt;
use std::sync::Arc;

use proofmill_aggregation::{Aggregate, AggregateProveError, MirageStatement, Srs};
use proofmill_groth16::Proof;
use proofmill_groth16::mirage::{Commitment, Opening};
use zeroize::Zeroizing;

use super::task::{CommitTask, ProveTask};
use crate::proof::assembly::Challenged;
use crate::proof::secrets::Secrets;
use crate::proof::{Index, PartitionCurve, PartitionProof, ProveError};
use crate::{DistributedCircuit, PartitionError, Traces};

/// A proof that others make, before its challenges are drawn.
pub struct Coordination<E: PartitionCurve, C> {
    index: Arc<Index<E>>,
    srs: Arc<Srs<E>>,
    circuit: C,
    traces: Traces<E::ScalarField>,
    secrets: Secrets,
}

/// A proof that others make, whose parts are all committed to.
pub struct ChallengedProof<E: PartitionCurve, C> {
    of: Arc<Coordination<E, C>>,
    commitments: Vec<Commitment<E>>,
    challenged: Challenged<E>,
}

// === impl Coordination ===

impl<E: PartitionCurve, C> fmt::Debug for Coordination<E, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The circuit has the witness.
        f.debug_struct("Coordination")
            .field("traces", &self.traces)
            .finish_non_exhaustive()
    }
}

impl<E, C> Coordination<E, C>
where
    E: PartitionCurve,
    C: DistributedCircuit<E::ScalarField>,
{
    /// Traces the circuit, which must have a witness: runs the code of all parts, one after the other.
    ///
    /// All randomness of the proof follows from `seed` and the traced values, so that a coordinator that begins
    /// again with the same seed and witness makes the same tasks. The seed must be random, and secret.
    ///
    /// # Errors
    ///
    /// [`ProveError::Partition`] if the circuit is not the partition's, or its code fails.
    pub fn new(
        index: Arc<Index<E>>,
        srs: Arc<Srs<E>>,
        circuit: C,
        seed: &[u8; 32],
    ) -> Result<Self, ProveError> {
        let traces = index.partition().trace(&circuit)?;
        let secrets = Secrets::new(seed, &index.verifying_key().digest(), &traces);
        Ok(Self {
            index,
            srs,
            circuit,
            traces,
            secrets,
        })
    }

    /// The number of parts.
    pub fn num_parts(&self) -> usize {
        self.index.partition().num_parts()
    }

    /// The partition's keys.
    pub const fn index(&self) -> &Arc<Index<E>> {
        &self.index
    }

    /// The public inputs.
    pub fn public_inputs(&self) -> &[E::ScalarField] {
        self.traces.public_inputs()
    }

    /// The task of committing to a part, from 0.
    ///
    /// # Errors
    ///
    /// [`PartitionError::NoPart`].
    pub fn commit_task(&self, part: usize) -> Result<CommitTask<E>, PartitionError> {
        let trace = self.index.partition().part_trace(&self.traces, part)?;
        let opening = self.opening(part, &trace.committed());
        Ok(CommitTask {
            part: part as u32,
            opening,
            trace,
        })
    }

    fn opening(&self, part: usize, values: &[E::ScalarField]) -> Opening<E> {
        Opening::new(values, self.secrets.commitment_randomness(part))
    }

    /// Draws the challenges from the commitments of all parts, in order, which must have been checked: with a false
    /// one there is no proof.
    ///
    /// # Errors
    ///
    /// [`ProveError::Aggregation`] for another number of commitments than of parts.
    pub fn challenge(
        self: &Arc<Self>,
        commitments: Vec<Commitment<E>>,
    ) -> Result<ChallengedProof<E, C>, ProveError> {
        let d: Vec<_> = commitments.iter().map(|of| of.point).collect();
        let challenged = Challenged::new(&self.index, &self.srs, &self.traces, &self.secrets, &d)?;
        Ok(ChallengedProof {
            of: Arc::clone(self),
            commitments,
            challenged,
        })
    }
}

// === impl ChallengedProof ===

impl<E, C> ChallengedProof<E, C>
where
    E: PartitionCurve,
    C: DistributedCircuit<E::ScalarField>,
{
    /// The task of proving a part, from 0.
    ///
    /// # Errors
    ///
    /// [`PartitionError::NoPart`].
    pub fn prove_task(&self, part: usize) -> Result<ProveTask<E>, PartitionError> {
        let trace = self
            .of
            .index
            .partition()
            .part_trace(&self.of.traces, part)?;
        Ok(ProveTask {
            part: part as u32,
            commitment: self.commitments[part],
            opening: self.of.opening(part, &trace.committed()),
            challenges: self.challenged.statement().challenges(),
            states: self.challenged.states().opening(part)?,
            witness: Zeroizing::new(self.of.circuit.part_witness(part)),
            trace,
        })
    }

    /// Aggregates the proofs of all parts, in order, and verifies the whole proof.
    ///
    /// # Errors
    ///
    /// [`ProveError::Aggregation`] for another number of proofs than of parts; [`ProveError::False`] if a proof is
    /// false, which [`ProofChecker::check`](super::ProofChecker::check) finds.
    pub fn aggregate(self, proofs: &[Proof<E>]) -> Result<PartitionProof<E>, ProveError> {
        let d: Vec<_> = self.commitments.iter().map(|of| of.point).collect();
        self.aggregate_by(|index, srs, statement| {
            index.parts().aggregate(srs, statement, proofs, &d)
        })
    }

    /// As [`aggregate`](Self::aggregate), with an aggregate of the statement that `make` returns: one that others made in
    /// [shards](proofmill_aggregation::sharded), for example.
    ///
    /// # Errors
    ///
    /// [`ProveError::Aggregation`] as `make` returns it; [`ProveError::False`] if the aggregate does not verify.
    pub fn aggregate_by(
        self,
        make: impl FnOnce(
            &Index<E>,
            &Srs<E>,
            MirageStatement<'_, E>,
        ) -> Result<Aggregate<E>, AggregateProveError>,
    ) -> Result<PartitionProof<E>, ProveError> {
        let of = self.of;
        let inputs = of.traces.public_inputs();
        self.challenged.aggregate(&of.index, inputs, |statement| {
            make(&of.index, &of.srs, statement)
        })
    }
}
