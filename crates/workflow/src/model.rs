//! The workflow as data: what the file says, with every default filled in.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::document::Document;
use crate::history::History;
use crate::late::Late;
use crate::template::Template;
use crate::url::HttpUrl;
use crate::value::{JsonPointer, Rate};

/// A workflow: sources that produce messages, queues that hold them, stages that read and write
/// queues, and a sequencer that emits in chain order.
///
/// Every message carries the span of blocks `first..=last` that it is about, a `part` (a string
/// that tells messages of the same span apart) and a JSON payload.
#[derive(Clone, Debug)]
pub struct Workflow {
    /// `[a-z0-9][a-z0-9-]{0,62}`; part of every task id.
    pub name: String,
    /// Folder of the workflow file; relative programs and files are resolved against it.
    pub folder: PathBuf,
    /// What stages and queues inherit.
    pub defaults: Defaults,
    /// Every queue, declared or only mentioned, in the order of first mention.
    pub queues: Vec<Queue>,
    /// Stages without an input.
    pub sources: Vec<Source>,
    /// Stages that run a prover on each message.
    pub dispatchers: Vec<Dispatcher>,
    /// Stages that gather messages into groups.
    pub collectors: Vec<Collector>,
    /// Emits in chain order.
    pub sequencer: Option<Sequencer>,
    /// How long a block may take; not counted if absent.
    pub deadline: Option<Deadline>,
    /// How much is remembered of blocks that have ended.
    pub history: History,
    /// Whether what stages with [`verify`](Dispatcher::verify) pass leaves without being checked
    /// again by the process that emits.
    pub trust_verifiers: bool,
    pub(crate) document: Document,
}

/// The table `[defaults]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Defaults {
    /// What stages inherit.
    pub policy: Policy,
    /// What queues inherit: waiting tasks before producers wait.
    pub q_max: u32,
}

/// How a stage's tasks are leased and retried.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Lease duration: a task whose worker was silent for this long is given to another.
    pub t_ack: Duration,
    /// Time between a worker's heartbeats; below `t_ack / 2`.
    pub heartbeat: Duration,
    /// Retries after the first attempt, before the dead-letter queue.
    pub r_max: u32,
    /// Waits between attempts.
    pub backoff: Backoff,
}

/// Exponential backoff: attempt `i` (from 0) is retried after
/// `min(initial * factor^i, max) * (1 ± jitter)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Backoff {
    /// The first wait.
    pub initial: Duration,
    /// No wait is longer, before jitter.
    pub max: Duration,
    /// Growth, from 1 to 100.
    pub factor: f64,
    /// Share of the wait that is random, from 0 to 1.
    pub jitter: f64,
}

/// The table `[deadline]`: how long a block may take.
#[derive(Clone, Debug, PartialEq)]
pub struct Deadline {
    /// From its first accepted message until the sequencer has emitted it, or, without one, until
    /// nothing of it is left.
    pub slot: Duration,
    /// What becomes of a block that takes longer.
    pub on_missed: OnMissed,
}

/// What becomes of a block that has missed its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnMissed {
    /// It goes on.
    #[default]
    Keep,
    /// What is left of it goes to the dead-letter queue; only where no sequencer waits for it.
    Drop,
}

/// A queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    /// `[a-z0-9][a-z0-9_-]{0,62}`.
    pub name: String,
    /// Waiting tasks before producers wait.
    pub q_max: u32,
    /// How many stages are meant to write it.
    pub writers: Writers,
}

/// How many stages are meant to write a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Writers {
    /// Exactly one; a second one is an error.
    #[default]
    One,
    /// One or more.
    Many,
}

/// A stage without an input: it makes the messages that the workflow begins with.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// Unique among the stages; `[a-z0-9][a-z0-9_-]{0,62}`.
    pub name: String,
    /// Where the messages come from.
    pub kind: SourceKind,
    /// Queues written; each gets every message.
    pub outputs: Vec<String>,
    /// Optional limit on messages.
    pub rate: Option<Rate>,
}

