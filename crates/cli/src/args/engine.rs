//! The commands for the proving engine.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use proofmill_api::engine::Address;
use proofmill_workflow::parse_size;

use super::DrainArg;
use super::circuits::{DevicesArg, KeySafety, Threads};
use super::listen::ListenArgs;

/// Default directory of an engine's state and socket.
const STATE: &str = ".proofmill/engine";
/// Default address: the socket in [`STATE`].
const DEFAULT_ADDRESS: &str = "unix:.proofmill/engine/engine.sock";

const ENGINE_EXAMPLES: &str = "\
Examples:
  proofmill engine serve --circuits keys/ --budget 8GiB
  proofmill engine prove multiplier witness.wtns -o proof.json --public public.json
  proofmill engine top
  proofmill engine timeline --out trace.json --svg waterfall.svg";

const SERVE_EXAMPLES: &str = "\
Examples:
  proofmill engine serve --circuits keys/                      every .zkey in a folder, by its name
  proofmill engine serve --circuits spend=spend_final.zkey --preload spend
  proofmill engine serve --circuits block=block.r1cs,block.key --budget 32GiB
  proofmill engine serve --listen 0.0.0.0:7400 --tls-certificate engine.pem --tls-key engine.key \\
                         --tokens tokens
  proofmill engine serve --generator 'mul=node generate_witness.js mul.wasm {input} {output}'

Ctrl-C once: the engine takes no new jobs, and ends when all accepted jobs have ended. Twice: it
ends at once; accepted jobs are kept, and continue when the engine is started again.";

const PROVE_EXAMPLES: &str = "\
Examples:
  proofmill engine prove multiplier witness.wtns -o proof.json --public public.json
  proofmill engine prove multiplier input.json --generator mul -o proof.json
  proofmill engine prove multiplier witness.wtns -o proof.json --priority critical --timeout 30";

const REGISTER_EXAMPLES: &str = "\
Examples:
  proofmill engine register spend --zkey spend_final.zkey
  proofmill engine register block --constraints block.r1cs --key block.key";

const TIMELINE_EXAMPLES: &str = "\
Examples:
  proofmill engine timeline --out trace.json          open it at https://ui.perfetto.dev
  proofmill engine timeline --svg waterfall.svg --last 60";

const WAIT_EXAMPLES: &str = "\
Examples:
  proofmill engine wait 00112233445566778899aabbccddeeff
  proofmill engine wait 00112233445566778899aabbccddeeff --timeout 60";

const GET_EXAMPLES: &str = "\
Examples:
  proofmill engine get 00112233445566778899aabbccddeeff -o proof.json --public public.json
  proofmill engine get 00112233445566778899aabbccddeeff --partition 2 -o third.json";

/// `proofmill engine`
#[derive(Debug, Subcommand)]
#[command(after_help = ENGINE_EXAMPLES)]
pub(crate) enum Engine {
    /// Run an engine: keys stay in memory, proofs overlap, memory stays within a budget.
    Serve(Box<Serve>),
    /// Show what the engine is doing.
    Status(EngineQueryArgs),
    /// List the registered circuits, and where their keys are.
    Circuits(EngineQueryArgs),
    /// List the jobs under way, and those that ended recently.
    Jobs(EngineQueryArgs),
    /// Show the progress of one job, and the full error if it failed.
    Job(JobArgs),
    /// Wait for a job to end.
    ///
    /// Exit status 0 if the job is done; 1 if it failed, was cancelled, expired, or did not end in time.
    Wait(WaitJob),
    /// Write the proof of a finished job, for example one whose client is gone.
    ///
    /// Results are kept for the --result-seconds of `engine serve`, an hour by default.
    Get(GetProof),
    /// Register a circuit.
    Register(Register),
    /// Remove a circuit from the engine; its files stay.
    Unregister(CircuitArgs),
    /// Load a circuit's key.
    Preload(Preload),
    /// Free the memory of a circuit's key.
    Evict(CircuitArgs),
    /// Keep a circuit's key from being evicted once it is loaded.
    Pin(CircuitArgs),
    /// Let a pinned key be evicted again.
    Unpin(CircuitArgs),
    /// Prove that a witness satisfies a registered circuit.
    ///
    /// The proof is verified by the engine before it is returned; files are written whole, in
    /// snarkjs's format.
    Prove(EngineProve),
    /// Stop a job.
    Cancel(JobArgs),
    /// Watch an engine: stages, devices, memory, jobs.
    ///
    /// q or Esc quits, the space bar pauses. The display fits into 80 columns and 24 rows.
    Top(Top),
    /// Export when each partition was in each stage, as a trace or a picture.
    Timeline(TimelineArgs),
}

