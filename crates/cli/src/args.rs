//! The command line.

pub(crate) mod aggregate;
pub(crate) mod circuits;
pub(crate) mod cluster;
pub(crate) mod console;
pub(crate) mod dlq;
pub(crate) mod doctor;
pub(crate) mod engine;
pub(crate) mod ethproofs;
pub(crate) mod intake;
pub(crate) mod listen;
pub(crate) mod partition;
pub(crate) mod pause;
pub(crate) mod rv32;
pub(crate) mod scale;
pub(crate) mod settle;
pub(crate) mod solidity;
pub(crate) mod top;
pub(crate) mod verifier;
pub(crate) mod verify;
pub(crate) mod vkd;
pub(crate) mod zkpu;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use proofmill_api::BlocksQuery;
use proofmill_orchestrator::core::BLOCKS_MAX;
use proofmill_workflow::parse_duration;

/// A proving cluster: blocks and circuits go in, verified zero-knowledge proofs come out, in chain
/// order.
///
/// Begin with `proofmill demo`: it proves the first 32 headers of Bitcoin's main chain, verifies
/// every proof and emits them in order. Kill it and run it again: nothing is lost.
#[derive(Debug, Parser)]
#[command(name = "proofmill", version, max_term_width = 100,
          after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 success; 1 something failed; 2 the command line is wrong; 130 stopped by a signal
before the end (run the same command again to continue).";

/// Arguments of every command.
#[derive(Clone, Debug, Args)]
pub(crate) struct Global {
    /// Filter of the log lines on standard error, such as `warn`, `info`, `proofmill_orchestrator=debug`.
    #[arg(
        long,
        global = true,
        env = "PROOFMILL_LOG",
        default_value = "warn",
        value_name = "FILTER",
        help_heading = "Logs"
    )]
    pub(crate) log: String,
    /// Format of log lines.
    #[arg(long, global = true, env = "PROOFMILL_LOG_FORMAT", value_enum, value_name = "FORMAT",
          default_value_t = Format::Human, help_heading = "Logs")]
    pub(crate) log_format: Format,
}

