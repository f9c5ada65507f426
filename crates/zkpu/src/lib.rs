//! The ZKPU: an NVMe device that computes multi-scalar products over BLS12-377 G1. `docs/zkpu.md` is its protocol.
//!
//! | module | what is there |
//! |---|---|
//! | [`nvme`] | layouts and codes: commands, completions, identify data, log pages |
//! | [`tcp`] | the NVMe/TCP transport: PDUs from bytes and to bytes |
#![forbid(unsafe_code)]

mod bytes;
pub mod nvme;
pub mod tcp;
