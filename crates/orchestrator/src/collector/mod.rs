//! Collectors: barriers that gather messages into groups.
//!
//! A [`Strategy`] decides which messages belong together and when a group is complete. It is a
//! deterministic state machine that the core drives and, after a restart, rebuilds by offering
//! every message that is not yet part of a finished group once more, in log order. [`Match`],
//! [`Sequential`] and [`Range`] come with the crate; a custom one implements [`Strategy`] and is
//! registered by name.

mod matching;
mod range;
mod sequential;
mod strategy;

pub use matching::{Expected, Match};
pub use range::Range;
pub use sequential::Sequential;
pub use strategy::{Group, Member, Outcome, Overdue, Strategy, StrategyFactory};
