//! Ports: what a role may say to the coordinator and ask of it, and no more.
//!
//! A port of a role beside the coordinator ([`Handle`](crate::coordinator::Handle) gives it) and one of a
//! role in another process ([`Client`](crate::remote::Client) gives it) are of the same type and do the
//! same: events, requests and queries travel either way. What only the coordinator's own process can do
//! (wait until nothing moves, drain, observe, sweep blobs) is on the handle, and on no port.

mod host;
mod line;
mod operator;
mod ports;
mod sink;
mod source;
mod worker;

pub use host::HostPort;
pub(crate) use line::{Attachment, Line, Message};
pub use operator::OperatorPort;
pub use ports::Ports;
pub use sink::SinkPort;
pub use source::SourcePort;
pub use worker::WorkerPort;
