//! The NVMe/TCP target: one controller, one host at a time, and a discovery service.
//!
//! [`Subsystem`] and [`Session`] decide, without input or output; [`Target`] moves bytes and wakes them.

mod discovery;
mod options;
mod service;
mod session;
mod subsystem;
#[cfg(test)]
mod tests;
mod transfers;

pub use options::TargetOptions;
pub use service::{Target, TargetError};
pub use session::Session;
pub(crate) use subsystem::FABRICS;
pub use subsystem::{ConnectionId, Subsystem};
