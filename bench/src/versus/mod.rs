//! Comparisons of our code with other implementations of the same job.
//!
//! All [`Contender`]s of [`Contenders`] are set up on the same input. Their results are compared, then
//! they run in turns until there are enough samples. The result is a [`Comparison`].

mod comparison;
mod contender;
mod contenders;
mod options;
mod table;

pub(crate) use comparison::{Comparison, Measured};
pub(crate) use contender::{Contender, Purpose, Sample, time};
pub(crate) use contenders::{Contenders, PeerAnswer};
pub(crate) use options::{COMPARISON_HELP, Curve, Group, Options, PeerCommand};