/// Where a source's messages come from.
#[derive(Clone, Debug, PartialEq)]
pub enum SourceKind {
    /// Counts blocks: each message spans `chunk` of them (the last may span fewer).
    Range {
        /// First block.
        start: u64,
        /// Last block, inclusive; forever if absent.
        end: Option<u64>,
        /// Blocks in a message, at least 1.
        chunk: u32,
        /// The payload of each message.
        payload: Template,
    },
    /// Bitcoin block headers: each message carries `chunk` consecutive ones.
    Headers {
        /// Raw 80-byte headers, or one in hexadecimal on each line; the caller's own headers
        /// (the demo's) if absent.
        file: Option<PathBuf>,
        /// Height of the file's first header.
        start: u64,
        /// Last height to take, inclusive; the whole file if absent.
        end: Option<u64>,
        /// Headers in a message, at least 1 (the last message may hold fewer).
        chunk: u32,
    },
    /// One message a line: `{"block": 7, "part": "a", "payload": {…}}` or, for a span,
    /// `{"first": 8, "last": 15, …}`; `part` may be absent.
    Jsonl {
        /// The file.
        file: PathBuf,
    },
    /// Follows an Ethereum chain: each message is a block.
    Ethereum {
        /// JSON-RPC endpoints, at least one; the next is asked when one fails.
        rpc: Vec<HttpUrl>,
        /// Where to begin, the first time.
        from: ChainStart,
        /// A block is brought when so many follow it.
        confirmations: u64,
        /// How often the head of the chain is asked for.
        poll: Duration,
        /// Whether a message holds the whole block.
        full: bool,
        /// The payload of each message, instead of an object with the block's number, hash, parent
        /// and time.
        payload: Option<Template>,
        /// Blocks that are remembered, at least 1: a reorganisation of so many is found exactly.
        reorg_depth: u32,
    },
    /// Messages come only from the command line or the API.
    Submit,
}

/// Where a chain is first followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainStart {
    /// At this block.
    At(u64),
    /// So many blocks behind its head.
    Behind(u64),
}

/// A stage that runs a prover on each message of one queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Dispatcher {
    /// Unique among the stages; `[a-z0-9][a-z0-9_-]{0,62}`.
    pub name: String,
    /// Queue read.
    pub input: String,
    /// Queues written; each gets every result. Empty for a terminal stage.
    pub outputs: Vec<String>,
    /// Dispatchers that `run` starts in its process, at least 1.
    pub workers: u32,
    /// Assignments in flight for each dispatcher, at least 1; each is a task or a batch of them.
    pub f_max: u32,
    /// Most tasks handed to a native prover in one call, without waiting for more.
    pub batch: u32,
    /// The result is a JSON array; each element becomes a message.
    pub fan_out: bool,
    /// The stage verifies: what it passes on to the sequencer is checked again, in batches, by the
    /// process that emits, unless [`trust_verifiers`](Workflow::trust_verifiers) is set.
    pub verify: bool,
    /// Worker group, the stage's own name unless it is given: stages that name the same one share
    /// their workers.
    pub group: String,
    /// Labels that a dispatcher must have to be given a task of this stage.
    pub requires: Vec<String>,
    /// Labels of the dispatchers that `run` starts.
    pub labels: Vec<String>,
    /// Memory that a task needs, in bytes.
    pub memory: u64,
    /// Memory that each dispatcher started by `run` offers, in bytes; unlimited if absent.
    pub memory_available: Option<u64>,
    /// Longest time for one attempt; unlimited if absent.
    pub time_limit: Option<Duration>,
    /// What runs.
    pub executor: Executor,
    /// How many workers get the same task.
    pub speculation: Speculation,
    /// Leases and retries.
    pub policy: Policy,
}

/// How many workers get the same task, and what becomes of their results.
#[derive(Clone, Debug, PartialEq)]
pub struct Speculation {
    /// Workers that each task is given to, from 1 to 16.
    pub copies: u32,
    /// Results that complete it, from 1 to `copies`. One goes on as it is; several, as an array in
    /// order of their workers' names, or labels.
    pub accept: u32,
    /// What the label begins with in which the workers of one task must differ; their names if
    /// absent.
    pub distinct_label: Option<String>,
    /// When one more worker gets a task that takes long; never if absent.
    pub hedge: Option<Hedge>,
}

/// When one more worker gets a task: it has taken longer than `percentile` of the stage's latest
/// runs, and longer than `min`.
#[derive(Clone, Debug, PartialEq)]
pub struct Hedge {
    /// From 1 to 99.
    pub percentile: u32,
    /// No task is hedged before.
    pub min: Duration,
}

/// What a dispatcher runs for each task.
#[derive(Clone, Debug, PartialEq)]
pub enum Executor {
    /// A program: `PROGRAM ARGS… INPUT_FLAG IN OUTPUT_FLAG OUT` in a scratch folder.
    Process(ProcessExecutor),
    /// A prover that is registered by name in this process.
    Native {
        /// Its name.
        prover: String,
        /// What it is configured with.
        params: Value,
    },
    /// Proving engines, in processes of their own.
    Engine(EngineExecutor),
}

