//! Large payloads, named by their content.

mod digest;
mod store;

pub use digest::{Digest, InvalidDigest};
pub use store::{BlobError, BlobStore, Swept};
