//! The messages of OTLP that are sent, and the client and the server of its service, generated from
//! `crates/api/proto/otlp`.

#[allow(
    missing_docs,
    unreachable_pub,
    clippy::all,
    rust_2018_idioms,
    reason = "generated"
)]
mod generated {
    tonic::include_proto!("opentelemetry.proto.collector.trace.v1");
}

pub use generated::*;
