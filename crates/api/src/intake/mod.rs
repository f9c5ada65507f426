//! The intake: messages from producers on other machines, in any language. `POST /v1/queues/NAME/messages`
//! over HTTP takes one message or many, and `GET /v1/status` shows the workflow; the same calls exist over
//! gRPC, on the same port ([`proto`]). See docs/submit.md.
//!
//! Beyond loopback TLS and a token are required; pages in a browser are always refused. The waiting time of
//! a message and the memory for messages are limited.

mod options;
pub mod proto;
mod queues;
mod routes;
mod service;
mod streaming;
mod taker;

pub use options::{Options, OptionsError};
pub use service::{Intake, in_process};
