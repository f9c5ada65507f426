//! Keys that stay in memory for many commitments and proofs.

use std::fmt;
use std::sync::Arc;

use proofmill_r1cs::R1cs;

use super::commitment::CommitmentBases;
use super::{Prover, ProvingKey, VerifyingKey};
use crate::keys::bases::HeldBases;
use crate::{ProveError, ResidentForm, SnarkCurve};

/// A key with its circuit, held for many commitments and proofs.
pub struct ResidentKey<E: SnarkCurve> {
    pub(super) plain: Arc<crate::ResidentKey<E>>,
    pub(super) committed: HeldBases<E::G1>,
    pub(super) eta_g1: E::G1Affine,
    pub(super) eta_g2: E::G2Affine,
}

// === impl ResidentKey ===

impl<E: SnarkCurve> ResidentKey<E> {
    /// Holds `key` and its circuit.
    ///
    /// # Errors
    ///
    /// [`ProveError::WrongKey`] if the key is for another circuit, [`ProveError::TooLarge`].
    pub fn new(
        key: ProvingKey<E>,
        r1cs: Arc<R1cs<E::ScalarField>>,
        residency: ResidentForm,
    ) -> Result<Self, ProveError> {
        key.check_committed(&r1cs)?;
        let total = key.size_in_bytes();
        let committed_limit = residency.limit(size_of_val(&key.committed[..]), total);
        let plain_residency = match (residency, committed_limit) {
            (ResidentForm::Prepared { memory_limit }, Some(committed_limit)) => {
                ResidentForm::Prepared {
                    memory_limit: memory_limit.saturating_sub(committed_limit),
                }
            }
            _ => residency,
        };
        Ok(Self {
            plain: Arc::new(crate::ResidentKey::new(key.plain, r1cs, plain_residency)?),
            committed: HeldBases::new(key.committed, committed_limit),
            eta_g1: key.eta_g1,
            eta_g2: key.eta_g2,
        })
    }

    /// The prover that commits and proves with this key.
    pub fn prover(&self) -> Prover<'_, E> {
        let plain = self.plain.prover();
        Prover {
            committed: CommitmentBases {
                points: self.committed.as_bases(),
                count: self.committed.len(),
                delta_g1: plain.delta_g1,
            },
            plain,
            instance: self.plain.vk().instance.len(),
            eta_g1: self.eta_g1,
        }
    }

    /// The plain key, to be loaded onto a device ([`DeviceKey`](crate::DeviceKey)). [`Prover::complete`] completes
    /// the proofs made with it.
    pub const fn plain(&self) -> &Arc<crate::ResidentKey<E>> {
        &self.plain
    }

    /// The verifying key.
    pub fn vk(&self) -> VerifyingKey<E> {
        VerifyingKey {
            plain: self.plain.vk().clone(),
            eta_g2: self.eta_g2,
            committed: self.committed.len(),
        }
    }

    /// Size of the key in memory, in bytes: points, indices and matrices.
    pub fn bytes(&self) -> usize {
        self.plain.bytes() + self.committed.bytes()
    }
}

impl<E: SnarkCurve> fmt::Debug for ResidentKey<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResidentKey")
            .field("plain", &self.plain)
            .field("committed", &self.committed)
            .finish_non_exhaustive()
    }
}
