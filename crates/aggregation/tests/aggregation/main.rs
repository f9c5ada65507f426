//! Aggregates over both curves, against verifiers that are written from the paper and arkworks alone.

mod case;
mod groth16;
mod hostile;
mod mirage;
mod naive;
mod sharded;
mod srs;