/// Format of log lines.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Format {
    /// Text for people.
    Human,
    /// One JSON object a line.
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// End the programs of the process at the other end of standard input once that process is gone.
    #[command(hide = true)]
    SupervisePrograms,
    /// Prove real Bitcoin headers, verify the proofs, emit them in chain order.
    Demo(Demo),
    /// Run every role of a workflow in this process.
    Run(Run),
    /// Lead workflows on a cluster, or stand by to take over.
    Coordinator(cluster::Coordinator),
    /// Run the provers of a workflow on a cluster.
    Dispatcher(cluster::Dispatcher),
    /// Run the collectors of a workflow on a cluster, in place of its coordinator.
    Collector(cluster::Collector),
    /// Emit the results of a workflow on a cluster, in chain order.
    Sequencer(cluster::Sequencer),
    /// Run the sources of a workflow on a cluster, which bring it its blocks.
    Source(cluster::SourceRole),
    /// Serve a page in the browser that shows a workflow on a cluster, and says why each block waits.
    Console(console::Console),
    /// Turn the environments of a push0 deployment into a workflow file.
    ImportEnv(cluster::ImportEnv),
    /// Check a workflow file, and draw it.
    Check(Check),
    /// Show what a mill is doing.
    Status(MillArgs),
    /// Watch a mill: its chain, stages, workers, and why the next block waits.
    Top(top::Top),
    /// Show what each queue holds.
    Queues(MillArgs),
    /// List the live tasks.
    Tasks(Tasks),
    /// Show how many workers a mill has and should have, or tell an autoscaler.
    Scale(scale::Scale),
    /// Show the history of a block: its provers, the time of each step, and where it was emitted.
    Block(Block),
    /// Look at the dead-letter queue (tasks that failed for good), retry or drop its tasks, run them elsewhere.
    Dlq {
        #[command(subcommand)]
        command: dlq::Dlq,
    },
    /// Stop live tasks and move them to the dead-letter queue.
    ///
    /// Programs that work on these tasks are killed. `dlq retry` puts the tasks back into their queues.
    Cancel(Cancel),
    /// Pause a stage or a source, or drain a worker.
    ///
    /// A paused stage leases nothing new, a paused sequencer emits nothing, messages of a paused source wait, and a
    /// drained worker finishes what it has. A pause lasts until `resume`, over restarts; that of a worker until the
    /// worker leaves.
    Pause(pause::Pause),
    /// End a pause.
    Resume(pause::Pause),
    /// Run a task now that waits for its next attempt.
    RunNow(pause::RunNow),
    /// Submit a message to a queue.
    Submit(Submit),
    /// Prove that a witness satisfies a circom circuit, with Groth16.
    ///
    /// Keys, witnesses and proofs are files of circom and snarkjs, over BN254, BLS12-381 or
    /// BLS12-377. The proof is verified before anything is written, and both files are written whole.
    Prove(circuits::Prove),
    /// Run the proving engine, which keeps keys in memory, and send it requests.
    Engine {
        #[command(subcommand)]
        command: engine::Engine,
    },
    /// Verify proofs in files and folders, of any kind and many together.
    Verify(verify::Verify),
    /// Verify streams of proofs of several kinds, with a verdict for each.
    Verifier {
        #[command(subcommand)]
        command: verifier::Verifier,
    },
    /// Look at a proving key, check it, export its verifying key or a contract that verifies its proofs.
    Zkey {
        #[command(subcommand)]
        command: circuits::Zkey,
    },
    /// Print the calldata with which a contract verifies a proof, or a batch of proofs, on Ethereum.
    Calldata(solidity::Calldata),
    /// Make a proving key for a circom circuit, for development.
    ///
    /// Anyone who runs this command, or can read its memory, could forge proofs. A deployment needs keys
    /// from a ceremony of several parties: contribute to this key with `snarkjs zkey contribute`, or use
    /// one that several parties made.
    Setup(circuits::Setup),
    /// Make one proof of many Groth16 proofs, and verify it.
    ///
    /// The size of an aggregate of n proofs, under one verifying key or several, and the time to verify it
    /// grow with the logarithm of n. Its inputs are proofs of snarkjs and of `proofmill prove`.
    Aggregate {
        #[command(subcommand)]
        command: aggregate::Aggregate,
    },
    /// Prove a circuit too large for one proof in parts, and make one proof of them.
    Partition {
        #[command(subcommand)]
        command: partition::Partition,
    },
    /// Prove that a program compiled for RV32IM, on this input, halts with this output.
    Rv32 {
        #[command(subcommand)]
        command: rv32::Rv32,
    },
    /// Keep a verifiable key directory: prove what its epochs change, and verify it.
    Vkd {
        #[command(subcommand)]
        command: vkd::Vkd,
    },
    /// Serve, look at and measure ZKPU devices, which multiply points behind NVMe over TCP.
    Zkpu {
        #[command(subcommand)]
        command: zkpu::Zkpu,
    },
    /// Tell Ethproofs about your clusters and their machines.
    ///
    /// A mill reports its blocks by the table `[ethproofs]` of its workflow file, which names a cluster. This command
    /// creates that cluster at the site, and says on which machines it proves.
    Ethproofs(ethproofs::Ethproofs),
    /// Show what this machine proves with: processors, memory, CUDA cards, and why a card is not used.
    Doctor(doctor::Doctor),
    /// Print a completion script for your shell.
    ///
    /// For bash: `proofmill completions bash > /etc/bash_completion.d/proofmill`.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Write the manual pages of all commands, for man(1).
    ///
    /// For this user alone: `proofmill man --out ~/.local/share/man/man1`.
    Man {
        /// The folder of the pages; it is made if it does not exist.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
}

impl Command {
    /// Whether the command does work that belongs to traces of blocks.
    pub(crate) fn makes_spans(&self) -> bool {
        matches!(
            self,
            Self::Demo(_)
                | Self::Run(_)
                | Self::Coordinator(_)
                | Self::Dispatcher(_)
                | Self::Collector(_)
                | Self::Sequencer(_)
                | Self::Source(_)
                | Self::Engine {
                    command: engine::Engine::Serve(_)
                }
        )
    }

    /// Whether the command's async tasks only wait for messages, with all computation on the provers' own
    /// threads. Such a command gets a single-threaded runtime: waking a second thread would cost time on every message.
    pub(crate) fn uses_single_thread_runtime(&self) -> bool {
        matches!(
            self,
            Self::Dispatcher(_)
                | Self::Collector(_)
                | Self::Sequencer(_)
                | Self::Source(_)
                | Self::Console(_)
                | Self::SupervisePrograms
        )
    }
}

/// The mill that a command is about, named by its state directory.
#[derive(Clone, Debug, Args)]
pub(crate) struct StateArg {
    /// The state directory [default: the only one under `.proofmill`].
    #[arg(long, env = "PROOFMILL_STATE", value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
}

