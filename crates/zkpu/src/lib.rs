//! The ZKPU: an NVMe device that computes multi-scalar products over BLS12-377 G1. `docs/zkpu.md` is its protocol.
//!
//! | module | what is there |
//! |---|---|
//! | [`nvme`] | layouts and codes: commands, completions, identify data, log pages |
//! | [`tcp`] | the NVMe/TCP transport: PDUs from bytes and to bytes |
//! | [`curve`] | points, tables, scalars and results in the device's formats |
//! | [`controller`] | the controller as a state machine over any device, and a functional model of the device |
//! | [`circuit`] | the controller that is the SoC in RTL, simulated in a process of its own |
//! | [`target`] | the NVMe/TCP target that serves a controller |
//! | [`host`] | an initiator, and the driver of any device that speaks the protocol |
//! | [`device`] | a ZKPU as a device of `proofmill-accelerator` |
//! | [`conformance`] | what any device must do, as cases |

mod bytes;
pub mod circuit;
pub mod conformance;
pub mod controller;
pub mod curve;
pub mod device;
pub mod host;
pub mod nvme;
pub mod target;
pub mod tcp;
