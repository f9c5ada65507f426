//! The back end that runs everywhere, in safe Rust over arkworks' field arithmetic, but for pairings
//! on BLS12-381, which are blst's.

pub(crate) mod batch_add;
mod binary_gcd;
pub(crate) mod fixed_base;
pub(crate) mod inner_product;
pub(crate) mod inversion;
pub(crate) mod ntt;
pub(crate) mod pairing;
pub(crate) mod points;
