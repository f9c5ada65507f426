//! The conformance suite over NVMe/TCP on the functional model, or on the circuit in RTL by `make zkpu-rtl`, and what is ours
//! alone.

#[path = "../common/mod.rs"]
mod common;
mod jobs;
mod suite;
