//! Finding the false claims of a batch whose sum is not zero.
//!
//! A claim i has a value Dᵢ in a group, zero if it holds. What can be asked is a power sum over
//! some claims, Sₖ = Σ iᵏ·Dᵢ, for the price of one check. If k claims are false then S₀ … Sₖ satisfy a
//! linear relation that belongs to their places alone, as the syndromes of a Reed–Solomon code do:
//! with one, S₁ = j·S₀. So k further sums tell where k false claims are, as long as there are few
//! enough sets of k places to try; a set that is not the right one fits with a probability of 2⁻¹²⁸, since
//! values are weighted at random. Beyond that, halves: the right half's sums are those of the whole less
//! the left half's. No sum is wasted: those that did not tell where the false claims are give the
//! values of the last ones.

mod costs;
mod locate;
mod search;

pub use costs::{Costs, LoneCosts};
pub use search::{Suspicion, Values, isolate};
