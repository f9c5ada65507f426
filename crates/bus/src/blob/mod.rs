//! Large payloads, named by their content.

mod bucket;
mod digest;
mod https;
mod store;

pub use bucket::Bucket;
pub use digest::{Digest, InvalidDigest};
pub use store::{BlobError, BlobStore, Swept};
