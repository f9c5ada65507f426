//! A command's error: message, advice and exit code.

use std::error::Error;
use std::io::IsTerminal;

use proofmill_bus::with_sources;
use proofmill_telemetry::console_line;

use crate::output;

/// Error that ends a command: a message, optional advice for the user, and the process's exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    help: Option<String>,
    pub(crate) code: u8,
}

// === impl Failure ===

impl Failure {
    /// A general failure: exit code 1.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            help: None,
            code: 1,
        }
    }

    /// An error in the command line: exit code 2.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self {
            code: 2,
            ..Self::new(message)
        }
    }

    /// No answer, for commands such as `verify` where exit code 1 is itself an answer: exit code 3.
    pub(crate) fn no_verdict(message: impl Into<String>) -> Self {
        Self {
            code: 3,
            ..Self::new(message)
        }
    }

    /// This failure with exit code 3, for commands where exit code 1 is an answer.
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

    /// An error with its chain of sources: exit code 1.
    pub(crate) fn of(error: &dyn Error) -> Self {
        Self::new(with_sources(error))
    }

    /// The message, for a report that is not printed here.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Adds a line of advice.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Prints the message and the advice to standard error.
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
