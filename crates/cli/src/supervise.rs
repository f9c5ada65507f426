//! The helper process that ends prover programs when the process that runs them ends, even if it is killed.

use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use proofmill_process::{run_supervisor, supervise_programs_with};

use crate::failure::Failure;

/// Hidden subcommand that the helper runs; must match `args::Command::SupervisePrograms`.
const COMMAND: &str = "supervise-programs";

/// Registers the helper, which is started together with this process's first program.
pub(crate) fn begin() {
    supervise_programs_with(helper);
}

/// Body of the helper: reads the list of programs from standard input, and ends those left when the input closes.
pub(crate) async fn run() -> Result<(), Failure> {
    Ok(run_supervisor(std::io::stdin()).await?)
}

/// Command that runs this executable again. On Linux it is the file being run, even if its path was replaced since.
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
