//! The `proofmill` program, for experiments that run it as a process.

use std::path::PathBuf;

/// The `--program` argument.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Program {
    /// The program [default: the one beside this]
    #[arg(long)]
    proofmill: Option<PathBuf>,
}

impl Program {
    /// The path of the program. Fails if there is no such file.
    pub(crate) fn find(&self) -> anyhow::Result<PathBuf> {
        let beside = std::env::current_exe()?.with_file_name("proofmill");
        let program = self.proofmill.clone().unwrap_or(beside);
        anyhow::ensure!(
            program.is_file(),
            "{} is not there: build it (`make build`), or name it with --proofmill",
            program.display()
        );
        Ok(program)
    }
}
