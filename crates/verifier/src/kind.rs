//! Kinds of proofs.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use ark_ec::PrimeGroup;
use proofmill_kernels::NoRandomness;
use rayon::prelude::*;

use crate::isolation::{Costs, LoneCosts};

/// A kind of proof: the reduction of a proof to a claim that is cheap to check with others, and the sum of
/// claims.
///
/// [`reduce`](Self::reduce) does all the work that proofs cannot share, once for each proof. The resulting claim
/// has a value in a group, zero if the proof is valid: a combination of points, or a product of pairings.
/// Values of claims under random weights add up, so one check suffices for many claims, and checks of
/// subsets find the false ones.
///
/// `examples/own_kind.rs` adds a kind.
pub trait Kind: Send + Sync + 'static {
    /// A decoded verifying key; `()` for kinds without keys.
    type Key: Send + Sync + 'static;
    /// A proof after all that can be done for it alone.
    type Claim: Send + Sync + 'static;
    /// The factor of a claim in a sum of several.
    type Weight: Send + Sync;
    /// The group in which values of claims lie.
    type Value: PrimeGroup;

    /// The name by which requests name the kind: lower case, at most 32 bytes.
    fn name(&self) -> &str;

    /// Whether a proof needs a key.
    fn has_keys(&self) -> bool;

    /// Reads an untrusted key.
    ///
    /// # Errors
    ///
    /// [`UnusableKey`], with the reason.
    fn read_key(&self, bytes: &[u8]) -> Result<Self::Key, UnusableKey>;

    /// Decodes an untrusted proof and does all the work that proofs cannot share. `key` is `Some` if
    /// [`has_keys`](Self::has_keys).
    ///
    /// # Errors
    ///
    /// [`Invalid`] if the proof is invalid already, without the final check.
    fn reduce(
        &self,
        key: Option<&Arc<Self::Key>>,
        statement: &[u8],
        proof: &[u8],
    ) -> Result<Self::Claim, Invalid>;

    /// The result of [`reduce`](Self::reduce) for each proof, in their order. Kinds override it that reduce several
    /// proofs in less time than one by one.
    fn reduce_each(
        &self,
        proofs: &[ProofInput<'_, Self::Key>],
    ) -> Vec<Result<Self::Claim, Invalid>> {
        let reduce = |proof: &ProofInput<'_, Self::Key>| {
            self.reduce(proof.key.as_ref(), proof.statement, proof.proof)
        };
        proofs.iter().map(reduce).collect()
    }

    /// The most proofs that are passed to [`reduce_each`](Self::reduce_each) at once; 1, the default, if more
    /// would save no time. No proof of such a group has its verdict before all of the group are reduced.
    fn reduced_together(&self) -> usize {
        1
    }

    /// Draws independent weights from the operating system, of 128 bits and none of them zero.
    ///
    /// # Errors
    ///
    /// [`NoRandomness`].
    fn draw_weights(&self, count: usize) -> Result<Vec<Self::Weight>, NoRandomness>;

    /// A weight times a small number.
    fn times(&self, weight: &Self::Weight, factor: u64) -> Self::Weight;

    /// The values of claims under their weights, added up: one check. On the threads of the current
    /// rayon pool.
    fn value(&self, claims: &[(&Self::Claim, Self::Weight)]) -> Self::Value;

    /// Checks a single claim, without weights.
    ///
    /// # Errors
    ///
    /// [`Invalid`], with the reason as far as this kind can tell it.
    fn check(&self, claim: &Self::Claim) -> Result<(), Invalid>;

    /// The [`check`](Self::check) of each claim alone, in their order, on the threads of the current rayon pool.
    /// Kinds override it that check several claims side by side in less time than one by one.
    fn check_each(&self, claims: &[&Self::Claim]) -> Vec<Result<(), Invalid>> {
        claims.par_iter().map(|claim| self.check(claim)).collect()
    }

    /// The [`value`](Self::value) of each claim alone, in their order, on the threads of the current rayon pool.
    /// Kinds override it that compute several values side by side in less time than one by one.
    fn value_each(&self, claims: &[(&Self::Claim, Self::Weight)]) -> Vec<Self::Value> {
        let claims = claims.par_chunks(1);
        claims.map(|claim| self.value(claim)).collect()
    }

    /// A check that costs little beside [`value`](Self::value) and that most false claims fail; `None` if
    /// this kind has no such check. It is called only for batches that contain a false claim.
    fn screen(&self, claim: &Self::Claim) -> Option<Result<(), Invalid>> {
        let _ = claim;
        None
    }

    /// The cost of checking several together, in any unit.
    fn costs(&self) -> Costs;

    /// The cost of [`check_each`](Self::check_each) for valid claims, in the unit of [`costs`](Self::costs).
    fn costs_alone(&self) -> LoneCosts {
        let costs = self.costs();
        LoneCosts::one_by_one(costs.fixed + costs.each)
    }
}

/// An untrusted proof, with its claimed statement.
#[derive(Debug)]
pub struct ProofInput<'a, K> {
    /// The verifying key; `None` for kinds without keys.
    pub key: Option<Arc<K>>,
    /// The encoded statement that the proof claims to prove.
    pub statement: &'a [u8],
    /// The proof.
    pub proof: &'a [u8],
}

/// The reason why a proof is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid(pub Cow<'static, str>);

/// The reason why a key cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnusableKey(pub String);

// === impl UnusableKey ===

impl UnusableKey {
    /// An error with a human-readable reason.
    pub fn because(reason: impl fmt::Display) -> Self {
        Self(reason.to_string())
    }
}

// === impl Invalid ===

impl Invalid {
    /// An error with a human-readable reason.
    pub fn because(reason: impl fmt::Display) -> Self {
        Self(Cow::Owned(reason.to_string()))
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
