//! Grouping strategies: which messages belong together, and when a group of them is complete.
//!
//! A [`Strategy`] is a deterministic state machine without input or output; it knows nothing of the process that
//! runs it (that is [`crate::collector`]). After a restart it is rebuilt by offering every message that is not yet
//! part of a finished group once more, in log order. [`Match`], [`Sequential`] and [`Range`] come with the crate; a
//! custom one implements [`Strategy`] and is registered by name.

mod matching;
mod range;
mod sequential;
mod strategy;

pub use matching::{Expected, Match};
pub use range::Range;
pub use sequential::Sequential;
pub use strategy::{Group, Member, OfferDecision, OverdueDecision, Strategy, StrategyFactory};
