//! Tests that faults of the engine which this one learnt from do not occur here.

mod insecure;
mod jobs;
mod memory;
mod precompiled;
mod unverified;
