//! Key generation by one party, for one circuit or many.

use std::fmt;

use ark_std::rand::{CryptoRng, RngCore};

use super::{CommittedR1cs, ProvingKey};
use crate::keys::setup::{SharedSecrets, make_keys};
use crate::{SetupError, SnarkCurve};

/// A setup that makes several keys with the same α and β, as an aggregation of proofs under several keys
/// needs. Dropping it erases α and β. **For development only**, see [`setup`](crate::setup()).
///
/// Each key has γ, δ, η and s of its own.
pub struct Setup<E: SnarkCurve>(SharedSecrets<E>);

// === impl Setup ===

impl<E: SnarkCurve> Setup<E> {
    /// Draws α and β.
    pub fn new(rng: &mut (impl RngCore + CryptoRng)) -> Self {
        Self(SharedSecrets::sample(rng))
    }

    /// The key of one circuit. Where there are many, each can be written to disk before the next is made.
    ///
    /// # Errors
    ///
    /// [`SetupError::TooLarge`] if the system exceeds the field's largest domain.
    pub fn key(
        &self,
        circuit: CommittedR1cs<'_, E::ScalarField>,
        rng: &mut (impl RngCore + CryptoRng),
    ) -> Result<ProvingKey<E>, SetupError> {
        self.key_with_progress(circuit, rng, &|_| {})
    }

    /// Like [`key`](Self::key); calls `progress` with a description before each of six steps.
    ///
    /// # Errors
    ///
    /// As for [`key`](Self::key).
    pub fn key_with_progress(
        &self,
        circuit: CommittedR1cs<'_, E::ScalarField>,
        rng: &mut (impl RngCore + CryptoRng),
        progress: &dyn Fn(&str),
    ) -> Result<ProvingKey<E>, SetupError> {
        make_keys(&self.0, circuit.r1cs(), circuit.committed(), rng, progress)
    }
}

/// `Mirage.Setup`: a key for each circuit, all with the same α and β. **For development only**: the process
/// that runs it learns secrets with which proofs can be forged.
///
/// # Errors
///
/// [`SetupError::TooLarge`] if a system exceeds the field's largest domain.
pub fn setup<E: SnarkCurve>(
    circuits: &[CommittedR1cs<'_, E::ScalarField>],
    rng: &mut (impl RngCore + CryptoRng),
) -> Result<Vec<ProvingKey<E>>, SetupError> {
    let setup = Setup::new(rng);
    circuits
        .iter()
        .map(|circuit| setup.key(*circuit, rng))
        .collect()
}

impl<E: SnarkCurve> fmt::Debug for Setup<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Its content is secret.
        f.debug_struct("Setup")
            .field("curve", &E::CURVE)
            .finish_non_exhaustive()
    }
}
