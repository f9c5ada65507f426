//! Logs, console lines on standard error, and metrics in the OpenMetrics text format, which Prometheus reads.
//!
//! The crate knows nothing of tasks: services name and describe their metrics, this crate renders them.

mod console;
mod front;
mod logs;
mod metrics;

pub use console::{console_flush, console_line, console_printer};
pub use front::{FRONT_PAGE_TYPE, FrontPage};
pub use logs::{InvalidFilter, LogFormat, init_logs};
pub use metrics::{
    CONTENT_TYPE, Histogram, Histograms, Kind, Page, TracedHistograms, asks_for_exemplars,
};
