//! The workflow as data: the content of the file, with every default filled in.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::document::Document;
use crate::ethproofs::Ethproofs;
use crate::history::History;
use crate::late::Late;
use crate::scaling::Scaling;
use crate::settlement::Settlement;
use crate::template::Template;
use crate::url::HttpUrl;
use crate::value::{JsonPointer, Rate};

/// A workflow: sources that produce messages, queues that hold them, stages that read and write
/// queues, and a sequencer that emits in chain order.
///
/// Every message carries the span of blocks `first..=last` that it is about, a `part` (a string
/// that distinguishes messages of the same span) and a JSON payload.
#[derive(Clone, Debug)]
pub struct Workflow {
    /// The workflow's name, `[a-z0-9][a-z0-9-]{0,62}`; part of every task id.
    pub name: String,
    /// Folder of the workflow file; relative programs and files are resolved against it.
    pub folder: PathBuf,
    /// Settings that stages and queues inherit.
    pub defaults: Defaults,
    /// Every queue, declared or only mentioned, in the order of first mention.
    pub queues: Vec<Queue>,
    /// Stages without an input.
    pub sources: Vec<Source>,
    /// Stages that run a prover on each message.
    pub dispatchers: Vec<Dispatcher>,
    /// Stages that gather messages into groups.
    pub collectors: Vec<Collector>,
    /// The stage that emits messages in chain order; `None` if the workflow has none.
    pub sequencer: Option<Sequencer>,
    /// The time limit for each block; not measured if absent.
    pub deadline: Option<Deadline>,
    /// Limits on what is kept about blocks that have ended.
    pub history: History,
    /// Pools of workers, whose wanted number is computed; a worker group without one has the default pool.
    pub scaling: Vec<Scaling>,
    /// Reports of blocks and their proofs to Ethproofs; `None` if nothing is reported.
    pub ethproofs: Option<Ethproofs>,
    /// Whether results of stages with [`verify`](Dispatcher::verify) are emitted without a second
    /// check by the process that emits them; `false` by default.
    pub trust_verifiers: bool,
    pub(crate) document: Document,
}

/// The table `[defaults]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Defaults {
    /// Leases and retries that stages inherit.
    pub policy: Policy,
    /// Limit of waiting tasks that queues inherit, above which producers wait; 10,000 by default.
    pub q_max: u32,
}

/// Leases and retries of a stage's tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Lease duration: a task whose worker has been silent for this long is given to another. 30 s
    /// by default.
    pub t_ack: Duration,
    /// Time between a worker's heartbeats; less than `t_ack / 2`. 5 s by default.
    pub heartbeat: Duration,
    /// Retries after the first attempt, before the dead-letter queue: from 0 to 1000, 3 by default.
    pub r_max: u32,
    /// Waits between attempts.
    pub backoff: Backoff,
}

/// Exponential backoff: attempt `i` (from 0) is retried after
/// `min(initial * factor^i, max) * (1 ± jitter)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Backoff {
    /// The first wait; 1 s by default.
    pub initial: Duration,
    /// The longest wait, before jitter; 60 s by default.
    pub max: Duration,
    /// Growth from one wait to the next, from 1 to 100; 2 by default.
    pub factor: f64,
    /// Random share of each wait, from 0 to 1; 0.2 by default.
    pub jitter: f64,
}

/// The table `[deadline]`: the time limit for each block.
#[derive(Clone, Debug, PartialEq)]
pub struct Deadline {
    /// Time from a block's first accepted message until the sequencer has emitted the block, or,
    /// without a sequencer, until no task of the block is left.
    pub slot: Duration,
    /// Treatment of a block that exceeds `slot`.
    pub on_missed: OnMissed,
}

/// Treatment of a block that has missed its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnMissed {
    /// Its tasks continue.
    #[default]
    Keep,
    /// Its remaining tasks go to the dead-letter queue. Only allowed without a sequencer, which
    /// would wait for the block for ever.
    Drop,
}

/// A queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    /// The queue's name, `[a-z0-9][a-z0-9_-]{0,62}`.
    pub name: String,
    /// Limit of waiting tasks, above which producers wait.
    pub q_max: u32,
    /// Number of stages that may write the queue.
    pub writers: Writers,
}

/// Number of stages that may write a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Writers {
    /// Exactly one; a second writer is an error in the workflow.
    #[default]
    One,
    /// One or more.
    Many,
}

