//! Proofs that are verified whole, each for itself: one proof for many is a check of many already.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use ark_bn254::G1Projective;
use ark_ff::AdditiveGroup;
use proofmill_kernels::NoRandomness;

use crate::isolation::Costs;
use crate::kind::{Invalid, Kind, UnusableKey};

/// A proof system whose verification shares no work between proofs.
pub trait Verifier: 'static {
    /// A key.
    type Key: Send + Sync + 'static;

    /// The kind's name in requests.
    fn name() -> &'static str;

    /// Reads an untrusted key.
    ///
    /// # Errors
    ///
    /// [`UnusableKey`] if the bytes are not a key.
    fn read_key(bytes: &[u8]) -> Result<Self::Key, UnusableKey>;

    /// Verifies one proof.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if the proof is invalid or any of the bytes are malformed.
    fn verify(key: &Self::Key, statement: &[u8], proof: &[u8]) -> Result<(), Invalid>;
}

/// The kind of a proof system's proofs, each fully verified by its reduction. A claim means that the proof is valid,
/// and its value is zero.
pub struct Unbatched<V>(PhantomData<fn() -> V>);

/// A proof that was verified.
#[derive(Clone, Copy, Debug)]
pub struct Verified(());

// === impl Unbatched ===

impl<V> Unbatched<V> {
    /// The kind.
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<V> Default for Unbatched<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V: Verifier> fmt::Debug for Unbatched<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Unbatched").field(&V::name()).finish()
    }
}

impl<V: Verifier> Kind for Unbatched<V> {
    type Key = V::Key;
    type Claim = Verified;
    type Weight = ();
    // Any group does: only its zero occurs.
    type Value = G1Projective;

    fn name(&self) -> &str {
        V::name()
    }

    fn has_keys(&self) -> bool {
        true
    }

    fn read_key(&self, bytes: &[u8]) -> Result<V::Key, UnusableKey> {
        V::read_key(bytes)
    }

    fn reduce(
        &self,
        key: Option<&Arc<V::Key>>,
        statement: &[u8],
        proof: &[u8],
    ) -> Result<Verified, Invalid> {
        let key = key.ok_or_else(|| Invalid("no key".into()))?;
        V::verify(key, statement, proof)?;
        Ok(Verified(()))
    }

    /// Weights are not needed: every claim's value is zero.
    fn draw_weights(&self, count: usize) -> Result<Vec<()>, NoRandomness> {
        Ok(vec![(); count])
    }

    fn times(&self, (): &(), _: u64) {}

    fn value(&self, _: &[(&Verified, ())]) -> G1Projective {
        G1Projective::ZERO
    }

    fn check(&self, _: &Verified) -> Result<(), Invalid> {
        Ok(())
    }

    fn costs(&self) -> Costs {
        // No work is left, so neither cost matters.
        Costs {
            fixed: 1.0,
            each: 1.0,
        }
    }
}
