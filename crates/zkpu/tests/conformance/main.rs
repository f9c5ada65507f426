//! The accelerator's conformance suite for products, over NVMe/TCP, on the functional model; on the
//! circuit in RTL by `make zkpu-rtl`.
//!
//! The suite is the accelerator's own file. It covers five groups; a ZKPU has one, so that the device under test gives
//! the products of the other groups, which are not what is tested here, to the CPU.

#[path = "../common/mod.rs"]
mod common;
mod devices;
mod jobs;
#[path = "../../../accelerator/tests/conformance/products.rs"]
mod products;
