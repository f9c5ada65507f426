//! Arguments of `proofmill top`.

use clap::Args;

use super::MillArgs;

#[derive(Debug, Args)]
pub(crate) struct Top {
    #[command(flatten)]
    pub(crate) mill: MillArgs,
    /// Print one frame as text and exit.
    #[arg(long)]
    pub(crate) once: bool,
    /// Milliseconds from frame to frame.
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(100..=60_000))]
    pub(crate) every: u64,
}
