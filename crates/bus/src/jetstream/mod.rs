//! The log on a NATS server or cluster, in one JetStream stream, and what goes with it there: blobs
//! and leases in a stream each, requests between processes.
//!
//! # The stream is a journal
//!
//! Each message is a frame: what one group of batches came to, as records put and records removed.
//! One process writes at a time, and every frame expects the sequence number of the frame before
//! it, so that
//!
//! - a batch is atomic, on every server: it is in one frame, and a frame too large for one message
//!   counts only with its last;
//! - frames follow each other without waiting: the number that each will get is known;
//! - a writer that was replaced without noticing is refused from its successor's first frame on,
//!   whatever it believes. The successor's first frame is empty: nothing but this fence.
//!
//! Frames at the beginning whose records are all removed are purged; when much of the stream is
//! removed records, those that still live in the oldest frames are put again into the next, under
//! their old places, and the frames go.
//!
//! With a message for each record instead, a batch would need atomic batches (servers from 2.12 on)
//! or a protocol of its own, every removal its own request to the server, and the fence a header on
//! each; the server would sync, replicate and index several messages for each task.

mod blobs;
mod connect;
mod connection;
mod frame;
mod frames;
pub mod hostile;
mod lease;
mod log;
mod options;
mod publisher;
mod refusal;
mod resource;
mod role;
mod stream;
mod writer;

pub use blobs::open_blobs;
pub use connection::{Connection, Request, RequestError, with_sources};
pub use lease::{Lease, LeaseError, LeaseView, Leases};
pub use log::JetStreamLog;
pub use options::{ConnectError, Credentials, NatsOptions};
pub use publisher::{PublishError, Publisher};
pub use refusal::Refusal;
pub use role::Role;
