//! The commands for circuits in parts.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use proofmill_aggregation::sharded::MAX_SHARDS;
use proofmill_api::engine::Address;

use super::aggregate::CurveName;
use super::circuits::Threads;
use super::cluster::BusArgs;
use super::engine::{EngineQueryArgs, size};

const EXAMPLES: &str = "\
Examples, for a Merkle tree over eight leaves, one hash to a part:
  head -c 512 /dev/urandom > leaves
  proofmill partition setup merkle-tree --levels 3 -o tree
  proofmill partition prove tree --witness leaves --proof tree.proof --public tree.public.json
  proofmill partition verify --key tree/verifying.key --public tree.public.json tree.proof

The verifier needs the key, the public inputs and the proof, and nothing else. The proof grows
with the logarithm of the number of parts; the key does not grow with them.";

const SETUP_EXAMPLES: &str = "\
Examples:
  proofmill partition setup merkle-tree --levels 3 -o tree
  proofmill partition setup merkle-tree --levels 10 --hashes 4 --portals 100 -o large
  proofmill partition setup squarings --parts 7 -o squarings

Parts of a class share a key: disk space and time for keys depend on the number of classes, not on
the number of parts.";

const PROVE_EXAMPLES: &str = "\
Examples:
  proofmill partition prove tree --witness leaves --proof tree.proof --public tree.public.json
  proofmill partition prove tree --memory 4GiB \\
                            --witness leaves --proof tree.proof --public tree.public.json

One part is in memory at a time, within --memory. With --workflow the parts are proved by any number
of processes:
  proofmill partition prove tree --witness leaves --proof tree.proof --public tree.public.json \\
                            --workflow tree.toml
  proofmill run tree.toml

Without --workflow, finished work is kept in a journal beside the proof until the proof is written:
after Ctrl-C, a signal or a power cut, run the same command again to continue. Keep the journal
secret: together with the proof it reveals the witness.";

const VERIFY_EXAMPLES: &str = "\
Examples:
  proofmill partition verify --key tree/verifying.key --public tree.public.json tree.proof

Exit codes: 0 the proof is valid; 1 it is not; 2 the command line is wrong; 3 there is no verdict:
a file cannot be read, or the key is unusable.";

const REGISTER_EXAMPLES: &str = "\
Examples:
  proofmill engine serve
  proofmill partition register tree
  proofmill partition prove tree --witness leaves --proof tree.proof --public tree.public.json \\
                            --workflow tree.toml --at unix:.proofmill/engine/engine.sock

Classes are named by the checksums of their keys. Keys stay in the engine's memory between
proofs, within its budget, and its devices are used.";

const PUBLISH_EXAMPLES: &str = "\
Examples:
  proofmill partition publish tree --bus nats://bus:4222
  proofmill partition publish tree --bus nats://bus:4222 --remove

A coordinator must have run on the bus before: it makes the store.

Keys are identified by the digests of their content, and `partition prove --workflow` writes the
folder's digest into the workflow: a process without the folder fetches that content and no other,
once, into its --keys. What was put before an interruption is not sent again.";

const INFO_EXAMPLES: &str = "\
Examples:
  proofmill partition info tree
  proofmill partition info tree --cores 1,16,256
  proofmill partition info tree --no-times
  proofmill partition info tree/verifying.key
  proofmill partition info tree.proof

Of a folder with keys, times are estimated from a measurement of this machine, which takes about a
second: a small part is proved, and points are aggregated, on one core. The estimate leaves out the
network, disks, an orchestrator and its checks.";

/// A number of shards.
fn shards(text: &str) -> Result<u16, String> {
    let number = text.parse::<u16>().ok();
    let number = number.filter(|number| (2..=MAX_SHARDS).contains(&usize::from(*number)));
    number
        .filter(|number| number.is_power_of_two())
        .ok_or_else(|| format!("a power of two from 2 to {MAX_SHARDS} is needed"))
}

