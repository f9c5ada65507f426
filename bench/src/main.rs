//! Every figure Proofmill publishes, as a command anyone can run.

use clap::{Parser, Subcommand};

#[cfg(feature = "stores")]
mod stores;

/// Every figure Proofmill publishes, as a command anyone can run.
#[derive(Debug, Parser)]
#[command(name = "proofmill-bench", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Debug, Subcommand)]
enum Experiment {
    /// Compare embedded stores under the log's load
    #[cfg(feature = "stores")]
    Stores(stores::Args),
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().experiment {
        #[cfg(feature = "stores")]
        Experiment::Stores(args) => stores::run(&args),
    }
}
