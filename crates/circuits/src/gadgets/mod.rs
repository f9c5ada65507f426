//! Bits, 32-bit words and sums modulo 2³² as rank-1 constraints.

mod bit;
mod builder;
mod word;

pub use bit::Bit;
pub use builder::{Builder, Lc};
pub use word::{Sum, Word};
