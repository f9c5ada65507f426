//! Mirage: Groth16 with a committed part of the witness, over every curve.

mod batches;
mod binding;
mod completeness;
mod key_files;
mod prepared_inputs;
mod simulation;
mod support;
mod weakness;
