//! `proofmill completions`

use clap::CommandFactory;
use clap_complete::{Shell, generate};

use crate::args::Cli;
use crate::failure::Failure;

pub(crate) fn run(shell: Shell) -> Result<(), Failure> {
    generate(shell, &mut Cli::command(), "proofmill", &mut std::io::stdout());
    Ok(())
}
