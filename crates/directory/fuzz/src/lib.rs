//! Code that the fuzz targets share with the test that runs them on stable, `src/tests/hostile.rs`.

pub mod seeds;
pub mod targets;
