//! Mirage's keys: a plain Groth16 key with the additional points for commitments.

use std::fmt;

use proofmill_r1cs::R1cs;

use crate::{InsecureKey, KeyElement, ProveError, SnarkCurve, Weakness};

/// The verifying key: `ivk` of the paper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyingKey<E: SnarkCurve> {
    /// α, β, γ, δ and the points of public inputs.
    pub plain: crate::VerifyingKey<E>,
    /// η in the second group.
    pub eta_g2: E::G2Affine,
    /// The number of committed variables.
    pub committed: usize,
}

/// The key for commitments and proofs: `ick` and `ipk` of the paper, which are the same there.
#[derive(Clone, PartialEq, Eq)]
pub struct ProvingKey<E: SnarkCurve> {
    /// A plain key. For committed variables its L query has only the part with C(s).
    pub plain: crate::ProvingKey<E>,
    /// \[pⱼ(s)/η\] for each committed variable j.
    pub committed: Vec<E::G1Affine>,
    /// η in the first group.
    pub eta_g1: E::G1Affine,
    /// η in the second group.
    pub eta_g2: E::G2Affine,
}

// === impl VerifyingKey ===

impl<E: SnarkCurve> VerifyingKey<E> {
    /// The reasons why proofs under this key prove nothing, or commitments bind nothing; empty for the key of an
    /// honest setup. An empty list does not mean that the setup was honest.
    pub fn weaknesses(&self) -> Vec<Weakness> {
        self.plain
            .weaknesses_with(Some((KeyElement::Eta, self.eta_g2)))
    }

    /// Checks that this key has no known weakness.
    ///
    /// # Errors
    ///
    /// [`InsecureKey`] with the [`weaknesses`](Self::weaknesses).
    pub fn require_secure(&self) -> Result<(), InsecureKey> {
        InsecureKey::unless_empty(self.weaknesses())
    }
}

// === impl ProvingKey ===

impl<E: SnarkCurve> ProvingKey<E> {
    /// The verifying key of this proving key.
    pub fn vk(&self) -> VerifyingKey<E> {
        VerifyingKey {
            plain: self.plain.vk.clone(),
            eta_g2: self.eta_g2,
            committed: self.committed.len(),
        }
    }

    /// Approximate size of the key in memory, in bytes.
    pub fn size_in_bytes(&self) -> usize {
        self.plain.size_in_bytes() + size_of_val(&self.committed[..])
    }

    /// Checks that `r1cs` has at least as many witness variables as this key has committed ones.
    pub(super) fn check_committed(&self, r1cs: &R1cs<E::ScalarField>) -> Result<(), ProveError> {
        match self.committed.len() <= r1cs.num_witness() {
            true => Ok(()),
            false => Err(ProveError::WrongKey),
        }
    }
}

impl<E: SnarkCurve> fmt::Debug for ProvingKey<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProvingKey")
            .field("plain", &self.plain)
            .field("committed", &self.committed.len())
            .finish_non_exhaustive()
    }
}
