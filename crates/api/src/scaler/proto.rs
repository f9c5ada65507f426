//! The messages of KEDA's `externalscaler`, its client and its server, generated from the proto file in
//! `crates/api/proto`.

#[allow(
    missing_docs,
    unreachable_pub,
    clippy::all,
    rust_2018_idioms,
    reason = "generated"
)]
mod generated {
    tonic::include_proto!("externalscaler");
}

pub use generated::*;

/// The encoded proto file, for reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/scaler_descriptor.bin"));
