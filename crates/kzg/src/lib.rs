//! KZG proofs of Ethereum's data availability over BLS12-381, with the trusted setup of Ethereum's
//! main network: blob proofs (EIP-4844) and cell proofs (EIP-7594, PeerDAS).
//!
//! A [`Request`] is a peer's message: a commitment, a proof, and a blob or one of its cells. A [`Verifier`]
//! reduces it to a [`Claim`], by the work that requests cannot share: hashing and evaluating a blob, or
//! interpolating a cell; decoding and checking two points. Any number of claims of both kinds merge under
//! random weights into one product of three pairings.
//!
//! ```
//! use proofmill_kzg::{BLOB_BYTES, Request, Verifier, draw_weights};
//!
//! // A blob whose elements are all zero: its commitment and proof are the point at infinity.
//! let mut infinity = [0; 48];
//! infinity[0] = 0xc0;
//! let request = Request::Blob { commitment: &infinity, proof: &infinity, blob: &[0; BLOB_BYTES] };
//! let bytes = request.encode();
//!
//! let verifier = Verifier::new();
//! let claim = verifier.reduce(&Request::decode(&bytes)?)?;
//! assert_eq!(verifier.check(&claim), Ok(()));
//!
//! let weights = draw_weights(2)?;
//! assert!(verifier.all_hold(&[(&claim, weights[0]), (&claim, weights[1])]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The checks are those of `verify_blob_kzg_proof` and, for each cell alone,
//! `verify_cell_kzg_proof_batch` of the consensus specification (github.com/ethereum/consensus-specs,
//! `specs/deneb` and `specs/fulu`, `polynomial-commitments*.md`).

mod blob;
mod cell;
mod claim;
mod element;
mod request;
mod setup;
mod verifier;

pub use claim::{Claim, Field, Invalid};
pub use proofmill_kernels::{NoRandomness, draw_weights};
pub use request::{DecodeError, Request};
pub use verifier::Verifier;

/// BLS12-381's scalar field: elements of blobs, and weights.
pub type Scalar = ark_bls12_381::Fr;
/// A point of BLS12-381's first group.
pub type Point = ark_bls12_381::G1Affine;
/// A sum of claims under weights: an element of the target group, written additively.
pub type Value = ark_ec::pairing::PairingOutput<ark_bls12_381::Bls12_381>;

/// Bytes of a commitment or a proof: a compressed point.
pub const POINT_BYTES: usize = 48;
/// Bytes of a field element, big-endian.
pub const ELEMENT_BYTES: usize = 32;
/// Field elements of a blob (`FIELD_ELEMENTS_PER_BLOB`).
pub const BLOB_ELEMENTS: usize = 4096;
/// Bytes of a blob.
pub const BLOB_BYTES: usize = BLOB_ELEMENTS * ELEMENT_BYTES;
/// Field elements of a cell (`FIELD_ELEMENTS_PER_CELL`).
pub const CELL_ELEMENTS: usize = 64;
/// Bytes of a cell.
pub const CELL_BYTES: usize = CELL_ELEMENTS * ELEMENT_BYTES;
/// Cells of a blob that is extended to twice its length (`CELLS_PER_EXT_BLOB`).
pub const CELLS: usize = 2 * BLOB_ELEMENTS / CELL_ELEMENTS;
