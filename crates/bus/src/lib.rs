//! The durable log: keyed records in one total order, at most one live record per key, and atomic
//! conditional batches. It is independent of tasks and proofs.
//!
//! [`Log`] is the whole contract. [`EmbeddedLog`] keeps a log in a directory of this machine;
//! [`MemoryLog`] in memory, for tests and simulation. Large payloads are in a [`BlobStore`], and
//! records refer to them by [`Digest`].
//!
//! ```
//! use bytes::Bytes;
//! use proofmill_bus::{AppendError, Key, Log, MemoryLog, Op};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let log = MemoryLog::new();
//! let result = Key::new("result.block-7.chunk-2").unwrap();
//! log.append(vec![Op::put_new(result.clone(), "first")]).await.unwrap();
//! // The first result wins; a second is refused, and nothing of its batch is written.
//! let second = log.append(vec![Op::put_new(result.clone(), "second")]).await;
//! assert!(matches!(second, Err(AppendError::Conflict { key }) if key == result));
//! assert_eq!(log.get(&result).await.unwrap().unwrap().value, Bytes::from("first"));
//! # });
//! ```

mod blob;
mod certificate;
mod embedded;
mod error;
mod jetstream;
mod key;
mod log;
mod memory;
mod pending;
mod secret;

pub use blob::{
    BlobError, BlobStore, Bucket, Digest, FolderError, FolderManifest, Held, InvalidDigest,
    SweepScan, Sweeper, Swept, UnreferencedSince,
};
pub use certificate::certificate_remedy;
pub use embedded::{EmbeddedLog, Loss, OpenError, Options};
pub use error::{AppendError, LogFailure, ReadError};
#[doc(hidden)]
pub use jetstream::hostile;
pub use jetstream::{
    ConnectError, Connection, Credentials, JetStreamLog, Lease, LeaseError, LeaseView, Leases,
    Membership, MissingStream, NatsOptions, PublishError, Publisher, Refusal, Request,
    RequestError, open_blobs, with_sources,
};
pub use key::{InvalidKey, Key, MAX_KEY_BYTES};
pub use log::{
    Durable, Entry, Expect, Log, LogUsage, MAX_BATCH_OPS, MAX_VALUE_BYTES, Op, Seq, until_durable,
};
pub use memory::MemoryLog;
pub use secret::{SecretError, read_secret, read_secret_blocking};
