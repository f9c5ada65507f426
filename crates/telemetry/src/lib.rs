//! Logs, lines for people on standard error, and metrics in the Prometheus text format.
//!
//! It knows nothing of tasks: services describe what they count, this crate shows it.

mod console;
mod front;
mod logs;
mod metrics;

pub use console::{console_flush, console_line, console_printer};
pub use front::{FRONT_PAGE_TYPE, FrontPage};
pub use logs::{InvalidFilter, LogFormat, init_logs};
pub use metrics::{CONTENT_TYPE, Histogram, Histograms, Kind, Page};
