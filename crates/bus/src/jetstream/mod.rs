//! The log on a NATS server or cluster, in one JetStream stream; also blobs and leases, each in
//! streams of their own, and requests between processes.
//!
//! # The stream is a journal
//!
//! Each message is a frame or a piece of one. A frame is the net result of one group of batches:
//! records put and records removed. One process writes at a time, and every frame states the
//! expected sequence number of the message before it, so that
//!
//! - a batch is atomic on every server: it is in one frame, and a frame too large for one message
//!   takes effect only with its last message;
//! - frames are sent without waiting for each other, since the number that each will get is known;
//! - a writer that was replaced without noticing is refused from its successor's first frame on.
//!   That first frame is empty: it serves only as this fence.
//!
//! Frames at the beginning whose records are all removed are purged. When much of the stream is
//! removed records, the live records of the oldest frames are put again into the next frame, under
//! their old positions, and the old frames are purged.
//!
//! With a message for each record instead, a batch would need atomic batches (servers from 2.12 on)
//! or a separate protocol, every removal would be a request to the server, and the fence a header
//! on each message; the server would sync, replicate and index several messages per task.

mod blobs;
mod connect;
mod connection;
mod frame;
mod frames;
pub mod hostile;
mod lease;
mod log;
mod membership;
mod options;
mod publisher;
mod refusal;
mod resource;
mod stream;
mod writer;

pub use blobs::open_blobs;
pub use connection::{Connection, Request, RequestError, with_sources};
pub use lease::{Lease, LeaseError, LeaseView, Leases};
pub use log::JetStreamLog;
pub use membership::{Membership, MissingStream};
pub use options::{ConnectError, Credentials, NatsOptions};
pub use publisher::{PublishError, Publisher};
pub use refusal::Refusal;
