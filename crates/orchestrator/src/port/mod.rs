//! Ports: the messages and requests that each role may send to the coordinator.
//!
//! A port of a role in the coordinator's process ([`Handle`](crate::coordinator::Handle) provides
//! it) and one of a role in another process ([`Client`](crate::remote::Client) provides it) have
//! the same type and behaviour: events, requests and queries travel either way. Functions that only
//! the coordinator's own process offers (waiting for idleness, drain, observation, sweeping of
//! blobs) are on the handle, and on no port.

mod host;
mod line;
mod operator;
mod ports;
mod sink;
mod source;
mod worker;

pub use host::HostPort;
pub(crate) use line::{Attachment, CoordinatorLink, Message};
pub use operator::OperatorPort;
pub use ports::Ports;
pub use sink::SinkPort;
pub use source::SourcePort;
pub use worker::WorkerPort;
