//! The back end that runs everywhere, in safe Rust over arkworks' field arithmetic.

pub(crate) mod batch_add;
mod binary_gcd;
pub(crate) mod fixed_base;
pub(crate) mod inner_product;
pub(crate) mod inversion;
pub(crate) mod ntt;
pub(crate) mod points;
