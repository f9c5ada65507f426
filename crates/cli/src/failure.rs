//! What went wrong, for the person at the terminal.

use std::error::Error;
use std::io::IsTerminal;

use proofmill_bus::with_sources;
use proofmill_telemetry::console_line;

use crate::output;

/// A failure of a command: what, and what to do about it.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    help: Option<String>,
    pub(crate) code: u8,
}

// === impl Failure ===

impl Failure {
    /// Something failed: exit code 1.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            help: None,
            code: 1,
        }
    }

    /// The command line is wrong: exit code 2.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self {
            code: 2,
            ..Self::new(message)
        }
    }

    /// A question could not be answered, where the exit code 1 is an answer: exit code 3.
    pub(crate) fn unanswered(message: impl Into<String>) -> Self {
        Self {
            code: 3,
            ..Self::new(message)
        }
    }

    /// The same where it leaves a question without an answer: exit code 3.
    pub(crate) fn without_answer(self) -> Self {
        Self { code: 3, ..self }
    }

    /// Stopped by a signal before the end: exit code 130.
    pub(crate) fn interrupted(message: impl Into<String>) -> Self {
        Self {
            code: 130,
            ..Self::new(message)
        }
    }

    /// An error with all that caused it.
    pub(crate) fn of(error: &dyn Error) -> Self {
        Self::new(with_sources(error))
    }

    /// With what to do about it.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Shows it on standard error.
    pub(crate) fn print(&self) {
        let (red, bold, plain) = if std::io::stderr().is_terminal() {
            ("\x1b[1;31m", "\x1b[1m", "\x1b[0m")
        } else {
            ("", "", "")
        };
        console_line(format!(
            "{red}error{plain}: {}",
            output::plain(&self.message)
        ));
        if let Some(help) = &self.help {
            console_line(format!("  {bold}help{plain}: {}", output::plain(help)));
        }
    }
}

impl<E: Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::of(&error)
    }
}
