//! Scheduling of proving work: a deterministic core, and the services around it.
//!
//! [`core`] makes the decisions; the services around it carry them out. A workflow's messages are
//! tasks in a durable log. The core leases them to dispatchers, lowest block first, retries
//! failures, gathers groups and emits in block order.

pub mod bundle;
mod clock;
pub mod cluster;
pub mod collector;
pub mod conversation;
pub mod coordinator;
pub mod core;
pub mod dispatcher;
pub mod executor;
pub mod grouping;
pub mod id;
mod identity;
pub mod message;
pub mod mill;
pub mod origin;
pub mod payload;
pub mod plan;
pub mod port;
pub mod principal;
pub mod record;
pub mod remote;
pub mod role_counts;
pub mod sink;
pub mod source;
pub mod text;
pub mod traces;

pub use clock::wall_ms;
pub use proofmill_shutdown as shutdown;
