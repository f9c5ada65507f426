//! Pairings, eight at a time: each lane holds a pair of its own, and multiplies its lines into a
//! product of its own. The final exponentiation of one value has that value's coefficients in the
//! lanes. Products that are wanted each for itself have a lane of their own, up to the end.
//!
//! The optimal ate pairings of BLS12 curves and BN curves (Vercauteren, "Optimal Pairings", IEEE
//! Transactions on Information Theory 56, 2010). Values of [`fq2`] say what ranges they take.

/// `Copy` for types over a curve, which itself need not be.
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
