//! Pairings, eight at a time: each lane holds a separate pair and multiplies its lines into a separate
//! product. The final exponentiation of one value has that value's coefficients in the lanes. Several products
//! with separate results have one lane each, including the final exponentiation.
//!
//! The optimal ate pairings of BLS12 curves and BN curves (Vercauteren, "Optimal Pairings", IEEE
//! Transactions on Information Theory 56, 2010). [`fq2`] documents the ranges of values.

/// Implements `Copy` for types over a curve that need not be `Copy` itself.
macro_rules! copied {
    ($($name:ident),*) => {$(
        impl<E: Tower<L, N>, const L: usize, const N: usize> Clone for $name<E, L, N> {
            #[inline(always)]
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<E: Tower<L, N>, const L: usize, const N: usize> Copy for $name<E, L, N> {}
    )*};
}

mod accumulator;
mod cyclotomic;
mod each;
mod entry;
mod exponentiation;
mod fixed;
mod fq;
mod fq2;
mod lanes;
mod line_product;
mod lines;
mod miller;
mod power;
#[cfg(test)]
mod tests;
mod tower;

pub(crate) use each::Terms;
pub(crate) use entry::{
    final_exponentiation, final_exponentiation_each, lines, miller_loop, multi_power, power_each,
    value_each,
};
pub(crate) use fixed::FixedPair;