/// The engine to ask, and the client's credentials.
#[derive(Clone, Debug, Args)]
pub(crate) struct EngineArg {
    /// The engine: unix:PATH, http://HOST:PORT or https://HOST:PORT.
    #[arg(long, env = "PROOFMILL_ENGINE", value_name = "ADDRESS", default_value = DEFAULT_ADDRESS,
          help_heading = "Engine")]
    pub(crate) engine: Address,
    #[command(flatten)]
    pub(crate) credentials: CredentialArgs,
}

/// The client's token, and the authority that certifies the engine.
#[derive(Clone, Debug, Args)]
pub(crate) struct CredentialArgs {
    /// The authority of the engine's certificate (PEM), over https.
    #[arg(
        long,
        env = "PROOFMILL_ENGINE_CA",
        value_name = "FILE",
        help_heading = "Engine"
    )]
    pub(crate) ca: Option<PathBuf>,
    /// A file with the client's token; it must not be readable by everybody.
    #[arg(
        long,
        env = "PROOFMILL_ENGINE_TOKEN",
        value_name = "FILE",
        help_heading = "Engine"
    )]
    pub(crate) token: Option<PathBuf>,
}

/// `proofmill engine serve`
#[derive(Debug, Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub(crate) struct Serve {
    /// Directory of the jobs, the results, the list of circuits, and the socket.
    #[arg(long, env = "PROOFMILL_ENGINE_STATE", value_name = "DIR", default_value = STATE)]
    pub(crate) state: PathBuf,
    /// Go on with a state directory that holds less than was durable.
    #[arg(long)]
    pub(crate) accept_loss: bool,
    /// Circuits to register: a folder of .zkey files (and of NAME.key with NAME.r1cs or the
    /// precompiled NAME.pmcs), NAME=KEY.zkey, or NAME=CONSTRAINTS,KEY. Those of an earlier run are still registered.
    #[arg(long, value_name = "DIR|NAME=FILE")]
    pub(crate) circuits: Vec<String>,
    /// Load this circuit's key at the start.
    #[arg(long, value_name = "NAME")]
    pub(crate) preload: Vec<String>,
    /// Most memory that keys and proofs may take together [default: three quarters of the usable memory].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) budget: Option<u64>,
    /// Partitions under way at once.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) workers: u16,
    /// Partitions whose products are computed at once, on the same threads. With two, and three under way,
    /// no processor is idle at the end of a product's steps.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) products: u16,
    /// Most times that a waiting proof is overtaken: while loading its key would evict another, this many
    /// proofs of the same priority whose keys are in memory go first. 0 keeps the order of arrival.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) batch: u32,
    #[command(flatten)]
    pub(crate) devices: DevicesArg,
    #[command(flatten)]
    pub(crate) threads: Threads,
    /// Hold keys with precomputed multiples of their points, in about this percentage of their size: faster
    /// and larger. Used by processors only.
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(100..=3200))]
    pub(crate) prepared: Option<u32>,
    /// A program that makes witnesses. The command is split at spaces; {input} stands for the file with the
    /// inputs and {output} for the file to write.
    #[arg(long, value_name = "NAME=COMMAND")]
    pub(crate) generator: Vec<String>,
    /// An environment variable that generators inherit, beside PATH, HOME, LANG, TMPDIR and CUDA's.
    #[arg(long, value_name = "NAME")]
    pub(crate) generator_inherit_env: Vec<String>,
    /// Memory to reserve while a generator runs.
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = size)]
    pub(crate) generator_memory: u64,
    /// Seconds after which a generator is killed.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) generator_seconds: u32,
    #[command(flatten)]
    pub(crate) key_safety: KeySafety,
    #[command(flatten)]
    pub(crate) drain: DrainArg,
    /// Include the start of a failed generator's standard error in the job's error. It may quote the
    /// inputs, and errors are kept with the job.
    #[arg(long)]
    pub(crate) generator_stderr: bool,
    /// Most unfinished jobs of one client.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) client_jobs: u32,
    /// Seconds for which results are kept.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    pub(crate) result_seconds: u32,
    /// The Unix socket, which only this user can connect to [default: engine.sock in the state
    /// directory].
    #[arg(long, value_name = "PATH", help_heading = "Listening")]
    pub(crate) socket: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) listen: ListenArgs,
    /// Serve only the clients in this file. Each line has a client's name and its token, and `operator`
    /// after them for one that may load and evict keys. The file must not be readable by everybody.
    #[arg(
        long,
        value_name = "FILE",
        requires = "listen",
        help_heading = "Listening"
    )]
    pub(crate) tokens: Option<PathBuf>,
    /// Serve `/metrics` (Prometheus) and `/healthz` here; on loopback `/status` and `/timeline` too.
    #[arg(long, value_name = "ADDRESS", help_heading = "Listening")]
    pub(crate) http: Option<SocketAddr>,
    /// Serve the console, a page that shows keys, memory, stages and jobs, on this loopback address [without an
    /// address: 127.0.0.1:9468].
    #[arg(long, value_name = "ADDRESS", help_heading = "Listening", num_args = 0..=1,
          default_missing_value = "127.0.0.1:9468", value_parser = super::console::loopback)]
    pub(crate) console: Option<SocketAddr>,
}

