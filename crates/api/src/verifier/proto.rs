//! The messages of `proofmill.verifier.v1`, its client and its server, as the proto files in
//! `crates/api/proto` describe them.

#[allow(
    missing_docs,
    unreachable_pub,
    clippy::all,
    rust_2018_idioms,
    reason = "generated"
)]
mod generated {
    tonic::include_proto!("proofmill.verifier.v1");
}

pub use generated::*;

/// The proto file, encoded: what reflection tells.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/verifier_descriptor.bin"));
