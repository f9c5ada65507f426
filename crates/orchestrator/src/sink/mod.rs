//! Where proofs leave, in chain order.

mod directory;
mod service;

pub use directory::Directory;
pub use service::{Emitted, Options, Sink, SinkError, run};