/// Arguments of commands that ask an engine.
#[derive(Debug, Args)]
pub(crate) struct EngineQueryArgs {
    #[command(flatten)]
    pub(crate) engine: EngineArg,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `proofmill engine register`
#[derive(Debug, Args)]
#[command(after_help = REGISTER_EXAMPLES)]
pub(crate) struct Register {
    /// The name: letters, digits, - and _.
    pub(crate) name: String,
    /// A snarkjs key, which contains the constraints.
    #[arg(long, value_name = "FILE", required_unless_present = "key", conflicts_with_all = ["key", "constraints"])]
    pub(crate) zkey: Option<PathBuf>,
    /// The constraints: a .r1cs file, or a precompiled one.
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) constraints: Option<PathBuf>,
    /// A key in Proofmill's own format for these constraints.
    #[arg(long, value_name = "FILE", requires = "constraints")]
    pub(crate) key: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) query: EngineQueryArgs,
}

/// Arguments of commands about one circuit.
#[derive(Debug, Args)]
pub(crate) struct CircuitArgs {
    /// The circuit's name, or its id.
    pub(crate) circuit: String,
    #[command(flatten)]
    pub(crate) query: EngineQueryArgs,
}

/// `proofmill engine preload`
#[derive(Debug, Args)]
pub(crate) struct Preload {
    /// The circuit's name, or its id.
    pub(crate) circuit: String,
    /// The tier to load the key into.
    #[arg(long, value_enum, default_value_t = KeyTier::Hot)]
    pub(crate) tier: KeyTier,
    #[command(flatten)]
    pub(crate) query: EngineQueryArgs,
}

/// Tier that a key is loaded into.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum KeyTier {
    /// Mapped into memory.
    Warm,
    /// Ready to prove.
    Hot,
}

/// Files of a proof that an engine makes.
#[derive(Debug, Args)]
pub(crate) struct ProofFiles {
    /// Where the proof is written.
    #[arg(short, long, value_name = "PROOF")]
    pub(crate) output: PathBuf,
    /// Where the public signals are written.
    #[arg(long, value_name = "PUBLIC")]
    pub(crate) public: Option<PathBuf>,
    /// The circuit's verifying key, as `proofmill zkey export-vk` writes it: the proof is verified with it
    /// before anything is written. Without it the engine is believed.
    #[arg(long, value_name = "VK")]
    pub(crate) vk: Option<PathBuf>,
}

/// `proofmill engine prove`
#[derive(Debug, Args)]
#[command(after_help = PROVE_EXAMPLES)]
pub(crate) struct EngineProve {
    /// The circuit's name, or its id.
    pub(crate) circuit: String,
    /// The witness (.wtns); with --generator the circuit's inputs as JSON.
    pub(crate) witness: PathBuf,
    #[command(flatten)]
    pub(crate) files: ProofFiles,
    /// Make the witness with the engine's generator of this name.
    #[arg(long, value_name = "NAME")]
    pub(crate) generator: Option<String>,
    /// Priority of the job.
    #[arg(long, value_enum, default_value_t = JobPriority::Normal)]
    pub(crate) priority: JobPriority,
    /// Seconds after which the job expires.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<u32>,
    /// The client's name, by which quotas are counted [default: the token's client, or `default`].
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) client: String,
    /// Id of the request: the same id again, with the same content, returns the same job [default: random].
    #[arg(long, value_name = "ID")]
    pub(crate) request: Option<String>,
    #[command(flatten)]
    pub(crate) query: EngineQueryArgs,
}

