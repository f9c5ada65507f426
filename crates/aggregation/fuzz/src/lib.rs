//! Code that the fuzz targets share with the tests that run them on stable, `tests/aggregation/hostile.rs`.

#[path = "../../tests/aggregation/case.rs"]
#[expect(dead_code, reason = "the tests of aggregates use more of it")]
mod case;
pub mod recording;
pub mod seeds;
pub mod targets;
