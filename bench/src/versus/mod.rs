//! One job, done by us and by others, in turns: what every comparison needs.
//!
//! All [`Contender`]s of [`Contenders`] are set up on the same input, their results are compared, then
//! they run in turns until there are samples enough; a [`Comparison`] is what came out.

mod comparison;
mod contender;
mod lineup;
mod options;
mod table;

pub(crate) use comparison::{Comparison, Measured};
pub(crate) use contender::{Contender, Purpose, Sample, time};
pub(crate) use lineup::{Contenders, PeerAnswer};
pub(crate) use options::{COMPARISON_HELP, Curve, Group, Options, PeerCommand};