/// Most cores that a time is estimated for.
const CORES_MAX: usize = 1 << 20;

/// `proofmill partition`
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Partition {
    /// Make the keys of a circuit in parts, for development.
    ///
    /// Anyone who runs this command, or can read its memory, could forge proofs.
    Setup(PartitionSetup),
    /// Prove a circuit in parts, one part after the other, and make one proof of all parts.
    Prove(PartitionProve),
    /// Verify the proof of a circuit in parts.
    Verify(PartitionVerify),
    /// Show what keys, a verifying key or a proof are for, and the cost of each part.
    Info(PartitionInfo),
    /// Put keys on a bus, from where workers and coordinators fetch those that they do not have.
    Publish(PartitionPublish),
    /// Register the keys of all classes at a proving engine, which then proves parts of these classes.
    Register(PartitionRegister),
}

/// A circuit in parts that comes with the program.
#[derive(Debug, Subcommand)]
pub(crate) enum Circuit {
    /// A Merkle tree of SHA-256, one node to a part: the benchmark of the Hekaton paper.
    MerkleTree(MerkleTree),
    /// Repeated squarings: the smallest circuit of any number of parts.
    Squarings(Squarings),
}

/// `proofmill partition setup merkle-tree`
#[derive(Debug, Args)]
pub(crate) struct MerkleTree {
    /// Levels of the tree: 2 to this power leaves of 64 bytes, and twice as many parts.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=19))]
    pub(crate) levels: u8,
    /// Hashes in each part: one of its node, and the others of the digest again.
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) hashes: u16,
    /// Values that each part passes to the next, beside the digests.
    #[arg(long, value_name = "N", default_value_t = 0,
          value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub(crate) portals: u32,
    #[command(flatten)]
    pub(crate) setup: SetupArgs,
}

/// `proofmill partition setup squarings`
#[derive(Debug, Args)]
pub(crate) struct Squarings {
    /// Number of parts.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub(crate) parts: u32,
    /// Squarings of each value in each part.
    #[arg(long, value_name = "N", default_value_t = 4,
          value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    pub(crate) squarings: u32,
    /// Values that each part passes to the next.
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) portals: u32,
    #[command(flatten)]
    pub(crate) setup: SetupArgs,
}

/// `proofmill partition setup`
#[derive(Debug, Args)]
#[command(after_help = SETUP_EXAMPLES)]
pub(crate) struct PartitionSetup {
    #[command(subcommand)]
    pub(crate) circuit: Circuit,
}

/// The arguments of every setup.
#[derive(Debug, Args)]
pub(crate) struct SetupArgs {
    /// The curve.
    #[arg(long, value_enum, default_value_t = CurveName::Bn254)]
    pub(crate) curve: CurveName,
    /// The folder for the keys, which must not exist yet.
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) threads: Threads,
    /// Print a summary as one JSON object on the last line of standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `proofmill partition prove`
#[derive(Debug, Args)]
#[command(after_help = PROVE_EXAMPLES)]
pub(crate) struct PartitionProve {
    /// The folder with the keys.
    #[arg(value_name = "DIR")]
    pub(crate) keys: PathBuf,
    /// The secret input: for a tree its leaves of 64 bytes each, for squarings 32 bytes for each value, for a key
    /// directory a file of `vkd witness`, for a program its input.
    #[arg(long, value_name = "FILE")]
    pub(crate) witness: PathBuf,
    #[command(flatten)]
    pub(crate) output: ProofArgs,
}

