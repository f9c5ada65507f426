//! Keys to commit with, without those to prove with.

use std::fmt;

use super::ProvingKey;
use super::commitment::{Commitment, CommitmentBases, Opening};
use crate::keys::bases::Bases;
use crate::{ProveError, SnarkCurve};

/// The part of a proving key that makes and checks commitments: `ck` of the paper. It takes little memory, as few
/// variables of a circuit are committed to.
#[derive(Clone, PartialEq, Eq)]
pub struct CommitmentKey<E: SnarkCurve> {
    /// SHA-256 of the circuit.
    pub(super) circuit: [u8; 32],
    /// \[pⱼ(s)/η\] for each committed variable j.
    pub(super) committed: Vec<E::G1Affine>,
    /// δ in the first group.
    pub(super) delta_g1: E::G1Affine,
}

// === impl CommitmentKey ===

impl<E: SnarkCurve> CommitmentKey<E> {
    /// SHA-256 of the circuit that the key is for.
    pub const fn circuit(&self) -> &[u8; 32] {
        &self.circuit
    }

    /// The number of committed variables.
    pub fn num_committed(&self) -> usize {
        self.committed.len()
    }

    /// Commits to values of the committed variables, with the randomness of an opening.
    ///
    /// # Errors
    ///
    /// [`ProveError::Assignment`] unless there is a value for each committed variable;
    /// [`ProveError::OtherCommitment`] for the opening of a commitment to other values.
    pub fn commit_with(
        &self,
        values: &[E::ScalarField],
        opening: &Opening<E>,
    ) -> Result<Commitment<E>, ProveError> {
        let bases = CommitmentBases {
            points: Bases::Plain(&self.committed),
            count: self.committed.len(),
            delta_g1: self.delta_g1,
        };
        bases.commit(values, opening)
    }
}

impl<E: SnarkCurve> From<&ProvingKey<E>> for CommitmentKey<E> {
    fn from(key: &ProvingKey<E>) -> Self {
        Self {
            circuit: key.plain.vk.circuit,
            committed: key.committed.clone(),
            delta_g1: key.plain.delta_g1,
        }
    }
}

impl<E: SnarkCurve> fmt::Debug for CommitmentKey<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommitmentKey")
            .field("committed", &self.committed.len())
            .finish_non_exhaustive()
    }
}
