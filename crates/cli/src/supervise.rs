//! The helper process by which programs end with the process that runs them, also when it is killed.

use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use proofmill_orchestrator::executor::process::{end_programs_left, supervise_programs_with};

use crate::failure::Failure;

/// The subcommand that the helper runs, as `args::Command` has it.
const COMMAND: &str = "supervise-programs";

/// From now on this process's programs have a helper, which is started with the first of them.
pub(crate) fn begin() {
    supervise_programs_with(helper);
}

/// The helper: hears of programs on standard input.
pub(crate) async fn run() -> Result<(), Failure> {
    Ok(end_programs_left(std::io::stdin()).await?)
}

/// This program again: the very file that runs, whatever has its name by now.
fn helper() -> Command {
    let itself = if cfg!(target_os = "linux") {
        PathBuf::from("/proc/self/exe")
    } else {
        std::env::current_exe().unwrap_or_else(|_| PathBuf::from("proofmill"))
    };
    let mut command = Command::new(itself);
    command.arg0("proofmill").arg(COMMAND);
    command
}
