//! Environment and confinement of the programs that Proofmill starts.
//!
//! The programs of stages, of sinks and of witness generators are all started through this crate, so that
//! two things are decided in one place:
//!
//! - **The variables a program sees**: [`Environment`], a short list of the variables that Proofmill runs
//!   with, and those that the workflow names. Passwords of buses and keys of clouds are not among them.
//! - **The rights of a program**: [`Confinement`]. On Linux no program gains rights by executing another
//!   (`no_new_privs`). Under [`Confinement::Strict`] it writes to one folder only, and has no network.
//!   A [`Cgroup`] limits the memory and the number of a whole tree of processes.
//!
//! A thread confines itself and then starts the program, which inherits the thread's restrictions:
//! `no_new_privs`, the Landlock domain and the seccomp filter belong to threads, not to processes. So
//! nothing runs between fork and exec, the standard library can use `posix_spawn`, whose cost does not
//! grow with the memory of this process, and the other threads of this process keep their rights. The one
//! exception is a program that is started in a control group ([`Cgroup::admit`]).
//!
//! ```
//! use std::process::Command;
//! use proofmill_sandbox::{Confinement, Environment};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let environment = Environment { inherit: vec!["TZ".into()], ..Environment::default() };
//! let mut command = Command::new("true");
//! command.env_clear().envs(environment.variables());
//! let mut child = Confinement::Basic.spawn(&mut command)?;
//! assert!(child.wait()?.success());
//! # Ok(()) }
//! ```

mod cgroup;
mod confinement;
mod environment;
#[cfg(target_os = "linux")]
mod strict;
mod survey;

pub use cgroup::{CGROUP_VARIABLE, Cgroup, CgroupLimits, CgroupRoot, NoCgroup, end_left};
pub use confinement::{Confinement, LaunchError};
pub use environment::{Environment, is_variable_name};
pub use survey::Survey;