/// A stage without an input: it produces the messages that the workflow begins with.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// Unique among the stages; `[a-z0-9][a-z0-9_-]{0,62}`.
    pub name: String,
    /// Origin of the messages.
    pub kind: SourceKind,
    /// Queues written; each gets every message.
    pub outputs: Vec<String>,
    /// Limit on the rate of messages; unlimited if absent.
    pub rate: Option<Rate>,
}

/// Origin of a source's messages.
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
        /// A file of raw 80-byte headers, or of one header in hexadecimal per line; if absent,
        /// headers that the caller supplies (those of the demo).
        file: Option<PathBuf>,
        /// Height of the file's first header.
        start: u64,
        /// Last height to take, inclusive; the whole file if absent.
        end: Option<u64>,
        /// Headers in a message, at least 1 (the last message may hold fewer).
        chunk: u32,
    },
    /// One message per line: `{"block": 7, "part": "a", "payload": {…}}` or, for a span, `{"first":
    /// 8, "last": 15, …}`; `part` is optional.
    Jsonl {
        /// The file.
        file: PathBuf,
    },
    /// Follows an Ethereum chain: each message is a block.
    Ethereum {
        /// JSON-RPC endpoints, from 1 to 16; if one fails, the next is asked.
        rpc: Vec<HttpUrl>,
        /// The first block of the first run; later runs continue where the last one stopped.
        from: ChainStart,
        /// Number of blocks that must follow a block before it is taken, from 0 to 4096.
        confirmations: u64,
        /// Time between two requests for the head of the chain; 2 s by default.
        poll: Duration,
        /// Whether each message contains the whole block.
        full: bool,
        /// The payload of each message, instead of an object with the block's number, hash, parent
        /// and time.
        payload: Option<Template>,
        /// Number of recent blocks kept, from 1 to 4096, 64 by default: the first block of a
        /// reorganisation no deeper than this is found exactly.
        reorg_depth: u32,
    },
    /// Messages come only from the command line or the API.
    Submit,
}

/// The block at which a source begins to follow a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainStart {
    /// This block.
    At(u64),
    /// The block this far behind the head.
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
    /// Number of dispatchers that `run` starts in its process, at least 1 and 1 by default.
    pub workers: u32,
    /// Assignments in flight for each dispatcher, at least 1; an assignment is a task or a batch of
    /// tasks.
    pub f_max: u32,
    /// Maximum number of tasks given to a native prover in one call. A smaller batch does not wait
    /// for more tasks.
    pub batch: u32,
    /// Whether the result is a JSON array of which each element becomes a message.
    pub fan_out: bool,
    /// Whether the stage verifies proofs. The process that emits checks its results again, in
    /// batches, unless [`trust_verifiers`](Workflow::trust_verifiers) is set.
    pub verify: bool,
    /// Whether the coordinator checks each result before it counts. A worker that sends a false one
    /// gets no further task.
    pub check_results: bool,
    /// Worker group, by default the stage's own name. Stages that name the same group share their
    /// workers.
    pub group: String,
    /// Labels that a dispatcher needs to be given a task of this stage.
    pub requires: Vec<String>,
    /// Labels of the dispatchers that `run` starts for this stage.
    pub labels: Vec<String>,
    /// Memory that a task needs, in bytes; 0 by default.
    pub memory: u64,
    /// Memory that each dispatcher started by `run` offers, in bytes; unlimited if absent.
    pub memory_available: Option<u64>,
    /// Time limit of one attempt; unlimited if absent.
    pub time_limit: Option<Duration>,
    /// Program, native prover or engines that run each task.
    pub executor: Executor,
    /// Redundant execution of each task.
    pub speculation: Speculation,
    /// Leases and retries.
    pub policy: Policy,
}

/// Redundant execution: number of workers that get the same task, and results that complete it.
#[derive(Clone, Debug, PartialEq)]
pub struct Speculation {
    /// Number of workers that get each task, from 1 to 16; 1 by default.
    pub copies: u32,
    /// Number of results that complete a task, from 1 to `copies`; 1 by default. A single result is
    /// passed on as it is; several are passed on as an array, in order of their workers' names, or
    /// of their labels with `distinct_label`.
    pub accept: u32,
    /// Prefix of the label in which the workers of one task must differ; if absent, their names
    /// must differ.
    pub distinct_label: Option<String>,
    /// Rule for giving a slow task to one more worker; never done if absent.
    pub hedge: Option<Hedge>,
}

/// Rule for giving a task to one more worker: the task has run longer than `percentile` of the
/// stage's latest runs, and longer than `min`.
#[derive(Clone, Debug, PartialEq)]
pub struct Hedge {
    /// Percentile, from 1 to 99; 95 by default.
    pub percentile: u32,
    /// Shortest run after which a task is hedged; 1 s by default.
    pub min: Duration,
}

