//! Real programs: well-behaved, broken and hostile.

mod executor;
#[cfg(target_os = "linux")]
mod sandbox;
mod support;
#[cfg(target_os = "linux")]
mod sweep;
