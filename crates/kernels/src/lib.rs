//! The hot path of every prover and verifier, behind a small interface: multi-scalar multiplication
//! over affine bases, fixed-base multiplication, number-theoretic transforms, and products of
//! pairings.
//!
//! Callers use [`msm`], [`fixed_base`], [`Domain`] and [`pairing`]; each back end is a folder of this
//! crate. [`portable`] runs everywhere; it uses arkworks' arithmetic, and blst for pairings on BLS12-381.
//!
//! ```
//! use ark_bls12_381::{Fr, G1Affine, G1Projective};
//! use ark_ec::AffineRepr;
//!
//! let bases = [G1Affine::generator(); 3];
//! let sum = proofmill_kernels::msm::<G1Projective>(&bases, &[1, 0, 4].map(Fr::from));
//! assert_eq!(sum, G1Affine::generator() * Fr::from(5));
//! ```

mod curve;
mod decompression;
mod inner_products;
mod instruction_set;
mod memory;
mod msm;
mod ntt;
pub mod pairing;
pub mod portable;
mod poseidon2;
mod subgroup;
mod weights;
#[cfg(target_arch = "x86_64")]
mod x86_64_adx;
#[cfg(target_arch = "x86_64")]
mod x86_64_avx512ifma;

pub use curve::MsmGroup;
pub use decompression::{point_of_x_each, point_of_x_each_on};
pub use inner_products::{inner_products, inner_products_on};
pub use instruction_set::{INSTRUCTION_SET_VARIABLE, InstructionSet, UnknownInstructionSet};
pub use memory::release_memory;
pub use msm::{
    Calibration, MAX_BASES, PreparedBases, calibrate, fixed_base, fold, fold_on, msm, msm_bigint,
    msm_on, multiply_each, multiply_each_on, scale_each, scale_each_on,
};
pub use ntt::{Domain, DomainTooLarge};
pub use poseidon2::{Poseidon2, Poseidon2Field, Poseidon2Parameters};
pub use subgroup::{in_subgroup_each, in_subgroup_each_on};
pub use weights::{NoRandomness, draw_weights};
