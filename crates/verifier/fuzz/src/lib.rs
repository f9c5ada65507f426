//! Code that the fuzz target shares with the test that runs it on stable, `tests/service/hostile.rs`.

pub mod seeds;
pub mod targets;
