//! Keys and the work done with them, whatever the curve.

mod accelerator;
mod footprint;
mod hot;
mod traits;
mod work;

pub(crate) use accelerator::Accelerator;
pub(crate) use footprint::{Footprint, Sizes};
pub(crate) use hot::HotKey;
pub(crate) use traits::{Key, StepError, Stop, Work};
