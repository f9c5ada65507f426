//! Circuits of circom, beside circom and snarkjs themselves.
//!
//! The circuits and the tools lie in `tests/circom`; what the tools make of them is made when it is
//! first needed and kept in the target folder.

mod artefacts;
mod keys;
mod look;
mod powers_of_tau;
mod proofs;
mod refusals;
mod streams;
mod tools;
