//! Loaded keys and the computation of proofs with them, behind traits that hide the curve.

mod accelerator;
mod footprint;
mod hot;
mod policy;
mod traits;
mod work;

pub(crate) use accelerator::Accelerator;
pub(crate) use footprint::{Footprint, Sizes, checking_bytes};
pub(crate) use hot::HotKey;
pub(crate) use policy::KeyPolicy;
pub(crate) use traits::{Key, StepError, Work, ensure_wanted};
