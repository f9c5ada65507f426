//! Inner-product arguments over Grumpkin in barretenberg's format: the points and the hash.

pub mod poseidon2;
mod srs;
mod srs_file;

pub use srs::{MAX_LOG_SIZE, ROLLUP_LOG_SIZE, Srs};
pub use srs_file::SrsFileError;

/// Grumpkin's base field, which is BN254's scalar field: coordinates, and elements of proofs.
pub type Base = ark_grumpkin::Fq;
/// A point of Grumpkin, y² = x³ − 17, or the point at infinity.
pub type Point = ark_grumpkin::Affine;
