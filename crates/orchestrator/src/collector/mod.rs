//! Collectors: barriers that gather messages into groups.
//!
//! A [`Strategy`] decides which messages belong together and when a group is complete. It is a deterministic
//! state machine driven by the core. After a restart the core rebuilds it by offering every message that is
//! not yet part of a finished group once more, in log order. [`Match`], [`Sequential`] and [`Range`] come
//! with the crate; a custom one implements [`Strategy`] and is registered by name.
//!
//! The core evaluates strategies itself unless other processes offer to. In that case a collector has
//! [`PARTITIONS`] partitions, each kept by one [`Host`] at a time. The core goes on holding the messages and
//! firing the barriers, so a host has no state that could be lost: a partition that passes to another host is
//! begun anew there, with every message held.

mod host;
mod matching;
mod partition;
mod range;
mod sequential;
mod service;
mod strategy;

pub use host::Host;
pub use matching::{Expected, Match};
pub use partition::{PARTITIONS, PartitionRef};
pub(crate) use partition::{host_of, partition_of};
pub use range::Range;
pub use sequential::Sequential;
pub use service::run;
pub use strategy::{Group, Member, OfferDecision, OverdueDecision, Strategy, StrategyFactory};
