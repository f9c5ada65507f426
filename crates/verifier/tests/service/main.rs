//! The service with real proofs, on threads.

mod aggregates;
mod hostile;
mod partitions;
mod proofs;
mod requests;
mod support;
