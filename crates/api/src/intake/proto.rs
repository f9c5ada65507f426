//! The messages of `proofmill.mill.v1`, its client and its server, generated from the proto files in
//! `crates/api/proto`.

#[allow(
    missing_docs,
    unreachable_pub,
    clippy::all,
    rust_2018_idioms,
    reason = "generated"
)]
mod generated {
    tonic::include_proto!("proofmill.mill.v1");
}

pub use generated::*;

/// The encoded proto file, for reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/intake_descriptor.bin"));
