//! The back end that runs everywhere, in safe Rust over arkworks' field arithmetic, except for
//! pairings: those on BLS12-381 are blst's, and the others multiply by `x86_64_adx` where the processor
//! has the instructions.

pub(crate) mod batch_add;
mod binary_gcd;
pub(crate) mod fixed_base;
pub(crate) mod inner_product;
pub(crate) mod inversion;
pub(crate) mod ntt;
pub(crate) mod pairing;
pub(crate) mod points;
