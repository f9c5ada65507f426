//! The faults of the engine that this one learnt from, each with a test that it is not here.

mod insecure;
mod jobs;
mod memory;
mod precompiled;
mod unverified;