/// Largest height of the first header: heights are printed with ten digits, and later ones must not overflow.
const HEIGHT_MAX: u64 = 9_000_000_000;

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Headers to prove, instead of the built-in ones: raw, 80 bytes each, or one in hexadecimal
    /// on each line.
    #[arg(long, value_name = "FILE")]
    pub(crate) headers: Option<PathBuf>,
    /// Height of the first header [default: found by its hash among the first 32 of Bitcoin's main
    /// chain, else 0].
    #[arg(long, value_name = "HEIGHT", value_parser = clap::value_parser!(u64).range(..=HEIGHT_MAX))]
    pub(crate) start: Option<u64>,
    /// Headers in a chunk: one proof each.
    #[arg(long, value_name = "N", default_value_t = crate::demo::DEFAULT_CHUNK,
          value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) chunk: u32,
    /// Chunks proved at the same time. Each proof uses every core by itself.
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) workers: u32,
    /// Where the log, the proofs and everything to resume from are kept.
    #[arg(
        long,
        env = "PROOFMILL_STATE",
        value_name = "DIR",
        default_value = ".proofmill/demo"
    )]
    pub(crate) state: PathBuf,
    #[command(flatten)]
    pub(crate) keys: KeysArg,
    /// Go on with a state directory that holds less than was durable or emitted; what is missing is
    /// listed, and damaged files are kept in it.
    #[arg(long)]
    pub(crate) accept_loss: bool,
    /// Delete the state of an earlier run and start again.
    #[arg(long)]
    pub(crate) fresh: bool,
    /// At the end, make one proof of all chunks, in `range/` of the state directory. `proofmill
    /// aggregate verify --range` verifies it in one check.
    #[arg(long)]
    pub(crate) aggregate: bool,
    #[command(flatten)]
    pub(crate) settle: settle::DemoSettle,
    /// Print a summary as one JSON object on the last line of standard output.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) drain: DrainArg,
    #[command(flatten)]
    pub(crate) metrics: MetricsArg,
    #[command(flatten)]
    pub(crate) console: console::ConsoleArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct MetricsArg {
    /// Serve `/metrics` (Prometheus) and `/healthz` here, such as 127.0.0.1:9464.
    #[arg(long, env = "PROOFMILL_METRICS", value_name = "ADDRESS")]
    pub(crate) metrics: Option<SocketAddr>,
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct DrainArg {
    /// Longest time to finish work under way after the first Ctrl-C or SIGTERM. What is left then is handed
    /// back, as after the second.
    #[arg(long, env = "PROOFMILL_DRAIN_TIMEOUT", value_name = "DURATION", default_value = "15m",
          value_parser = parse_duration)]
    pub(crate) drain_timeout: Duration,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct KeysArg {
    /// Where proving keys are kept between runs.
    #[arg(
        long,
        env = "PROOFMILL_KEYS",
        value_name = "DIR",
        default_value = ".proofmill/keys"
    )]
    pub(crate) keys: PathBuf,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct WorkersArg {
    /// Run this many dispatchers of a stage, such as prove=4, instead of the number in the file.
    #[arg(long, value_name = "STAGE=N", value_parser = stage_and_count)]
    pub(crate) workers: Vec<(String, usize)>,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The workflow file.
    pub(crate) file: PathBuf,
    /// Where the log, the blobs and everything to resume from are kept [default: .proofmill/NAME,
    /// by the workflow's name].
    #[arg(long, env = "PROOFMILL_STATE", value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// Go on with a state directory that holds less than was durable or emitted; what is missing is
    /// listed, and damaged files are kept in it.
    #[arg(long)]
    pub(crate) accept_loss: bool,
    #[command(flatten)]
    pub(crate) keys: KeysArg,
    #[command(flatten)]
    pub(crate) workers: WorkersArg,
    /// Keep running when the sources have ended and nothing moves.
    ///
    /// Without this option a run ends when all work is done, unless the workflow has a `submit` source or
    /// --submit is given.
    #[arg(long)]
    pub(crate) stay: bool,
    /// Print a summary as one JSON object on the last line of standard output.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) drain: DrainArg,
    #[command(flatten)]
    pub(crate) metrics: MetricsArg,
    #[command(flatten)]
    pub(crate) console: console::ConsoleArgs,
    #[command(flatten)]
    pub(crate) intake: intake::IntakeArgs,
    #[command(flatten)]
    pub(crate) bus: cluster::BusArgs,
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// The workflow file.
    pub(crate) file: PathBuf,
    /// Print the graph of the workflow instead of the result of the check.
    #[arg(long, value_enum, value_name = "LANGUAGE")]
    pub(crate) graph: Option<Graph>,
    /// Print the errors as a JSON array.
    #[arg(long, conflicts_with = "graph")]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Graph {
    /// Mermaid, which many Markdown viewers draw.
    Mermaid,
    /// Graphviz: pipe it into `dot -Tsvg`.
    Dot,
}

