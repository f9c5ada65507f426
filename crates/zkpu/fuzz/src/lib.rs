//! Code of the fuzz targets.

pub mod targets;
