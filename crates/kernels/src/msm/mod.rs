//! Multi-scalar multiplication: Pippenger's buckets with signed digits.
//!
//! [`multiply`] is the interface; the rest is the algorithm, written once over a back end's
//! [`PointKernel`](point_kernel::PointKernel): scalars are cut into signed digits ([`recode`]) by a
//! [`plan`], points are added to the buckets of their digits in batches that share an inversion
//! ([`accumulate`]), and the buckets are summed up ([`pippenger`]).

/// Calls a test's function, generic over the curve, for each curve of the crate.
#[cfg(test)]
macro_rules! on_every_curve {
    ($check:ident) => {
        $check::<ark_bls12_381::g1::Config>();
        $check::<ark_bls12_381::g2::Config>();
        $check::<ark_bls12_377::g1::Config>();
        $check::<ark_bls12_377::g2::Config>();
        $check::<ark_bn254::g1::Config>();
        $check::<ark_bn254::g2::Config>();
        $check::<ark_grumpkin::GrumpkinConfig>();
        $check::<ark_pallas::PallasConfig>();
        $check::<ark_vesta::VestaConfig>();
    };
}

pub(crate) mod accumulate;
mod bucket_sum;
pub(crate) mod calibrate;
pub(crate) mod endomorphism;
pub(crate) mod fold;
pub(crate) mod multiply;
pub(crate) mod multiply_each;
mod pippenger;
pub(crate) mod plan;
pub(crate) mod point_kernel;
pub(crate) mod prepared;
pub(crate) mod recode;
pub(crate) mod words;

pub use calibrate::{Calibration, calibrate};
pub use fold::{fold, fold_on};
pub use multiply::{MAX_BASES, fixed_base, msm, msm_bigint, msm_on};
pub use multiply_each::{multiply_each, multiply_each_on, scale_each, scale_each_on};
pub use prepared::PreparedBases;
