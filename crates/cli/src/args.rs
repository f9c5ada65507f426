//! The command line.

pub(crate) mod aggregate;
pub(crate) mod circuits;
pub(crate) mod cluster;
pub(crate) mod doctor;
pub(crate) mod engine;
pub(crate) mod intake;
pub(crate) mod listen;
pub(crate) mod partition;
pub(crate) mod verifier;
pub(crate) mod verify;

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
Exit codes: 0 all is done; 1 something failed; 2 the command line is wrong; 130 stopped by a signal
before the end (the same command again goes on).";

/// What every command takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct Global {
    /// Which log lines to show on standard error: `warn`, `info`, `proofmill_orchestrator=debug`.
    #[arg(
        long,
        global = true,
        env = "PROOFMILL_LOG",
        default_value = "warn",
        value_name = "FILTER",
        help_heading = "Logs"
    )]
    pub(crate) log: String,
    /// How log lines look.
    #[arg(long, global = true, env = "PROOFMILL_LOG_FORMAT", value_enum, value_name = "FORMAT",
          default_value_t = Format::Human, help_heading = "Logs")]
    pub(crate) log_format: Format,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Human,
    /// One JSON object a line.
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// End the programs of the process whose pipe standard input is, once it is gone.
    #[command(hide = true)]
    SupervisePrograms,
    /// Prove real Bitcoin headers, verify the proofs, emit them in chain order.
    Demo(Demo),
    /// Run every role of a workflow in this process.
    Run(Run),
    /// Lead workflows on a cluster, or stand by to.
    Coordinator(cluster::Coordinator),
    /// Prove what a workflow on a cluster needs.
    Dispatcher(cluster::Dispatcher),
    /// Gather what a workflow on a cluster joins, in place of its coordinator.
    Collector(cluster::Collector),
    /// Hand out what a workflow on a cluster emits, in chain order.
    Sequencer(cluster::Sequencer),
    /// Bring a workflow on a cluster its blocks.
    Source(cluster::SourceRole),
    /// Turn the environments of a push0 deployment into a workflow file.
    ImportEnv(cluster::ImportEnv),
    /// Check a workflow file, and draw it.
    Check(Check),
    /// What a mill is doing.
    Status(Look),
    /// What each queue holds.
    Queues(Look),
    /// The live tasks.
    Tasks(Tasks),
    /// What became of a block: who proved it, how long each step took, where it went.
    Block(Block),
    /// The dead-letter queue: tasks that failed for good.
    Dlq {
        #[command(subcommand)]
        command: Dlq,
    },
    /// Stop live tasks and move them to the dead-letter queue.
    ///
    /// Programs that work on them are killed. `dlq retry` brings tasks back.
    Cancel(Cancel),
    /// Bring a message to a queue.
    Submit(Submit),
    /// Prove that a witness satisfies a circom circuit, with Groth16.
    ///
    /// Keys, witnesses and proofs are files of circom and snarkjs, over BN254 or BLS12-381. The
    /// proof is verified before anything is written, and both files are written whole.
    Prove(circuits::Prove),
    /// Keep keys in memory and prove with them: the engine, and questions to it.
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
    /// Look at a proving key, check it, export its verifying key.
    Zkey {
        #[command(subcommand)]
        command: circuits::Zkey,
    },
    /// Make a proving key for a circom circuit, for development.
    ///
    /// Whoever runs it, or can read its memory, could forge proofs. A deployment needs keys from a
    /// ceremony of several parties: contribute to this one with `snarkjs zkey contribute`, or take
    /// one that was made so.
    Setup(circuits::Setup),
    /// Make one proof of many Groth16 proofs, and verify it.
    ///
    /// An aggregate of n proofs, under one verifying key or several, and its verification grow with the
    /// logarithm of n. The proofs are those of snarkjs and of `proofmill prove`.
    Aggregate {
        #[command(subcommand)]
        command: aggregate::Aggregate,
    },
    /// Prove a circuit too large for one proof in parts, and make one proof of them.
    Partition {
        #[command(subcommand)]
        command: partition::Partition,
    },
    /// What this machine proves with: processors, memory, CUDA cards, and why one is not used.
    Doctor(doctor::Doctor),
    /// Print a completion script for your shell.
    ///
    /// For bash: `proofmill completions bash > /etc/bash_completion.d/proofmill`.
    Completions {
        /// Which shell.
        shell: Shell,
    },
}

impl Command {
    /// Whether the process has nothing to compute itself, but in threads of its provers: one more
    /// thread would only be woken up, at the cost of every message.
    pub(crate) fn only_waits(&self) -> bool {
        matches!(
            self,
            Self::Dispatcher(_)
                | Self::Collector(_)
                | Self::Sequencer(_)
                | Self::Source(_)
                | Self::SupervisePrograms
        )
    }
}

/// Which mill a command is about.
#[derive(Clone, Debug, Args)]
pub(crate) struct StateArg {
    /// The state directory. If there is only one under `.proofmill`, it need not be named.
    #[arg(long, env = "PROOFMILL_STATE", value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
}

