//! Finding the false claims of a batch whose sum is not zero.
//!
//! A claim i has a value Dᵢ in a group, zero if it is valid. A power sum over some claims,
//! Sₖ = Σ iᵏ·Dᵢ, costs one check. If k claims are false, then S₀ … Sₖ satisfy a linear relation that depends
//! on their places alone, like the syndromes of a Reed–Solomon code: for one false claim, S₁ = j·S₀. So k
//! further sums locate k false claims, as long as there are few enough sets of k places to try; a wrong set
//! fits with a probability of 2⁻¹²⁸, since values are weighted at random. Otherwise the claims are halved: the
//! right half's sums are those of the whole minus the left half's. No sum is wasted: those that did not
//! locate the false claims give the values of the last ones.

mod costs;
mod locate;
mod search;

pub use costs::{Costs, LoneCosts};
pub use search::{ExpectedFalseShare, Values, isolate};
