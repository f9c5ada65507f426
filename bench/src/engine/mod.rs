//! Experiments on the resident engine: the time that it saves, the load of the processors, and its memory.

mod circuits;
mod crash;
mod critical;
mod estimates;
mod memory;
mod mixed;
mod process;
mod running;
mod steady;
mod warm;

use clap::Subcommand;

use running::EngineInProcess;

/// Bytes that the default circuit hashes, which takes slightly more than 2¹⁸ constraints.
const BYTES: usize = 512;

/// Arguments of `proofmill-bench engine`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The circuit is SHA-256 of 512 bytes, by circomlib, with more than 2^18 constraints, unless --zkey and
--witness name files of another. circom and snarkjs are those that the tests run: `make interop-tools`
installs them. The engine runs in this process, as it does in `proofmill engine serve`; crash and mixed
start that program, with circuits of ours too.

  proofmill-bench engine warm --proofs 50
  proofmill-bench engine steady
  proofmill-bench engine memory
  proofmill-bench engine estimates FOLDER
  proofmill-bench engine critical
  proofmill-bench engine crash --kills 20
  proofmill-bench engine mixed --jobs 1000")]
pub(crate) struct Args {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Debug, Subcommand)]
enum Experiment {
    /// Proofs by an engine that stays, by a process for each, and by snarkjs
    Warm(warm::Args),
    /// One job of many partitions: how busy the processors are, and how long no stage runs
    Steady(steady::Args),
    /// The most memory with 1, 2 and 4 partitions under way, beside the formula
    Memory(memory::Args),
    /// The most memory of a key and its first proofs, beside what the engine expects that to be
    Estimates(estimates::Args),
    /// A critical job behind twenty others: how soon it begins
    Critical(critical::Args),
    /// Killed at random moments under load: what is lost, or proven with two results
    Crash(crash::Args),
    /// Ten circuits in memory for three of them, random priorities and cancels
    Mixed(mixed::Args),
}

/// Runs the chosen experiment.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    match &args.experiment {
        Experiment::Warm(args) => warm::run(args).await,
        Experiment::Steady(args) => steady::run(args).await,
        Experiment::Memory(args) => memory::run(args).await,
        Experiment::Estimates(args) => estimates::run(args).await,
        Experiment::Critical(args) => critical::run(args).await,
        Experiment::Crash(args) => crash::run(args).await,
        Experiment::Mixed(args) => mixed::run(args).await,
    }
}
