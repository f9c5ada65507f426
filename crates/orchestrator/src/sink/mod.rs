//! Sinks: delivery of proofs in chain order, with checks before it.

mod check;
mod directory;
mod ethereum;
mod exec;
mod history;
mod jetstream;
mod secret;
mod service;
mod webhook;

pub use check::{Checks, EmissionCheck, EmissionRefused, VerifiedResult};
pub use directory::Directory;
pub use ethereum::{Ethereum, PayloadForm};
pub use exec::Exec;
pub(crate) use history::History;
pub use jetstream::JetStream;
pub use secret::Secret;
pub use service::{Emitted, Options, Sink, SinkError, SinkStopped, message_of, run};
pub use webhook::Webhook;
