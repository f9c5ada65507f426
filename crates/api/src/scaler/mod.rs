//! The external scaler that KEDA asks how many workers a pool should have, over gRPC. See docs/scaling.md.
//!
//! KEDA has no tokens: beyond loopback, TLS with certificates of clients is required.

mod pools;
pub mod proto;
mod server;
mod service;

pub use pools::ScaledMill;
pub use server::{Scaler, ScalerOptions};
