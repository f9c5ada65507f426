//! One attempt at a task, and how it ended.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;

use super::capture::Captured;
use crate::executor::machine::MachineFailure;

/// The task that a run works on. The program sees it in its environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskContext {
    /// `PROOFMILL_TASK_ID`.
    pub id: String,
    /// `PROOFMILL_ATTEMPT`: 1 for the first.
    pub attempt: u32,
    /// `PROOFMILL_BLOCK`.
    pub block: u64,
}

/// How a run ended, with what is needed to find out why.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// What it means for the task.
    pub outcome: Outcome,
    /// The exit code of the program, if it exited.
    pub exit: Option<i32>,
    /// The signal that killed the program, if one did.
    pub signal: Option<i32>,
    /// What it wrote to standard output.
    pub stdout: Captured,
    /// What it wrote to standard error.
    pub stderr: Captured,
    /// From the start of the program to its exit; zero if it did not start.
    pub wall: Duration,
    /// From the call of `run` to the start of the program.
    pub spawned_after: Duration,
    /// Largest resident set of the program itself (not of its children) that was seen, in bytes.
    /// Linux only; sampled at growing intervals, so `None` for a program that ends within a few
    /// milliseconds, and a lower bound for every other.
    pub peak_rss: Option<u64>,
    /// Set if the scratch folder's file system was full when the program ended, and not by what the
    /// program itself had written: an output that is cut short is the machine's failure then.
    pub starved: Option<MachineFailure>,
}

/// What an attempt means for its task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Exit code 0; the bytes of the output file.
    Succeeded(Bytes),
    /// The program failed in a way that a retry may mend.
    Failed {
        /// What happened, and the last line of standard error if there is one.
        reason: String,
    },
    /// Exit code 65 (`EX_DATAERR`): the program says that this input can never succeed.
    Permanent {
        /// What happened, and the last line of standard error if there is one.
        reason: String,
    },
    /// The time limit passed; the process group was killed.
    TimedOut,
    /// The caller cancelled (drain, lost lease); the process group was killed.
    Cancelled,
    /// The program did not run at all: it is missing or not executable.
    CouldNotStart {
        /// What could not be done, and what to do about it.
        reason: String,
    },
    /// The machine failed: no scratch folder, no descriptors, no processes, no room for the input or
    /// the output. Not an attempt at the task.
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
            starved: None,
        }
    }
}

impl Outcome {
    /// Whether the task is done.
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Succeeded(_))
    }
}

/// One line for a person; the output itself is not shown.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Succeeded(output) => write!(f, "succeeded with {} bytes", output.len()),
            Self::Failed { reason } => write!(f, "failed: {reason}"),
            Self::Permanent { reason } => write!(f, "failed for good: {reason}"),
            Self::TimedOut => f.write_str("killed at its time limit"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::CouldNotStart { reason } => write!(f, "could not start: {reason}"),
            Self::Machine(failure) => write!(f, "not for the task's sake: {failure}"),
        }
    }
}
