//! The process executor: any program, one run for each attempt at a task.
//!
//! A run gets a private scratch directory (mode 0700) with the task's input in a file, and is
//! started there as `PROGRAM ARGS… --input-path IN --output-path OUT`, with no standard input, in a
//! process group of its own ([`Handing`] has other ways). Exit code 0 with an output file is success; 65 (`EX_DATAERR` of
//! `sysexits.h`) says that no retry will help; everything else is a failure that may be retried.
//!
//! What a run can count on:
//!
//! - **Nothing outlives its run.** When the leader exits, the time limit passes, the run is
//!   cancelled, or its future is dropped, the whole process group ends: `SIGTERM`, a grace period,
//!   `SIGKILL`. On Linux, descendants that left the group (`setsid`) are found by the
//!   [`SCRATCH_VARIABLE`] in their environment and killed too.
//! - **Nothing outlives a crash for long.** Where there is a helper for it ([`supervise_programs_with`]),
//!   programs end when the process that runs them is killed; and [`ProcessExecutor::sweep`] ends what a
//!   killed Proofmill left running, before the next one starts work in the same scratch root.
//! - **No secret is handed on.** A program sees a short list of this process's variables, those that
//!   describe its task, and those that its specification names. On Linux it gains no rights
//!   (`no_new_privs`); under [`Sandbox::Strict`] it writes to its scratch directory only and has no
//!   network.
//! - **No signal reaches a stranger.** The group is signalled only while its leader is not yet
//!   reaped, so its number cannot have been given to another; the sweep compares start times.
//! - **Output cannot block or fill anything.** Both streams are always drained, and only their head
//!   and tail are kept; the output file is measured before it is read.
//! - **A failure of the machine is not one of the task.** No scratch folder, descriptors or processes
//!   end a run as [`Outcome::Machine`]; so does the program's own failure if its file system is full
//!   when it ends, by other files than its own.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use proofmill_orchestrator::executor::process::{Outcome, ProcessExecutor, ProcessSpec, TaskContext};
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
mod group;
#[cfg(target_os = "linux")]
mod marked;
#[cfg(not(target_os = "linux"))]
#[path = "unmarked.rs"]
mod marked;
mod memory;
mod program;
mod room;
mod run;
mod scratch;
mod spec;
mod supervised;
mod sweep;
mod verdict;

pub use attempt::{Attempt, Outcome, TaskContext};
pub use capture::Captured;
pub use run::ProcessExecutor;
pub use scratch::SCRATCH_VARIABLE;
pub use spec::{Handing, ProcessError, ProcessSpec, Sandbox};
pub use supervised::{
    RunningProgram, end_programs_left, running_programs, supervise_programs_with,
};
pub use sweep::Swept;
