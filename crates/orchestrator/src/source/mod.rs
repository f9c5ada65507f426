//! Sources: where a workflow's messages begin.
//!
//! A [`Source`] is a sequence of messages with a position. The [`run`] service submits them within
//! its rate, several at once, and records with each the position before which all have been
//! acknowledged: after a crash the source goes on from there, and what it brings a second time is
//! recognised by its task id. [`submit`] takes one message from anyone.

pub mod ethereum;
mod json;
mod jsonl;
mod range;
mod rate;
mod service;
mod submit;

pub use json::parse_message;
pub use jsonl::Jsonl;
pub use range::Range;
pub use rate::Pace;
pub use service::{Brought, Options, Source, SourceError, SourceMessage, Summary, run};
pub use submit::{PAYLOAD_MAX, SubmitError, submit};
