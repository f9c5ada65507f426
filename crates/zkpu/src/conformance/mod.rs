//! The conformance suite for ZKPUs of any maker.
//!
//! [`protocol`] speaks to the device itself: what a malformed command must be refused with, by the page
//! `docs/zkpu.md`. [`products`] are the accelerator's cases ([`proofmill_accelerator::conformance`]) for the one group of
//! a ZKPU, which run on it as a [device](crate::device).

mod case;
mod compute;
mod memory;
mod precompute;
mod protocol;

pub use case::ProtocolCase;
pub use protocol::{LOG_N_MAX, products, protocol};
