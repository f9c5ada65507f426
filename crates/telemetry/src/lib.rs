//! Logs, lines for people on standard error, and metrics in the Prometheus text format.
//!
//! It knows nothing of tasks: services describe what they count, this crate shows it.

mod console;
mod logs;
mod metrics;

pub use console::{console_flush, console_line, console_printer};
pub use logs::{InvalidFilter, LogFormat, init_logs};
pub use metrics::{CONTENT_TYPE, Histogram, Histograms, Kind, Page};
