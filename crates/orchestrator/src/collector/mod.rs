//! Collectors: barriers that gather messages into groups, and the processes that evaluate them.
//!
//! A [strategy](crate::grouping) decides which messages belong together. The core evaluates strategies itself unless
//! other processes offer to. In that case a collector has [`PARTITIONS`] partitions, each kept by one [`Host`] at a
//! time. The core goes on holding the messages and firing the barriers, so a host has no state that could be lost: a
//! partition that passes to another host is begun anew there, with every message held.

mod host;
mod partition;
mod service;

pub use host::Host;
pub use partition::{PARTITIONS, PartitionRef};
pub(crate) use partition::{host_of, partition_of};
pub use service::run;
