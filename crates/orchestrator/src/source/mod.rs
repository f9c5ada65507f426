//! Sources: the origin of a workflow's messages.
//!
//! A [`Source`] is a sequence of messages with a position. The [`run`] service submits them within
//! its rate, several at once, and records with each the position before which all have been
//! acknowledged. After a crash the source continues from there; messages submitted a second time
//! are recognised by their task ids. [`submit`] submits a single message of any producer.

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
pub use service::{Options, Source, SourceError, SourceItem, SourceMessage, Summary, run};
pub use submit::{PAYLOAD_MAX, SubmitError, submit};
