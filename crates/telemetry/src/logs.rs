//! Setup of log lines: their destination, filter and format.

use std::io::IsTerminal;

use tracing_subscriber::filter::{ParseError, Targets};
use tracing_subscriber::fmt::time::SystemTime;
use tracing_subscriber::prelude::*;

use crate::console::ConsoleWriter;

/// Format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Human-readable text; coloured on a terminal, plain otherwise.
    #[default]
    Human,
    /// One JSON object a line.
    Json,
}

/// A log filter that does not parse.
#[derive(Debug, thiserror::Error)]
#[error("invalid log filter {filter:?}: {why}; try `info` or `proofmill_orchestrator=debug`")]
pub struct InvalidFilter {
    filter: String,
    why: String,
}

/// Sends log lines to standard error from now on. `filter` is a level, or a level for each of some
/// modules and the rest, of the form that the `tracing` ecosystem uses (`info`,
/// `proofmill_bus=debug,warn`). A second call does nothing.
pub fn init_logs(format: LogFormat, filter: &str) -> Result<(), InvalidFilter> {
    let targets: Targets = filter.parse().map_err(|error: ParseError| InvalidFilter {
        filter: filter.to_owned(),
        why: error.to_string(),
    })?;
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(ConsoleWriter)
        .with_timer(SystemTime);
    let registry = tracing_subscriber::registry().with(targets);
    // An error means that logs were set up before: by the program that embeds us, or by a test.
    let _ = match format {
        LogFormat::Json => registry.with(layer.json()).try_init(),
        LogFormat::Human => {
            let colours = std::io::stderr().is_terminal();
            registry
                .with(layer.with_ansi(colours).with_target(false))
                .try_init()
        }
    };
    Ok(())
}
