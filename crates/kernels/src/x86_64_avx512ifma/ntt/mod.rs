//! Transforms, eight at a time in the lanes of a vector.
//!
//! A transform of n = n₁·n₂ points is n₂ transforms of n₁ points, a multiplication by powers of ω,
//! and n₁ transforms of n₂ points; each lane does one of them, so that no operation crosses lanes.
//! [`arithmetic`] multiplies, [`network`] transforms one block of eight, from one of [`lane_views`] to
//! another, [`tables`] holds the powers, and [`driver`] walks over the blocks.

mod arithmetic;
mod driver;
mod lane_views;
mod network;
mod tables;

pub(crate) use arithmetic::Constants;
pub(crate) use driver::{NttPlan, SMALLEST};
