//! The host's side: an NVMe/TCP initiator and a driver of ZKPUs, on threads of their own.
//!
//! [`Initiator`] decides, without input or output; [`Connection`] moves bytes; [`Zkpu`] speaks the protocol of
//! `docs/zkpu.md` to any device, over connections of its own or through the kernel's NVMe driver ([`Address`]).

mod bring_up;
mod connection;
mod discovery;
mod driver;
mod error;
mod initiator;
mod jobs;
mod options;
#[cfg(target_os = "linux")]
mod passthrough;
mod queue;
mod watch;

pub use connection::Connection;
pub use discovery::discover;
pub use driver::Zkpu;
pub use error::HostError;
pub use initiator::{CommandData, Initiator, Response};
pub(crate) use jobs::descriptors_in;
pub use jobs::{Areas, PrecomputeRequest, Range, StartRequest};
pub use options::{Address, HostOptions};
pub use queue::{Callback, Link, Pending, Queue};
