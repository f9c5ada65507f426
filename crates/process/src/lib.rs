//! Running programs: once for each attempt at a task, confined, and ended with everything they started.
//!
//! A run gets a private scratch directory (mode 0700) with the task's input in a file, and is
//! started there as `PROGRAM ARGS… --input-path IN --output-path OUT`, without standard input, in a
//! process group of its own ([`InputChannel`] lists other ways). Exit code 0 with an output file is
//! success; 65 (`EX_DATAERR` of `sysexits.h`) means that no retry will help; everything else is a
//! failure that may be retried.
//!
//! Guarantees of a run:
//!
//! - **Nothing outlives its run.** When the leader exits, the time limit passes, the run is
//!   cancelled, or its future is dropped, the whole process group is ended: `SIGTERM`, a grace
//!   period, `SIGKILL`. On Linux, descendants that left the group (`setsid`) are found by the
//!   [`SCRATCH_VARIABLE`] in their environment and killed too.
//! - **Nothing outlives a crash for long.** With a helper process ([`supervise_programs_with`]),
//!   programs are ended when the process that runs them is killed; and [`ProcessExecutor::sweep`]
//!   ends programs that a killed Proofmill left running, before the next one starts work in the
//!   same scratch root.
//! - **No secret is passed on.** A program gets a short list of this process's variables, those
//!   that describe its task, and those that its specification names. On Linux it cannot gain rights
//!   (`no_new_privs`); under [`Sandbox::Strict`] it can write to its scratch directory only and has
//!   no network.
//! - **No signal reaches another process.** The group is signalled only while its leader is not yet
//!   reaped, so its id cannot have been reused; the sweep compares start times.
//! - **Output cannot block or fill anything.** Both streams are always drained, and only their head
//!   and tail are kept; the output file is measured before it is read.
//! - **A failure of the machine does not count against the task.** A lack of scratch space,
//!   descriptors or processes ends a run as [`Outcome::Machine`]; so does the program's own failure
//!   if its file system is full when it ends, because of other files than its own.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use proofmill_process::{Outcome, ProcessExecutor, ProcessSpec, TaskContext};
//!
//! let executor = ProcessExecutor::new(ProcessSpec::new("./prover"), "state/scratch".into())?;
//! let task = TaskContext { id: "prove/17".into(), attempt: 1, block: 17 };
//! let attempt = executor.run(&task, br#"{"height":17}"#, std::future::pending()).await;
//! match attempt.outcome {
//!     Outcome::Succeeded(proof) => println!("{} bytes in {:?}", proof.len(), attempt.wall),
//!     other => eprintln!("{other}\n{}", attempt.stderr),
//! }
//! # Ok(()) }
//! ```

mod attempt;
mod capture;
mod confined;
#[cfg(target_os = "linux")]
mod environment_mark;
#[cfg(not(target_os = "linux"))]
#[path = "environment_mark_unsupported.rs"]
mod environment_mark;
mod group;
mod machine;
mod memory;
mod outcome;
mod program;
mod resources;
mod run;
mod scratch;
mod spec;
mod supervised;
mod sweep;

pub use attempt::{Attempt, Outcome, TaskContext};
pub use capture::Captured;
pub use machine::{MachineFailure, MissingResource};
pub use program::find_program;
pub use run::ProcessExecutor;
pub use scratch::SCRATCH_VARIABLE;
pub use spec::{InputChannel, ProcessError, ProcessSpec, Sandbox};
pub use supervised::{RunningProgram, run_supervisor, running_programs, supervise_programs_with};
pub use sweep::Swept;