/// Proving engines, each task going to one of them.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineExecutor {
    /// The circuit that is proven: its name at the engines, or its id.
    pub circuit: String,
    /// Where the engines are, from 1 to 64.
    pub endpoints: Vec<EngineAddress>,
    /// The engines' witness generator that is given the payload; without one the payload is the
    /// witness itself.
    pub generator: Option<String>,
    /// Whose turn it is at the engine; if absent, the lowest block that a process has under way for
    /// the stage goes first.
    pub priority: Option<EnginePriority>,
    /// A file whose first line ends with the token to show.
    pub token: Option<PathBuf>,
    /// Certificates (PEM) of the authority that the engines' are of, instead of the system's.
    pub ca: Option<PathBuf>,
    /// The circuit's verifying key (snarkjs's JSON): the dispatcher verifies each proof of an engine's with
    /// it, and takes no other. Without one an engine is believed that a proof holds.
    pub verifying_key: Option<PathBuf>,
    /// How long a task waits for an engine that answers and has the circuit.
    pub patience: Duration,
}

/// Where an engine is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineAddress {
    /// Its Unix socket, already resolved against the workflow's folder.
    Socket(PathBuf),
    /// Its TCP port, with or without TLS; the path is `/`.
    Tcp(HttpUrl),
}

/// Whose turn it is at an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EnginePriority {
    /// When nothing else is to be done.
    Low,
    /// Unless something else is said.
    Normal,
    /// Before what is normal.
    High,
    /// Before everything.
    Critical,
}

/// A program that reads a task's payload from one file and writes the result to another.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessExecutor {
    /// The program.
    pub program: Program,
    /// Arguments before the two flags.
    pub args: Vec<String>,
    /// Variables added to the environment.
    pub env: BTreeMap<String, String>,
    /// Variables of the dispatcher that the program gets, beside a short list that every program
    /// gets.
    pub inherit_env: Vec<String>,
    /// Confinement of the program.
    pub sandbox: Sandbox,
    /// Flag before the path of the input, `--input-path` unless said otherwise.
    pub input_flag: String,
    /// Flag before the path of the output, `--output-path` unless said otherwise.
    pub output_flag: String,
    /// Most memory for the program, in bytes; unlimited if absent.
    pub memory_limit: Option<u64>,
}

/// Confinement of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Sandbox {
    /// Rights of its user, without ever gaining any.
    #[default]
    Basic,
    /// It writes to its scratch folder only and has no network; machines that cannot see to that
    /// do not run it.
    Strict {
        /// Most processes and threads at a time, where control groups can be used.
        pids_limit: u32,
    },
}

/// Where a program is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// A bare name: searched in `PATH`.
    Search(String),
    /// A path, already resolved against the workflow's folder.
    File(PathBuf),
}

/// A stage that gathers messages into groups and emits one message for each group.
///
/// The payload it emits is a JSON array of the members' payloads, ordered by (first block, queue,
/// part), if it has one input; an object `{queue: [payload, …]}` if it has several.
#[derive(Clone, Debug, PartialEq)]
pub struct Collector {
    /// Unique among the stages; `[a-z0-9][a-z0-9_-]{0,62}`.
    pub name: String,
    /// Queues read, at least one.
    pub inputs: Vec<String>,
    /// Queues written; each gets every group.
    pub outputs: Vec<String>,
    /// What makes a group, and when it is complete.
    pub strategy: Strategy,
    /// Longest wait for a group, from its first member; forever if absent.
    pub t_collect: Option<Duration>,
    /// After `t_collect`: emit what there is (`true`) or dead-letter the members (`false`).
    pub partial: bool,
    /// What becomes of a message that comes after its group was emitted.
    pub late: Late,
    /// Leases and retries.
    pub policy: Policy,
}

/// What makes a group, and when it is complete.
#[derive(Clone, Debug, PartialEq)]
pub enum Strategy {
    /// Messages whose value at `group_by` is equal.
    Match {
        /// How many make a group.
        k: MatchCount,
        /// Where the grouping value is, in the payload: a string or an integer.
        group_by: JsonPointer,
    },
    /// Group `block / n`: complete when each input covers all `n` blocks. A message may span
    /// several blocks of one group.
    Sequential {
        /// Blocks in a group, at least 1.
        n: u64,
    },
    /// A message of queue `by` spans the blocks `first..=last` of one group; complete when each
    /// other input covers all of them.
    Range {
        /// The input whose messages set the groups' boundaries.
        by: String,
    },
    /// Registered in code.
    Custom {
        /// Its name.
        name: String,
        /// What it is configured with.
        params: Value,
    },
}

/// How many messages make a group of [`Strategy::Match`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MatchCount {
    /// So many, from whichever input.
    Total(u32),
    /// So many from each input, by the queue's name.
    PerQueue(BTreeMap<String, u32>),
}

