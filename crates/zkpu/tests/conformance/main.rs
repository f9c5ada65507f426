//! The conformance suite over NVMe/TCP on the functional model, and what is ours alone.

#[path = "../common/mod.rs"]
mod common;
mod jobs;
mod suite;
