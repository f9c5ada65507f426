//! Messages from producers on other machines, in any language: `POST /v1/queues/NAME/messages` over
//! HTTP, one or many, and `GET /v1/status`; the same over gRPC, on the same port ([`proto`]). See
//! docs/submit.md.
//!
//! Beyond loopback nothing is taken without TLS and a token; pages in a browser are refused anywhere.
//! What a message waits for, and how much of them is held, is bounded.

mod options;
pub mod proto;
mod queues;
mod routes;
mod service;
mod streaming;
mod taker;

pub use options::{Options, OptionsError};
pub use service::{Intake, in_process};
