//! Scheduling of proving work: a deterministic core, and the services around it.
//!
//! [`core`] decides; everything else does. A workflow's messages are tasks of a durable log; the
//! core leases them to dispatchers head of chain first, retries what fails, gathers what belongs
//! together and emits in block order.

pub mod cluster;
pub mod collector;
pub mod conversation;
pub mod coordinator;
pub mod core;
pub mod dispatcher;
pub mod executor;
pub mod http;
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
pub mod sink;
pub mod source;
mod whole_file;

pub use proofmill_shutdown as shutdown;
