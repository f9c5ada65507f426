//! The commands for proofs of execution.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::aggregate::CurveName;
use super::circuits::Threads;
use super::engine::size;
use super::partition::{ProofArgs, SetupArgs};

const EXAMPLES: &str = "\
Examples:
  proofmill rv32 run sort.elf --stdin numbers
  proofmill rv32 prove sort.elf --stdin numbers --proof sorted.proof --public sorted.json
  proofmill rv32 verify sort.elf.keys --public sorted.json sorted.proof

The statement: the program, on this input or on some private input, halts with this exit code and
this output. docs/rv32.md has the machine, and how programs are compiled.";

const SETUP_EXAMPLES: &str = "\
Examples:
  proofmill rv32 setup sort.elf --stdin numbers -o sort.keys
  proofmill rv32 setup sort.elf --steps 100000 --data-size 64KiB --input-size 4KiB -o sort.keys

Keys are for one program. They serve all its executions of at most so many steps, so much memory,
input and output; what is not given is as much as the program takes on the input of --stdin, with
room for others.";

const PROVE_EXAMPLES: &str = "\
Examples:
  proofmill rv32 prove sort.elf --stdin numbers --proof sorted.proof --public sorted.json
  proofmill rv32 prove sort.elf --keys sort.keys --stdin numbers --proof sorted.proof \\
                       --public sorted.json --workflow sorted.toml

Keys that do not exist yet are made first, for development: as `setup` makes them for this input.
An execution that traps, or that does not fit the keys, is refused before anything is proved.";

const VERIFY_EXAMPLES: &str = "\
Examples:
  proofmill rv32 verify sort.keys --public sorted.json sorted.proof
  proofmill rv32 verify sort.keys --program sort.elf --public sorted.json sorted.proof

The verifier reads circuit.json and verifying.key of the folder. That this key is for the program is
the claim of the folder's maker; with --program the circuit is made again from the executable, and
must be the key's. This takes as long as the first step of `setup`. The key's maker could forge
proofs: its digest (`partition info`) must come from a source that you trust.

Exit codes: 0 the proof is valid; 1 it is not; 2 the command line is wrong; 3 there is no verdict:
a file cannot be read, or the key is unusable.";

/// `proofmill rv32`
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Rv32 {
    /// Run a program without a proof: its output goes to standard output.
    Run(Rv32Run),
    /// Make the keys of a program, for development.
    ///
    /// Anyone who runs this command, or can read its memory, could forge proofs.
    Setup(Rv32Setup),
    /// Prove an execution.
    Prove(Rv32Prove),
    /// Verify the proof of an execution, and show what it states.
    Verify(Rv32Verify),
}

/// `proofmill rv32 run`
#[derive(Debug, Args)]
pub(crate) struct Rv32Run {
    /// The program: an ELF executable for RV32IM.
    #[arg(value_name = "PROGRAM")]
    pub(crate) program: PathBuf,
    /// The program's input [default: none].
    #[arg(long, value_name = "FILE")]
    pub(crate) stdin: Option<PathBuf>,
    /// Stop after this many steps.
    #[arg(long, value_name = "N", default_value_t = proofmill_rv32_circuit::STEPS_MAX)]
    pub(crate) steps: u64,
    /// Print a summary as one JSON object on standard output instead of the program's output.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Sizes of the executions that keys are for.
#[derive(Clone, Debug, Args)]
pub(crate) struct SizeArgs {
    /// Most steps of an execution [default: those that the program takes].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=proofmill_rv32_circuit::STEPS_MAX))]
    pub(crate) steps: Option<u64>,
    /// Most memory beside the program's own data [default: twice what the program takes].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) data_size: Option<u64>,
    /// Longest input [default: the next power of two].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) input_size: Option<u64>,
    /// Longest output [default: the next power of two].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) output_size: Option<u64>,
    /// Make the input part of the statement. Without this option it stays secret.
    #[arg(long)]
    pub(crate) public_input: bool,
    /// Steps in a part of the circuit. A part of 1,024 steps has half a million constraints.
    #[arg(long, value_name = "N", default_value_t = 1024,
          value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub(crate) steps_per_part: u32,
}

/// `proofmill rv32 setup`
#[derive(Debug, Args)]
#[command(after_help = SETUP_EXAMPLES)]
pub(crate) struct Rv32Setup {
    /// The program: an ELF executable for RV32IM.
    #[arg(value_name = "PROGRAM")]
    pub(crate) program: PathBuf,
    /// Input on which the program is run to find the sizes [default: none].
    #[arg(long, value_name = "FILE")]
    pub(crate) stdin: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) sizes: SizeArgs,
    #[command(flatten)]
    pub(crate) setup: SetupArgs,
}

/// `proofmill rv32 prove`
#[derive(Debug, Args)]
#[command(after_help = PROVE_EXAMPLES)]
pub(crate) struct Rv32Prove {
    /// The program: an ELF executable for RV32IM.
    #[arg(value_name = "PROGRAM")]
    pub(crate) program: PathBuf,
    /// The program's input [default: none].
    #[arg(long, value_name = "FILE")]
    pub(crate) stdin: Option<PathBuf>,
    /// The folder with the keys [default: the program's path with `.keys`].
    #[arg(long, value_name = "DIR")]
    pub(crate) keys: Option<PathBuf>,
    /// Make the input part of the statement. Keys are for public inputs or for secret ones.
    #[arg(long)]
    pub(crate) public_input: bool,
    #[command(flatten)]
    pub(crate) proof: ProofArgs,
}

/// `proofmill rv32 verify`
#[derive(Debug, Args)]
#[command(after_help = VERIFY_EXAMPLES)]
pub(crate) struct Rv32Verify {
    /// The folder with the keys.
    #[arg(value_name = "DIR")]
    pub(crate) keys: PathBuf,
    /// The public inputs, as JSON, in decimal.
    #[arg(long, value_name = "PUBLIC")]
    pub(crate) public: PathBuf,
    /// The program that the proof must be of: check that the verifying key is for it.
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) program: Option<PathBuf>,
    /// Where the program's output is written, if the proof is valid [default: it is described].
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// The proof.
    pub(crate) proof: PathBuf,
    #[command(flatten)]
    pub(crate) threads: Threads,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

// === impl SizeArgs ===

impl SizeArgs {
    /// The default sizes.
    pub(crate) const fn default_for(public_input: bool) -> Self {
        Self {
            steps: None,
            data_size: None,
            input_size: None,
            output_size: None,
            public_input,
            steps_per_part: 1024,
        }
    }
}

// === impl SetupArgs ===

impl SetupArgs {
    /// The arguments of a setup that another command runs first.
    pub(crate) fn before_proving(keys: PathBuf, threads: Threads) -> Self {
        Self {
            curve: CurveName::Bn254,
            output: keys,
            threads,
            json: false,
        }
    }
}