/// Heights are shown with ten digits, and stay far from where they would overflow.
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
    /// Forget the state of an earlier run and begin anew.
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Print a summary as one JSON object on the last line of standard output.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) drain: DrainArg,
    #[command(flatten)]
    pub(crate) metrics: MetricsArg,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct MetricsArg {
    /// Serve `/metrics` (Prometheus) and `/healthz` here, such as 127.0.0.1:9464.
    #[arg(long, env = "PROOFMILL_METRICS", value_name = "ADDRESS")]
    pub(crate) metrics: Option<SocketAddr>,
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct DrainArg {
    /// How long the first Ctrl-C or SIGTERM may wait for what is under way; then it is handed back, as
    /// by the second.
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
    /// Run so many dispatchers of a stage, such as prove=4, instead of what the file says.
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
    /// Without it a run ends when all work is done; a workflow with a `submit` source always stays, and
    /// so does one with --submit.
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
    pub(crate) intake: intake::IntakeArgs,
    #[command(flatten)]
    pub(crate) bus: cluster::BusArgs,
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// The workflow file.
    pub(crate) file: PathBuf,
    /// Print the graph of the workflow instead of a word that it is right.
    #[arg(long, value_enum, value_name = "LANGUAGE")]
    pub(crate) graph: Option<Graph>,
    /// Print what is wrong as a JSON array.
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
pub(crate) struct Look {
    #[command(flatten)]
    pub(crate) state: StateArg,
    /// A workflow on a cluster, by its name, instead of a mill of this machine. `status` with --bus and
    /// without a name lists those that are led there, and who works for them.
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
    pub(crate) look: Look,
    /// Only of this stage.
    #[arg(long)]
    pub(crate) stage: Option<String>,
    /// Only about this block.
    #[arg(long)]
    pub(crate) block: Option<u64>,
    /// At most so many.
    #[arg(long, default_value_t = 100)]
    pub(crate) limit: usize,
}

#[derive(Debug, Args)]
#[command(after_help = BLOCK_STATES)]
pub(crate) struct Block {
    #[command(flatten)]
    pub(crate) look: Look,
    /// The block, or several in short, as in 10-20.
    #[arg(value_name = "BLOCK", value_parser = blocks)]
    pub(crate) blocks: BlocksQuery,
}

const BLOCK_STATES: &str = "\
Answers: never seen; waiting, and for what; running; dead (see `dlq show`); dropped from the
dead-letter queue; skipped by a collector or the sequencer; taken back by its source; finished,
where no sequencer follows; emitted, and whether its deadline was met. How much is remembered:
[history] in the workflow file.";

#[derive(Debug, Subcommand)]
pub(crate) enum Dlq {
    /// List the dead letters.
    List(Look),
    /// Show one, with every attempt, its output and the payload.
    Show(DlqTask),
    /// Put dead letters back into their queues, their attempts forgotten.
    Retry(DlqTasks),
    /// Give dead letters up for good.
    ///
    /// The sequencer still waits for their blocks, and the command says for which: submit them again, or
    /// a placeholder to the sequencer's own queue, which is emitted in their place.
    Drop(DlqTasks),
}

#[derive(Debug, Args)]
pub(crate) struct DlqTask {
    #[command(flatten)]
    pub(crate) look: Look,
    /// The task, STAGE/BLOCK/PART.
    pub(crate) task: String,
}

#[derive(Debug, Args)]
pub(crate) struct DlqTasks {
    #[command(flatten)]
    pub(crate) look: Look,
    /// The tasks, STAGE/BLOCK/PART.
    pub(crate) tasks: Vec<String>,
    /// All there are.
    #[arg(long, conflicts_with = "tasks")]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("which").required(true))]
pub(crate) struct Cancel {
    #[command(flatten)]
    pub(crate) look: Look,
    /// The task, STAGE/BLOCK/PART.
    #[arg(group = "which")]
    pub(crate) task: Option<String>,
    /// Every live task that is about this block, also where it is about others too.
    #[arg(long, group = "which")]
    pub(crate) block: Option<u64>,
    /// Every live task.
    #[arg(long, group = "which")]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Submit {
    #[command(flatten)]
    pub(crate) look: Look,
    /// The queue.
    #[arg(long)]
    pub(crate) queue: String,
    /// The block that the message is about, or the first of several.
    #[arg(long)]
    pub(crate) block: u64,
    /// The last block that it is about [default: the first].
    #[arg(long)]
    pub(crate) last: Option<u64>,
    /// Which part of the block, where there are several.
    #[arg(long)]
    pub(crate) part: Option<String>,
    /// A label that a worker must have, instead of those that the stage requires.
    #[arg(long, value_name = "LABEL")]
    pub(crate) requires: Vec<String>,
    /// A file with the payload, as JSON; `-` for standard input.
    pub(crate) payload: PathBuf,
}

/// Dispatchers of one stage, at most; as in a workflow file.
const WORKERS_MAX: usize = 4096;

/// `N`, or `N-M`.
fn blocks(text: &str) -> Result<BlocksQuery, String> {
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|_| digits);
        number.ok_or_else(|| {
            format!("{text:?} is not a block: expected one, as 12, or several, as 10-20")
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
