//! The ZKPU's own structures: the capability in Identify Controller, jobs and their log pages, events.
//!
//! `docs/zkpu.md` is the specification of every byte here.

mod capability;
mod health;
mod jobs;
mod shape;

pub use capability::{CAPABILITY_BYTES, ZkpuCapability};
pub use health::{Counters, Event, ZkpuHealth};
pub use jobs::{JobEntry, JobState, JobTable};
pub use shape::Shape;

/// Version of the protocol that this crate speaks.
pub const PROTOCOL_VERSION: u16 = 1;
/// Bytes of a block of namespace 1.
pub const BLOCK_BYTES: u64 = 512;
/// Largest transfer of one command.
pub const TRANSFER_BYTES_MAX: u32 = 1 << 20;
/// Bytes of a scalar.
pub const SCALAR_BYTES: u64 = 32;
/// Bytes of an entry of a table.
pub const TABLE_ENTRY_BYTES: u64 = 144;
/// Bytes of a plain point.
pub const PLAIN_POINT_BYTES: u64 = 96;
/// Bytes of a result.
pub const RESULT_BYTES: u64 = 192;
/// Bits of a folded scalar.
pub const SCALAR_BITS: u32 = 252;
