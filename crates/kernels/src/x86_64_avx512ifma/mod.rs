//! The back end for x86-64 with AVX-512 IFMA: eight field elements at a time, one in each 64-bit
//! lane, as limbs of 52 bits.
//!
//! Every function here is `unsafe` or private for one reason: it must only run where
//! [`InstructionSet::Avx512Ifma`](crate::InstructionSet::Avx512Ifma) is available. Entry points
//! enable the instructions by `#[target_feature]`; everything below them is `#[inline(always)]`,
//! so that it is compiled inside of them.
#![expect(
    unsafe_code,
    reason = "vector intrinsics, and loads by pointer from arrays whose bounds are checked once"
)]

pub(crate) mod batch_add;
pub(crate) mod decompression;
pub(crate) mod doubling;
pub(crate) mod field;
pub(crate) mod field2;
pub(crate) mod fold;
pub(crate) mod inner_products;
pub(crate) mod memory;
pub(crate) mod modulus;
pub(crate) mod multiply_each;
pub(crate) mod ntt;
pub(crate) mod pairing;
pub(crate) mod points;
pub(crate) mod poseidon2;
pub(crate) mod square_root;
pub(crate) mod subgroup;
#[cfg(test)]
mod tests;
pub(crate) mod transpose;
pub(crate) mod vector_field;
