//! Tests of the engine through its public interface: real circuits of both curves, real keys, real proofs.

mod accelerator;
mod faults;
mod inputs;
mod proofs;
mod residency;
mod restart;
mod stress;
mod support;
mod traces;
mod zkpu;
#[path = "../../../zkpu/tests/common/mod.rs"]
mod zkpu_target;
