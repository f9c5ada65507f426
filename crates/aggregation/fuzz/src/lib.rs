//! Code that the fuzz target shares with the test that runs it on stable, `tests/aggregation/hostile.rs`.

#[path = "../../tests/aggregation/case.rs"]
#[expect(dead_code, reason = "the tests of aggregates use more of it")]
mod case;
pub mod seeds;
pub mod targets;
