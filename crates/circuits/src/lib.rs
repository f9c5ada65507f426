//! Circuits Proofmill proves, written for few constraints, and the native code that must agree
//! with them.
//!
//! * [`sha256`]: the SHA-256 compression function and hash (FIPS 180-4).
//! * [`bitcoin`]: block headers natively (parsing, targets, work, chain checks) and
//!   [`bitcoin::HeaderChain`], the circuit that proves a run of consecutive headers.
//! * [`gadgets`]: the bits, words and sums both are built from.
//!
//! Circuits implement arkworks' [`ConstraintSynthesizer`](ark_relations::gr1cs::ConstraintSynthesizer)
//! and are generic over the prime field, which must have at least 254 bits.

pub mod bitcoin;
pub mod gadgets;
pub mod sha256;
