//! Rank-1 constraint systems: `A·z ∘ B·z = C·z` with three sparse matrices.
//!
//! [`R1cs`] is built once from an arkworks circuit and then only read; an [`Assignment`] is made
//! for each proof, without building matrices again. [`write_precompiled`] writes a system to a file in its
//! form in memory, so that it need not be synthesised again either.

mod assignment;
mod coefficients;
pub mod iden3;
mod matrix;
mod packed;
mod precompiled;
mod system;

pub use assignment::Assignment;
pub use coefficients::Coefficients;
pub use matrix::{Matrix, MatrixBuilder};
pub use precompiled::{
    PRECOMPILED_FORMAT, PrecompiledFile, PrecompiledHeader, load_precompiled, write_precompiled,
};
pub use system::{MAX_SIZE, R1cs, R1csError, Unsatisfied};