/// The arguments of every command that proves a circuit in parts.
#[derive(Debug, Args)]
pub(crate) struct ProofArgs {
    /// Where the proof is written.
    #[arg(long, value_name = "PROOF")]
    pub(crate) proof: PathBuf,
    /// Where the public inputs are written, as JSON, in decimal.
    #[arg(long, value_name = "PUBLIC")]
    pub(crate) public: PathBuf,
    /// The journal of finished work [default: the proof's path with `.journal`].
    #[arg(long, value_name = "FILE")]
    pub(crate) journal: Option<PathBuf>,
    /// Write a workflow that makes the proof with any number of processes, instead of making it here. Beside
    /// it, FILE.job has the paths and a secret seed; only its owner may read it, and only the coordinator needs it.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["journal", "memory"])]
    pub(crate) workflow: Option<PathBuf>,
    /// With --workflow: parts are proved by this engine, where `partition register` has registered the keys. Give it
    /// several times for several engines.
    #[arg(long, value_name = "ADDRESS", requires = "workflow")]
    pub(crate) at: Vec<Address>,
    /// With --at: a file with the token for the engines, on the workers' machines.
    #[arg(long, value_name = "FILE", requires = "at")]
    pub(crate) at_token: Option<PathBuf>,
    /// With --at: the authority of the engines' certificates (PEM), on the workers' machines.
    #[arg(long, value_name = "FILE", requires = "at")]
    pub(crate) at_ca: Option<PathBuf>,
    /// With --workflow: workers make the aggregation in so many shards, a power of two, where two or more of them are
    /// on a bus [default: one process makes it].
    #[arg(long, value_name = "N", requires = "workflow", value_parser = shards)]
    pub(crate) shards: Option<u16>,
    /// Most memory that this process may take. Keys are held in the fastest form that fits: with multiples
    /// of their points, as they are, or in their files. Too small a limit is refused before anything large
    /// is read [default: no limit, and keys as they are].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory: Option<u64>,
    #[command(flatten)]
    pub(crate) threads: Threads,
    /// Print a summary as one JSON object on the last line of standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `proofmill partition register`
#[derive(Debug, Args)]
#[command(after_help = REGISTER_EXAMPLES)]
pub(crate) struct PartitionRegister {
    /// The folder with the keys, on the engine's machine. The constraints of each class are written beside its key.
    #[arg(value_name = "DIR")]
    pub(crate) keys: PathBuf,
    #[command(flatten)]
    pub(crate) query: EngineQueryArgs,
}

/// `proofmill partition publish`
#[derive(Debug, Args)]
#[command(after_help = PUBLISH_EXAMPLES)]
pub(crate) struct PartitionPublish {
    /// The folder with the keys.
    #[arg(value_name = "DIR")]
    pub(crate) keys: PathBuf,
    /// Remove them from the bus. Processes keep what they have fetched.
    #[arg(long)]
    pub(crate) remove: bool,
    #[command(flatten)]
    pub(crate) bus: BusArgs,
    /// Print a summary as one JSON object on the last line of standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `proofmill partition verify`
#[derive(Debug, Args)]
#[command(after_help = VERIFY_EXAMPLES)]
pub(crate) struct PartitionVerify {
    /// The verifying key: `verifying.key` of the folder that `setup` made.
    #[arg(long, value_name = "KEY")]
    pub(crate) key: PathBuf,
    /// The public inputs, as JSON, in decimal.
    #[arg(long, value_name = "PUBLIC")]
    pub(crate) public: PathBuf,
    /// The proof.
    pub(crate) proof: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `proofmill partition info`
#[derive(Debug, Args)]
#[command(after_help = INFO_EXAMPLES)]
pub(crate) struct PartitionInfo {
    /// A folder with keys, a verifying key, or a proof.
    pub(crate) path: PathBuf,
    /// Numbers of cores to estimate the time of a proof for, separated by commas [default: 1, this machine's, 64 and
    /// 1024].
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = cores)]
    pub(crate) cores: Vec<usize>,
    /// Measure and estimate nothing.
    #[arg(long, conflicts_with = "cores")]
    pub(crate) no_times: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

fn cores(text: &str) -> Result<usize, String> {
    let cores = text.parse().ok();
    cores
        .filter(|cores| (1..=CORES_MAX).contains(cores))
        .ok_or_else(|| format!("expected a number from 1 to {CORES_MAX}"))
}
