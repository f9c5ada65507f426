//! The host's side: an NVMe/TCP initiator and a driver of ZKPUs, on threads of their own.
//!
//! [`Initiator`] decides, without input or output; [`Connection`] moves bytes; [`Zkpu`] speaks the protocol of
//! `docs/zkpu.md` to any device.

mod bring_up;
mod connection;
mod discovery;
mod driver;
mod error;
mod initiator;
mod jobs;
mod options;
mod watch;

pub use connection::{Callback, Connection, Pending};
pub use discovery::discover;
pub use driver::Zkpu;
pub use error::HostError;
pub use initiator::{CommandData, Initiator, Response};
pub(crate) use jobs::descriptors_in;
pub use jobs::{Areas, PrecomputeRequest, Range, StartRequest};
pub use options::HostOptions;
