//! Circuits Proofmill proves, written for few constraints, and the native code that must agree
//! with them.
//!
//! * [`sha256`]: the SHA-256 compression function and hash (FIPS 180-4).
//! * [`gadgets`]: bits, words and sums, of which other circuits are built too.
//!
//! Circuits implement arkworks' [`ConstraintSynthesizer`](ark_relations::gr1cs::ConstraintSynthesizer)
//! and are generic over the prime field, which must have at least 254 bits.

pub mod gadgets;
pub mod sha256;
