//! The steps of a proof that take all parts together: drawing the challenges, and aggregating.

use proofmill_aggregation::{
    Aggregate, AggregateProveError, Commitment as Aggregated, MirageStatement, Srs,
};

use super::PartitionCurve;
use super::index::Index;
use super::prover::ProveError;
use super::secrets::Secrets;
use super::statement::Statement;
use super::verifier::PartitionProof;
use crate::{States, Traces};

/// A proof after its first message: all parts are committed to, the challenges are drawn, and the states between
/// parts follow from them.
pub(super) struct Challenged<E: PartitionCurve> {
    /// The commitment to the commitments of all parts.
    commitment: Aggregated<E>,
    statement: Statement<E::ScalarField>,
    states: States<E::ScalarField>,
}

// === impl Challenged ===

impl<E: PartitionCurve> Challenged<E> {
    /// Draws the challenges from the commitments of all parts, `d`.
    pub(super) fn new(
        index: &Index<E>,
        srs: &Srs<E>,
        traces: &Traces<E::ScalarField>,
        secrets: &Secrets,
        d: &[E::G1Affine],
    ) -> Result<Self, ProveError> {
        let commitment = index.parts().commit(srs, d)?;
        let key = index.verifying_key();
        let statement = key.statement(traces.public_inputs(), &commitment);
        let salts = |part| secrets.salt(part);
        let states = index
            .partition()
            .salted_states(traces, statement.challenges(), salts)?;
        Ok(Self {
            commitment,
            statement,
            states,
        })
    }

    pub(super) const fn statement(&self) -> &Statement<E::ScalarField> {
        &self.statement
    }

    pub(super) const fn states(&self) -> &States<E::ScalarField> {
        &self.states
    }

    /// The public inputs that all parts share.
    pub(super) fn shared(&self) -> [E::ScalarField; super::SHARED] {
        self.statement.shared(self.states.root())
    }

    /// Aggregates the proofs of all parts, as `make` does it, and verifies the result. Nothing else of the parts is needed:
    /// memory of earlier steps is returned to the system first.
    pub(super) fn aggregate(
        self,
        index: &Index<E>,
        public_inputs: &[E::ScalarField],
        make: impl FnOnce(MirageStatement<'_, E>) -> Result<Aggregate<E>, AggregateProveError>,
    ) -> Result<PartitionProof<E>, ProveError> {
        let inputs = self.shared();
        let (root, public_path) = (self.states.root(), self.states.public_path());
        drop(self.states);
        super::prover::release();
        let of_parts = MirageStatement {
            context: &self.statement.context(root, &public_path),
            inputs: &inputs,
            commitment: &self.commitment,
        };
        let aggregate = make(of_parts)?;
        let proof = PartitionProof {
            commitment: self.commitment,
            root,
            public_path,
            aggregate,
        };
        index
            .verifying_key()
            .verify(public_inputs, &proof)
            .map_err(ProveError::False)?;
        Ok(proof)
    }
}