/// Program, native prover or engines that run a dispatcher's tasks.
#[derive(Clone, Debug, PartialEq)]
pub enum Executor {
    /// A program, run in a scratch folder as `PROGRAM ARGS… INPUT_FLAG IN OUTPUT_FLAG OUT`.
    Process(ProcessExecutor),
    /// A prover registered by name in this process.
    Native {
        /// The prover's name.
        prover: String,
        /// The prover's parameters: a JSON object.
        params: Value,
    },
    /// Proving engines, which run as processes of their own.
    Engine(EngineExecutor),
}

/// Proving engines; each task goes to one of them.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineExecutor {
    /// The circuit to prove: its name at the engines, or its id.
    pub circuit: String,
    /// Addresses of the engines, from 1 to 64.
    pub endpoints: Vec<EngineAddress>,
    /// Name of the engines' witness generator, which is given the payload; if absent, the payload
    /// is the witness itself.
    pub generator: Option<String>,
    /// Priority of the proofs at the engine. If absent, tasks of the lowest block that this process
    /// has in progress for the stage are [`High`](EnginePriority::High), others
    /// [`Normal`](EnginePriority::Normal).
    pub priority: Option<EnginePriority>,
    /// A file whose first line ends with the token to authenticate with.
    pub token: Option<PathBuf>,
    /// A file of CA certificates (PEM) that the engines' certificates are checked against, instead
    /// of the system's.
    pub ca: Option<PathBuf>,
    /// A file with the circuit's verifying key (snarkjs's JSON). The dispatcher verifies each proof
    /// of an engine with it and rejects those that fail. If absent, proofs are not verified here.
    pub verifying_key: Option<PathBuf>,
    /// Longest wait of a task for an engine that answers and has the circuit; 60 s by default.
    pub patience: Duration,
}

/// The address of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineAddress {
    /// A Unix socket, already resolved against the workflow's folder.
    Socket(PathBuf),
    /// A TCP port, with or without TLS; the path is `/`.
    Tcp(HttpUrl),
}

/// Priority of a proof at an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EnginePriority {
    /// After everything else.
    Low,
    /// Between [`Low`](Self::Low) and [`High`](Self::High).
    Normal,
    /// Before normal ones.
    High,
    /// Before everything else.
    Critical,
}

/// A program that reads a task's payload from one file and writes the result to another.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessExecutor {
    /// The program.
    pub program: Program,
    /// Arguments before `input_flag`.
    pub args: Vec<String>,
    /// Variables added to the program's environment.
    pub env: BTreeMap<String, String>,
    /// Names of the dispatcher's variables that the program inherits, beside a short list that
    /// every program inherits.
    pub inherit_env: Vec<String>,
    /// Confinement of the program.
    pub sandbox: Sandbox,
    /// Flag before the path of the input; `--input-path` by default.
    pub input_flag: String,
    /// Flag before the path of the output; `--output-path` by default.
    pub output_flag: String,
    /// Limit on the program's memory, in bytes; unlimited if absent.
    pub memory_limit: Option<u64>,
}

/// Confinement of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Sandbox {
    /// The rights of the user that runs it; it cannot gain more.
    #[default]
    Basic,
    /// It can write to its scratch folder only and has no network. Machines that cannot enforce
    /// this do not run the program.
    Strict {
        /// Maximum number of processes and threads at a time, where control groups can be used;
        /// 4096 by default.
        pids_limit: u32,
    },
}

/// Location of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// A bare name: searched in `PATH`.
    Search(String),
    /// A path, already resolved against the workflow's folder.
    File(PathBuf),
}

/// A stage that gathers messages into groups and emits one message for each group.
///
/// The emitted payload is a JSON array of the members' payloads, ordered by (first block, queue,
/// part), if the stage has one input, and an object `{queue: [payload, …]}` if it has several.
#[derive(Clone, Debug, PartialEq)]
pub struct Collector {
    /// Unique among the stages; `[a-z0-9][a-z0-9_-]{0,62}`.
    pub name: String,
    /// Queues read, at least one.
    pub inputs: Vec<String>,
    /// Queues written; each gets every group.
    pub outputs: Vec<String>,
    /// Rule that assigns messages to groups and completes a group.
    pub strategy: Strategy,
    /// Longest wait for a group to complete, from its first member; unlimited if absent.
    pub t_collect: Option<Duration>,
    /// After `t_collect`: emit the incomplete group (`true`) or dead-letter its members (`false`).
    pub partial: bool,
    /// Treatment of a message that arrives after its group was emitted.
    pub late: Late,
    /// Leases and retries.
    pub policy: Policy,
}

