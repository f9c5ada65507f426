//! The curves this crate proves over.

use ark_ec::pairing::Pairing;
use proofmill_kernels::MsmGroup;

/// A pairing whose groups the kernels work in.
pub trait Engine: Pairing<G1: MsmGroup, G2: MsmGroup> {
    /// The curve's name in key files: at most 16 ASCII bytes.
    const NAME: &'static str;
}

impl Engine for ark_bls12_381::Bls12_381 {
    const NAME: &'static str = "bls12-381";
}
