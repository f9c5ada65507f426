//! The program itself, where an experiment runs it as its users do.

use std::path::PathBuf;

/// Which program.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Program {
    /// The program [default: the one beside this]
    #[arg(long)]
    proofmill: Option<PathBuf>,
}

impl Program {
    /// Where it is.
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
