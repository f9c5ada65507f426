//! Field elements, Poseidon2 and Merkle paths as rank-1 constraints.

mod element;
mod poseidon2;

pub(crate) use element::{Element, Synthesizer};
pub(crate) use poseidon2::{climb, compress};