/// Rule that assigns messages to groups and completes a group.
#[derive(Clone, Debug, PartialEq)]
pub enum Strategy {
    /// Messages with an equal value at `group_by` form a group.
    Match {
        /// Number of messages in a group.
        k: MatchCount,
        /// Pointer to the grouping value in the payload: a string or an integer.
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
    /// A strategy registered in code.
    Custom {
        /// The strategy's name.
        name: String,
        /// The strategy's parameters: a JSON object.
        params: Value,
    },
}

/// Number of messages in a group of [`Strategy::Match`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MatchCount {
    /// This many, from any of the inputs.
    Total(u32),
    /// This many from each input, by the queue's name.
    PerQueue(BTreeMap<String, u32>),
}

/// The stage that emits messages in chain order, each block once. In graphs and in records its
/// name is [`Sequencer::NAME`].
#[derive(Clone, Debug, PartialEq)]
pub struct Sequencer {
    /// Queue read.
    pub input: String,
    /// The first block to emit; 0 by default.
    pub start: u64,
    /// Folder that emitted payloads are written to, relative to the state folder; not written if
    /// absent.
    pub directory: Option<PathBuf>,
    /// Further destinations of emitted payloads: each payload goes to all of them, in this order.
    pub sinks: Vec<Sink>,
}

/// A destination of emitted payloads. They are delivered one after the other, each retried until
/// the destination accepts it.
#[derive(Clone, Debug, PartialEq)]
pub struct Sink {
    /// Destination and its settings.
    pub kind: SinkKind,
    /// Waits between attempts to deliver a payload.
    pub backoff: Backoff,
}

/// Kind of a destination, and its settings.
#[derive(Clone, Debug, PartialEq)]
pub enum SinkKind {
    /// An HTTP server, which gets a POST request for each payload.
    Webhook {
        /// Address that requests are sent to.
        url: HttpUrl,
        /// Secret that each request is signed with.
        secret: Secret,
        /// A file of CA certificates (PEM) to trust in addition to the system's.
        ca: Option<PathBuf>,
        /// Time limit of one attempt; 30 s by default.
        time_limit: Duration,
    },
    /// A stream of a NATS server, which gets a message for each payload.
    JetStream {
        /// Addresses of the servers, separated by commas; if absent, the cluster's own connection
        /// is used.
        url: Option<String>,
        /// The subject to publish to. Its stream must already exist.
        subject: String,
        /// Name of the stream that must hold the subject; if absent, any stream may.
        stream: Option<String>,
        /// A NATS credentials file: a JWT and a seed.
        creds: Option<PathBuf>,
        /// A file of CA certificates (PEM) to trust in addition to the system's.
        ca: Option<PathBuf>,
    },
    /// A contract on an Ethereum chain, which is called with the payloads in their order.
    Ethereum(Box<Settlement>),
    /// A program, run once for each payload; exit status 0 means that it accepted the payload.
    Exec {
        /// The program.
        program: Program,
        /// Its arguments.
        args: Vec<String>,
        /// Variables added to the program's environment.
        env: BTreeMap<String, String>,
        /// Names of the variables of the sequencer's process that the program inherits, beside a
        /// short list that every program inherits.
        inherit_env: Vec<String>,
        /// Confinement of the program.
        sandbox: Sandbox,
        /// Channel that carries the payload to the program.
        input: ExecInput,
        /// Time limit of one attempt; unlimited if absent.
        time_limit: Option<Duration>,
    },
}

/// Channel that carries a payload to a sink's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ExecInput {
    /// Standard input.
    #[default]
    Stdin,
    /// A file, whose path is the last argument.
    File,
}

/// Location of a secret, which is never written in the workflow file itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Secret {
    /// This environment variable.
    Environment(String),
    /// This file.
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

    /// The file that this workflow was read from, and its text.
    pub fn document(&self) -> &Document {
        &self.document
    }
}

// === impl Source ===

impl Source {
    /// Whether the source may end at a block that the workflow file does not state.
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
    /// One worker and one result, without hedging.
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
    /// The section of the file that sinks are read from.
    pub(crate) const SECTION: &'static str = "sequencer.sink";
}

// === impl Sequencer ===

impl Sequencer {
    /// The sequencer's name among the stages.
    pub const NAME: &'static str = "sequencer";
}
