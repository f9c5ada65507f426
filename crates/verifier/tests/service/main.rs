//! The service with real proofs, on threads.

mod proofs;
mod requests;
mod support;
