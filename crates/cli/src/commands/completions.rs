//! `proofmill completions`

use clap::CommandFactory;
use clap_complete::{Shell, generate};

use crate::args::Cli;
use crate::failure::Failure;
use crate::output;

pub(crate) fn run(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    generate(shell, &mut Cli::command(), "proofmill", &mut script);
    output::raw(&script)
}
