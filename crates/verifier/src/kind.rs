//! Kinds of proofs.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use ark_ec::PrimeGroup;
use rayon::prelude::*;

use crate::isolation::{Costs, LoneCosts};

/// A kind of proof: how one is reduced to a claim that is cheap to check with others, and how claims
/// are added up.
///
/// All the work that is for one proof is done in [`reduce`](Self::reduce), once. What is left has a value
/// in a group, zero if the proof is valid: a combination of points, or a product of pairings. Values
/// of claims under random weights add up, so that one check does for many, and the false ones among them
/// are found by checks of subsets.
///
/// `examples/own_kind.rs` adds a kind.
pub trait Kind: Send + Sync + 'static {
    /// A verifying key, as this kind wants it. `()` where there are none.
    type Key: Send + Sync + 'static;
    /// A proof after all that can be done for it alone.
    type Claim: Send + Sync + 'static;
    /// The factor of a claim in a sum of several.
    type Weight: Send + Sync;
    /// The group in which values of claims lie.
    type Value: PrimeGroup;

    /// The name by which requests ask for it: lower case, at most 32 bytes.
    fn name(&self) -> &str;

    /// Whether a proof needs a key.
    fn has_keys(&self) -> bool;

    /// Reads a key from anyone.
    ///
    /// # Errors
    ///
    /// [`UnusableKey`], with the reason.
    fn read_key(&self, bytes: &[u8]) -> Result<Self::Key, UnusableKey>;

    /// Decodes a proof from anyone and does all the work that is its own. `key` is there if
    /// [`has_keys`](Self::has_keys).
    ///
    /// # Errors
    ///
    /// [`Invalid`] if these bytes prove nothing, whatever the final check would say.
    fn reduce(
        &self,
        key: Option<&Arc<Self::Key>>,
        statement: &[u8],
        proof: &[u8],
    ) -> Result<Self::Claim, Invalid>;

    /// As [`reduce`](Self::reduce) for each of some proofs, in their order: for kinds that do it for several
    /// in less time than one by one.
    fn reduce_each(
        &self,
        proofs: &[Unreduced<'_, Self::Key>],
    ) -> Vec<Result<Self::Claim, Invalid>> {
        let reduce = |proof: &Unreduced<'_, Self::Key>| {
            self.reduce(proof.key.as_ref(), proof.statement, proof.proof)
        };
        proofs.iter().map(reduce).collect()
    }

    /// The most proofs that [`reduce_each`](Self::reduce_each) is given: 1 if that is of no use. Each has its
    /// verdict after all of them only.
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

    /// Checks a claim for itself, without weights.
    ///
    /// # Errors
    ///
    /// [`Invalid`], with what this kind can tell.
    fn check(&self, claim: &Self::Claim) -> Result<(), Invalid>;

    /// As [`check`](Self::check) for each of some claims, in their order, on the threads of the current rayon pool:
    /// for kinds that do it for several in less time than one by one.
    fn check_each(&self, claims: &[&Self::Claim]) -> Vec<Result<(), Invalid>> {
        claims.par_iter().map(|claim| self.check(claim)).collect()
    }

    /// What [`value`](Self::value) is of each of some claims alone, in their order, on the threads of the current rayon
    /// pool: for kinds that do it for several in less time than one by one.
    fn value_each(&self, claims: &[(&Self::Claim, Self::Weight)]) -> Vec<Self::Value> {
        let claims = claims.par_chunks(1);
        claims.map(|claim| self.value(claim)).collect()
    }

    /// A check that costs little beside [`value`](Self::value) and that most false claims fail; none if
    /// this kind has none. It is asked only where a batch has a false claim.
    fn screen(&self, claim: &Self::Claim) -> Option<Result<(), Invalid>> {
        let _ = claim;
        None
    }

    /// The cost of checking several together, in any unit.
    fn costs(&self) -> Costs;

    /// The cost of [`check_each`](Self::check_each) for claims that hold, in that unit.
    fn costs_alone(&self) -> LoneCosts {
        let costs = self.costs();
        LoneCosts::one_by_one(costs.fixed + costs.each)
    }
}

/// A proof from anyone, with what it is said to prove.
#[derive(Debug)]
pub struct Unreduced<'a, K> {
    /// The key it is under, if its kind has keys.
    pub key: Option<Arc<K>>,
    /// What it is said to prove.
    pub statement: &'a [u8],
    /// The proof.
    pub proof: &'a [u8],
}

/// A proof proves nothing: for this reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid(pub Cow<'static, str>);

/// A key that cannot be used: for this reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnusableKey(pub String);

/// The operating system gives no random numbers: for this reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the operating system gives no random numbers: {0}")]
pub struct NoRandomness(pub String);

// === impl UnusableKey ===

impl UnusableKey {
    /// With a reason for a person.
    pub fn because(reason: impl fmt::Display) -> Self {
        Self(reason.to_string())
    }
}

// === impl Invalid ===

impl Invalid {
    /// With a reason for a person.
    pub fn because(reason: impl fmt::Display) -> Self {
        Self(Cow::Owned(reason.to_string()))
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
