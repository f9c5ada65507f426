//! A controller that is a circuit: the SoC in RTL with its firmware, simulated in a process of its own.
//!
//! The process is `zkpu_sim` of `hardware/zkpu`; `hardware/zkpu/sim/soc/zkpu_sim.h` is its protocol. Commands go through
//! the circuit's NVMe queues, so that firmware answers; what belongs to the transport alone (keep alive, the fabric's
//! fields of Identify Controller, no queue commands) is answered here.

mod controller;
mod data;
mod frames;
mod launch;
mod process;
#[cfg(test)]
mod tests;

pub use controller::{Circuit, CircuitError, CircuitOptions};
