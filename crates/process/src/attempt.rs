//! The record of one attempt at a task.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;

use super::capture::Captured;
use super::machine::MachineFailure;

/// The task of a run, passed to the program in environment variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskContext {
    /// `PROOFMILL_TASK_ID`.
    pub id: String,
    /// `PROOFMILL_ATTEMPT`: 1 for the first.
    pub attempt: u32,
    /// `PROOFMILL_BLOCK`.
    pub block: u64,
}

/// The result of a run, with the data needed to diagnose it.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// Consequence for the task.
    pub outcome: Outcome,
    /// The exit code of the program, if it exited.
    pub exit: Option<i32>,
    /// The signal that killed the program, if one did.
    pub signal: Option<i32>,
    /// Captured standard output.
    pub stdout: Captured,
    /// Captured standard error.
    pub stderr: Captured,
    /// Time from the start of the program to its exit; zero if it did not start.
    pub wall: Duration,
    /// Time from the call of `run` to the start of the program.
    pub spawned_after: Duration,
    /// Largest resident set observed of the program itself, not of its children, in bytes. Linux
    /// only; sampled at growing intervals, so it is a lower bound, and `None` for a program that
    /// ends within a few milliseconds.
    pub peak_rss: Option<u64>,
    /// Set if the scratch folder's file system was full when the program ended, and not because of
    /// the program's own files: a truncated output is then the machine's failure.
    pub disk_full: Option<MachineFailure>,
}

/// Consequence of an attempt for its task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Exit code 0; the bytes of the output file.
    Succeeded(Bytes),
    /// The program failed in a way that a retry may overcome.
    Failed {
        /// Description of the failure, with the last line of standard error if there is one.
        reason: String,
    },
    /// Exit code 65 (`EX_DATAERR`): the program states that this input can never succeed.
    Permanent {
        /// Description of the failure, with the last line of standard error if there is one.
        reason: String,
    },
    /// The time limit passed; the process group was killed.
    TimedOut,
    /// The caller cancelled (drain, lost lease); the process group was killed.
    Cancelled,
    /// The program did not run: it is missing or not executable.
    CouldNotStart {
        /// The operation that failed, and advice.
        reason: String,
    },
    /// The machine failed: no scratch folder, descriptors or processes, or no space for the input
    /// or the output. Not an attempt at the task.
    Machine(MachineFailure),
}

impl Attempt {
    /// An attempt whose program never ran.
    pub(super) fn not_started(outcome: Outcome, spawned_after: Duration) -> Self {
        Self {
            outcome,
            exit: None,
            signal: None,
            stdout: Captured::default(),
            stderr: Captured::default(),
            wall: Duration::ZERO,
            spawned_after,
            peak_rss: None,
            disk_full: None,
        }
    }
}

impl Outcome {
    /// Whether the attempt succeeded.
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Succeeded(_))
    }
}

/// One line for a person, without the output itself.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Succeeded(output) => write!(f, "succeeded with {} bytes", output.len()),
            Self::Failed { reason } => write!(f, "failed: {reason}"),
            Self::Permanent { reason } => write!(f, "failed for good: {reason}"),
            Self::TimedOut => f.write_str("killed at its time limit"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::CouldNotStart { reason } => write!(f, "could not start: {reason}"),
            Self::Machine(failure) => write!(f, "the machine failed, not the task: {failure}"),
        }
    }
}
