//! Logs, and metrics in the Prometheus text format.
//!
//! It knows nothing of tasks: services describe what they count, this crate shows it.

mod logs;
mod metrics;

pub use logs::{InvalidFilter, LogFormat, init_logs};
pub use metrics::{CONTENT_TYPE, Histogram, Kind, Page};
