//! Tests of the step, of whole circuits, and of proofs.

mod cheats;
mod distribution;
mod one_step;
mod programs;
mod proof;
mod random;
mod sizes;
mod statements;
mod tampering;
mod whole;
