//! The aggregation of parts in shards, made by the workers of a bus.
//!
//! Dispatchers that prove parts also make shards: each listens on a subject that all workers of the partition share, where
//! it says on which subject it listens alone. The stage `partition.aggregate` is the leader
//! ([`sharded`](proofmill_aggregation::sharded)): it asks who is there, sends each worker the proved parts of
//! one shard, and then the messages of the aggregation. A worker ([`ShardServer`]) keeps a shard for as long as messages
//! come.
//!
//! Nothing depends on a worker: one that is silent is replaced by another, which is given the same parts and messages; if
//! none is left, or an answer is false, the leader aggregates alone. Workers do not learn more than from the proofs.

mod bus;
mod crew;
mod leader;
mod message;
mod server;
#[cfg(test)]
mod tests;
mod work;

pub(super) use bus::BusNetwork;
pub(super) use leader::Leaders;
pub(super) use server::{ShardMaker, ShardServer};
pub(super) use work::{Share, make_shard};