/// The stage that emits messages in chain order, each block once. In graphs and in records its
/// name is [`Sequencer::NAME`].
#[derive(Clone, Debug, PartialEq)]
pub struct Sequencer {
    /// Queue read.
    pub input: String,
    /// First block to emit.
    pub start: u64,
    /// Where each emitted payload is written, relative to the state folder; not written if absent.
    pub directory: Option<PathBuf>,
    /// Where else each emitted payload goes: to all of them, in this order.
    pub sinks: Vec<Sink>,
}

/// Where emitted payloads go, one after the other, each until it is taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Sink {
    /// Which kind of place.
    pub kind: SinkKind,
    /// Waits between attempts at a payload that is not taken.
    pub backoff: Backoff,
}

/// Which kind of place emitted payloads go to.
#[derive(Clone, Debug, PartialEq)]
pub enum SinkKind {
    /// An HTTP server: a POST for each payload.
    Webhook {
        /// Where.
        url: HttpUrl,
        /// With which each request is signed.
        secret: Secret,
        /// Certificates (PEM) of the authorities to trust, beside the system's.
        ca: Option<PathBuf>,
        /// Longest time for one attempt.
        time_limit: Duration,
    },
    /// A stream of a NATS server: a message for each payload.
    JetStream {
        /// Addresses of the server, separated by commas; the cluster's own if absent.
        url: Option<String>,
        /// The subject, of a stream that somebody else has made.
        subject: String,
        /// The stream that must have the subject; whichever has it if absent.
        stream: Option<String>,
        /// A file with a JWT and a seed.
        creds: Option<PathBuf>,
        /// Certificates (PEM) of the authorities to trust, beside the system's.
        ca: Option<PathBuf>,
    },
    /// A program: a run for each payload; exit status 0 says that it was taken.
    Exec {
        /// The program.
        program: Program,
        /// Its arguments.
        args: Vec<String>,
        /// Variables added to the environment.
        env: BTreeMap<String, String>,
        /// Variables of the sequencer's process that the program gets, beside a short list that
        /// every program gets.
        inherit_env: Vec<String>,
        /// Confinement of the program.
        sandbox: Sandbox,
        /// How it gets the payload.
        input: ExecInput,
        /// Longest time for one attempt; unlimited if absent.
        time_limit: Option<Duration>,
    },
}

/// How a program of a sink gets the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ExecInput {
    /// On standard input.
    #[default]
    Stdin,
    /// In a file, whose path is the last argument.
    File,
}

/// Where a secret is; it never stands in the workflow file itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Secret {
    /// In this variable of the environment.
    Environment(String),
    /// In this file.
    File(PathBuf),
}

// === impl Workflow ===

impl Workflow {
    /// The queue called `name`.
    pub fn queue(&self, name: &str) -> Option<&Queue> {
        self.queues.iter().find(|queue| queue.name == name)
    }

    /// The dispatcher called `name`.
    pub fn dispatcher(&self, name: &str) -> Option<&Dispatcher> {
        self.dispatchers.iter().find(|stage| stage.name == name)
    }

    /// The collector called `name`.
    pub fn collector(&self, name: &str) -> Option<&Collector> {
        self.collectors.iter().find(|stage| stage.name == name)
    }

    /// The file this was read from, and its text.
    pub fn document(&self) -> &Document {
        &self.document
    }
}

// === impl Source ===

impl Source {
    /// If it may come to an end that the workflow file does not tell.
    pub(crate) fn may_end_unsaid(&self) -> bool {
        matches!(self.kind, SourceKind::Headers { end: None, .. })
    }
}

// === impl Policy ===

impl Default for Policy {
    fn default() -> Self {
        Self {
            t_ack: Duration::from_secs(30),
            heartbeat: Duration::from_secs(5),
            r_max: 3,
            backoff: Backoff::default(),
        }
    }
}

// === impl Speculation ===

impl Default for Speculation {
    /// One worker, one result.
    fn default() -> Self {
        Self {
            copies: 1,
            accept: 1,
            distinct_label: None,
            hedge: None,
        }
    }
}

// === impl Defaults ===

impl Default for Defaults {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            q_max: 10_000,
        }
    }
}

// === impl Backoff ===

impl Default for Backoff {
    fn default() -> Self {
        Self {
            initial: Duration::from_secs(1),
            max: Duration::from_secs(60),
            factor: 2.0,
            jitter: 0.2,
        }
    }
}

// === impl Sink ===

impl Sink {
    /// The tables that sinks are read from.
    pub(crate) const SECTION: &'static str = "sequencer.sink";
}

// === impl Sequencer ===

impl Sequencer {
    /// Its name among the stages.
    pub const NAME: &'static str = "sequencer";
}
