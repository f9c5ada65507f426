//! Inner-product arguments over Grumpkin in barretenberg's format: the part of a `noir-rollup`
//! proof that a pairing cannot check, and that takes a verifier longest.
//!
//! An [`Opening`] claims that a committed polynomial has a value at a point. It is decoded from a
//! rollup proof or from this crate's compact form, and checked by a [`Verifier`], alone or together
//! with others. A check is a combination of points that must be zero, most of it over a fixed
//! [`Srs`]; a batch has one such combination, under random weights.
//!
//! ```
//! use proofmill_ipa::{Opening, Scalar, Srs, Verifier};
//!
//! let srs = Srs::derive(3);
//! let coefficients = [7, 1, 0, 0, 5, 0, 2, 9].map(Scalar::from);
//! let opening = Opening::prove(&srs, &coefficients, Scalar::from(2)).expect("no zero challenge");
//! assert_eq!(opening.claim.value, Scalar::from(7 + 2 + 5 * 16 + 2 * 64 + 9 * 128));
//!
//! let verifier = Verifier::new(&srs, 1 << 20);
//! assert_eq!(verifier.verify(&opening), Ok(()));
//! assert!(verifier.verify_batch(&[opening.clone(), opening]).is_ok());
//! ```
//!
//! The rest of a rollup proof is not checked here: a valid opening does not show that the proof's
//! circuit is satisfied.

mod combination;
mod elements;
mod opening;
pub mod poseidon2;
mod prove;
mod reduce;
mod rollup;
mod srs;
mod srs_file;
mod transcript;
mod verifier;

pub use combination::Weights;
pub use opening::{DecodeError, Opening, OpeningClaim, Round};
pub use proofmill_kernels::NoRandomness;
pub use reduce::{DeferredClaim, Invalid};
pub use srs::{MAX_LOG_SIZE, ROLLUP_LOG_SIZE, Srs};
pub use srs_file::SrsFileError;
pub use verifier::{BatchError, Verifier};

/// Grumpkin's base field, which is BN254's scalar field: coordinates, and elements of proofs.
pub type Base = ark_grumpkin::Fq;
/// Grumpkin's scalar field, which is BN254's base field: coefficients, and challenges.
pub type Scalar = ark_grumpkin::Fr;
/// A point of Grumpkin, y² = x³ − 17, or the point at infinity.
pub type Point = ark_grumpkin::Affine;
/// A sum of points.
pub type Sum = ark_grumpkin::Projective;
