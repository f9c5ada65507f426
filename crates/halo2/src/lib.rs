//! Halo2 proofs over Vesta, as `halo2_proofs` makes them (Zcash's halo2, version 0.4): verification of
//! one and of many.
//!
//! A [`Verifier`] has the points that polynomials are committed with. It reduces a proof to a
//! [`Claim`]: a combination of points that must be zero. The reduction is all the work that proofs
//! cannot share, from the transcript on. Claims of any circuits merge under random weights into one
//! combination, most of which is over the fixed points.
//!
//! A circuit's [`VerifyingKey`] is read from the pinned text that `halo2_proofs` prints, so verification
//! needs neither that library nor the circuit. [`orchard`] has the statements of Zcash's Orchard bundles,
//! and their circuit's key.
//!
//! Two differences from `halo2_proofs::plonk::verify_proof`: bytes behind a proof are refused, and so are
//! the challenges for which it panics, which occur with negligible probability.

mod arguments;
mod claim;
mod expression;
mod field;
mod key;
mod opening;
pub mod orchard;
mod params;
mod reduce;
mod statement;
mod transcript;
mod verifier;

pub use claim::{Claim, Invalid};
pub use key::{KeyError, MAX_K, MAX_KEY_BYTES, VerifyingKey};
pub use params::Params;
pub use proofmill_kernels::{NoRandomness, draw_weights};
pub use statement::{StatementError, decode_instances, encode_instances};
pub use verifier::Verifier;

/// Vesta's scalar field, which is Pallas' base field: columns, challenges, weights.
pub type Scalar = ark_vesta::Fr;
/// Vesta's base field.
pub type Base = ark_vesta::Fq;
/// A point of Vesta, y² = x³ + 5, or the point at infinity.
pub type Point = ark_vesta::Affine;
/// A sum of points: what claims under weights add up to.
pub type Sum = ark_vesta::Projective;

/// The public inputs of a proof: for each of the circuits that it proves together, its columns.
pub type Instances = [Vec<Vec<Scalar>>];