#[derive(Debug, Args)]
pub(crate) struct MillArgs {
    #[command(flatten)]
    pub(crate) state: StateArg,
    /// Name of a workflow on a cluster, instead of a mill on this machine. `status` with --bus and without
    /// a name lists the workflows that are led on that bus, and their workers.
    #[arg(long, value_name = "NAME", requires = "url", conflicts_with = "state")]
    pub(crate) workflow: Option<String>,
    #[command(flatten)]
    pub(crate) bus: cluster::BusArgs,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Tasks {
    #[command(flatten)]
    pub(crate) mill: MillArgs,
    /// Only tasks of this stage.
    #[arg(long)]
    pub(crate) stage: Option<String>,
    /// Only tasks about this block.
    #[arg(long)]
    pub(crate) block: Option<u64>,
    /// Most tasks to list.
    #[arg(long, default_value_t = 100)]
    pub(crate) limit: usize,
}

#[derive(Debug, Args)]
#[command(after_help = BLOCK_STATES)]
pub(crate) struct Block {
    #[command(flatten)]
    pub(crate) mill: MillArgs,
    /// The block, or a range such as 10-20 for one line each.
    #[arg(value_name = "BLOCK", value_parser = blocks)]
    pub(crate) blocks: BlocksQuery,
}

const BLOCK_STATES: &str = "\
States of a block: never seen; waiting, with the reason; running; dead (see `dlq show`); dropped
from the dead-letter queue; skipped by a collector or the sequencer; taken back by its source;
finished, if no sequencer follows; emitted, in time or after its deadline. `[history]` in the
workflow file limits what is remembered.";

#[derive(Debug, Args)]
pub(crate) struct DlqTask {
    #[command(flatten)]
    pub(crate) mill: MillArgs,
    /// The task, as STAGE/BLOCK/PART.
    pub(crate) task: String,
}

#[derive(Debug, Args)]
pub(crate) struct DlqTasks {
    #[command(flatten)]
    pub(crate) mill: MillArgs,
    /// The tasks, as STAGE/BLOCK/PART.
    pub(crate) tasks: Vec<String>,
    /// Every dead letter.
    #[arg(long, conflicts_with = "tasks")]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("which").required(true))]
pub(crate) struct Cancel {
    #[command(flatten)]
    pub(crate) mill: MillArgs,
    /// The task, as STAGE/BLOCK/PART.
    #[arg(group = "which")]
    pub(crate) task: Option<String>,
    /// Every live task about this block, including tasks about several blocks.
    #[arg(long, group = "which")]
    pub(crate) block: Option<u64>,
    /// Every live task.
    #[arg(long, group = "which")]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Submit {
    #[command(flatten)]
    pub(crate) mill: MillArgs,
    /// The queue.
    #[arg(long)]
    pub(crate) queue: String,
    /// The block that the message is about, or the first of several.
    #[arg(long)]
    pub(crate) block: u64,
    /// The last block that the message is about [default: the first].
    #[arg(long)]
    pub(crate) last: Option<u64>,
    /// The part of the block, if it has several.
    #[arg(long)]
    pub(crate) part: Option<String>,
    /// A label that a worker must have; replaces the labels that the stage requires.
    #[arg(long, value_name = "LABEL")]
    pub(crate) requires: Vec<String>,
    /// A file with the payload, as JSON; `-` for standard input.
    pub(crate) payload: PathBuf,
}

/// Most dispatchers of one stage, the same limit as in a workflow file.
const WORKERS_MAX: usize = 4096;

/// Parses `N` or `N-M`.
fn blocks(text: &str) -> Result<BlocksQuery, String> {
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|_| digits);
        number.ok_or_else(|| {
            format!(
                "{text:?} is not a block: expected a number such as 12, or a range such as 10-20"
            )
        })
    };
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let blocks = BlocksQuery {
        first: number(first)?,
        last: number(last)?,
    };
    if blocks.last < blocks.first {
        return Err(format!("{last} is before {first}"));
    }
    if blocks.last - blocks.first >= BLOCKS_MAX {
        return Err(format!(
            "more than {BLOCKS_MAX} blocks: ask for fewer at a time"
        ));
    }
    Ok(blocks)
}

fn stage_and_count(text: &str) -> Result<(String, usize), String> {
    let (stage, count) = text
        .split_once('=')
        .ok_or("expected STAGE=N, such as prove=4")?;
    let count = count
        .parse()
        .map_err(|_| format!("{count:?} is not a number"))?;
    if !(1..=WORKERS_MAX).contains(&count) {
        return Err(format!("{count} is not between 1 and {WORKERS_MAX}"));
    }
    Ok((stage.to_owned(), count))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
