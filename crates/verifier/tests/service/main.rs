//! The service with real proofs, on threads.

mod aggregates;
mod proofs;
mod requests;
mod support;
