//! Blobs: large payloads, addressed by the digest of their content.

mod bucket;
mod digest;
mod folder;
mod hold;
mod https;
mod store;
mod sweep;

pub use bucket::Bucket;
pub use digest::{Digest, InvalidDigest};
pub use folder::{FolderError, FolderManifest};
pub use hold::Held;
pub(crate) use store::ConditionalDelete;
pub use store::{BlobError, BlobStore};
pub use sweep::{SweepScan, Sweeper, Swept, UnreferencedSince};
