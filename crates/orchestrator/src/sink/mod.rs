//! Where proofs leave, in chain order.

mod directory;
mod exec;
mod jetstream;
mod secret;
mod service;
mod webhook;

pub use directory::Directory;
pub use exec::Exec;
pub use jetstream::JetStream;
pub use secret::{Secret, SecretError};
pub use service::{Emitted, Options, Sink, SinkError, run};
pub use webhook::Webhook;
