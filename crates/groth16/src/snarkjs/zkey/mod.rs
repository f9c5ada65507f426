//! `.zkey`: snarkjs's Groth16 proving keys.
//!
//! A container (see [`iden3`](proofmill_r1cs::iden3)) of version 1. Little-endian; points are
//! affine, coordinates in Montgomery form (times R = 2^(8·width)), infinity all zeros. From snarkjs's
//! `zkey_utils.js`, `zkey_new.js` and `groth16_prove.js`. With n the size of the domain, m the number
//! of variables and p that of public inputs:
//!
//! | section | content |
//! |---|---|
//! | 1 header | the protocol (u32): 1 is Groth16 |
//! | 2 Groth16 header | width and prime of the base field, of the scalar field; m, p, n (u32); α₁ β₁ β₂ γ₂ δ₁ δ₂ |
//! | 3 IC | p + 1 points of the first group |
//! | 4 coefficients | their number (u32); each: matrix (0 is A, 1 is B), row, variable (u32), value times R² |
//! | 5 A, 6 B in G1, 7 B in G2 | m points each |
//! | 8 C | m − p − 1 points of the first group |
//! | 9 H | n points of the first group: Lᵢ(τ)/δ for the odd points i of the domain of 2n |
//! | 10 contributions | the circuit's hash (64 bytes), their number, each: see [`Contribution`] |
//!
//! The rows of A end with one for each instance variable, with that variable alone.

mod checked_key_store;
mod contributions;
mod file;
mod format;
mod info;
mod key;
mod points;
mod write;

pub(in crate::snarkjs) use points::{point_bytes, read_points};

pub use checked_key_store::CheckedKeyStore;
pub use contributions::{Contribution, ContributionHash, Contributions};
pub use file::{ZkeyFile, ZkeyHeader};
pub use format::ZKEY_FORMAT;
pub use info::{ContributionInfo, SectionInfo, ZkeyInfo};
pub use key::{Checked, Coefficient, CoefficientMatrix, SNARKJS_NEW_ORDER, Trust, Zkey};
