//! Tests of operations on many elements or points side by side, against arkworks and definitions.

mod decompression;
mod fold;
mod inner_products;
mod poseidon2;
mod subgroup;