/// Priority of the job.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum JobPriority {
    /// Only when no other job waits.
    Low,
    /// The default.
    Normal,
    /// Before normal jobs.
    High,
    /// Before all other jobs.
    Critical,
}

/// Arguments of commands about one job.
#[derive(Debug, Args)]
pub(crate) struct JobArgs {
    /// The job's id.
    pub(crate) job: String,
    #[command(flatten)]
    pub(crate) query: EngineQueryArgs,
}

/// `proofmill engine wait`
#[derive(Debug, Args)]
#[command(after_help = WAIT_EXAMPLES)]
pub(crate) struct WaitJob {
    /// The job's id.
    pub(crate) job: String,
    /// Longest wait in seconds [default: until the job ends].
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<u32>,
    #[command(flatten)]
    pub(crate) query: EngineQueryArgs,
}

/// `proofmill engine get`
#[derive(Debug, Args)]
#[command(after_help = GET_EXAMPLES)]
pub(crate) struct GetProof {
    /// The job's id.
    pub(crate) job: String,
    #[command(flatten)]
    pub(crate) files: ProofFiles,
    /// Index of the proof in a job of several partitions, from 0.
    #[arg(long, value_name = "N")]
    pub(crate) partition: Option<usize>,
    #[command(flatten)]
    pub(crate) query: EngineQueryArgs,
}

/// `proofmill engine top`
#[derive(Debug, Args)]
pub(crate) struct Top {
    /// Print one frame as text and exit.
    #[arg(long)]
    pub(crate) once: bool,
    /// Milliseconds from frame to frame.
    #[arg(long, value_name = "MS", default_value_t = 500, value_parser = clap::value_parser!(u64).range(50..=60_000))]
    pub(crate) every: u64,
    #[command(flatten)]
    pub(crate) query: EngineQueryArgs,
}

/// `proofmill engine timeline`
#[derive(Debug, Args)]
#[command(after_help = TIMELINE_EXAMPLES)]
pub(crate) struct TimelineArgs {
    /// Where the trace is written, in the format of Chrome and Perfetto.
    #[arg(long, value_name = "FILE", required_unless_present_any = ["svg", "json"])]
    pub(crate) out: Option<PathBuf>,
    /// Where the waterfall is written: an SVG with the time in seconds from left to right, with long idle
    /// spans cut out.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Only this many seconds before the last event, which may be long ago [default: all that is
    /// remembered: the last 65,536 events].
    #[arg(long, value_name = "SECONDS")]
    pub(crate) last: Option<u32>,
    /// Most partitions in the waterfall; the last ones are shown.
    #[arg(long, value_name = "N", default_value_t = 60)]
    pub(crate) rows: usize,
    #[command(flatten)]
    pub(crate) query: EngineQueryArgs,
}

/// The engine that `proofmill prove` uses.
#[derive(Clone, Debug)]
pub(crate) enum EngineChoice {
    /// The engine at the default socket, if one listens there and has the key.
    Auto,
    /// No engine: prove in this process.
    Off,
    /// The engine at this address.
    At(Address),
}

/// Parses [`EngineChoice`].
pub(crate) fn parse_engine_choice(text: &str) -> Result<EngineChoice, String> {
    match text {
        "auto" => Ok(EngineChoice::Auto),
        "off" => Ok(EngineChoice::Off),
        address => match address.parse() {
            Ok(address) => Ok(EngineChoice::At(address)),
            Err(error) => Err(format!("{error}, `auto` or `off`")),
        },
    }
}

/// Path of the default engine's socket.
pub(crate) fn default_socket() -> PathBuf {
    PathBuf::from(STATE).join(proofmill_api::engine::ENGINE_SOCKET)
}

pub(crate) fn size(text: &str) -> Result<u64, String> {
    parse_size(text).map_err(|error| {
        format!("{error}: expected a whole number and B, KiB, MiB, GiB or TiB, such as 8GiB")
    })
}
