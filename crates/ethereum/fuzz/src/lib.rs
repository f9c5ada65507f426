//! Code that the fuzz targets share with the test that runs them on stable, `tests/hostile`.

pub mod seeds;
pub mod targets;
