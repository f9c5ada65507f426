//! The interface to one proving engine.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use proofmill_trace::TraceContext;
use proofmill_workflow::EnginePriority;

/// A proving engine, local or remote. Requests can be repeated: the same request is the same job.
pub trait Endpoint: Send + Sync + 'static {
    /// The engine's address, for messages.
    fn address(&self) -> &str;

    /// The state of the engine, and of its key for `circuit`.
    fn snapshot<'a>(
        &'a self,
        circuit: &'a str,
    ) -> BoxFuture<'a, Result<EngineSnapshot, EndpointError>>;

    /// Submits a job under the id `request`, or finds the job that has this id already.
    fn submit<'a>(
        &'a self,
        request: &'a str,
        job: &'a EngineJob,
    ) -> BoxFuture<'a, Result<Ticket, EndpointError>>;

    /// Waits for the end of the job with id `id`, which was submitted as `job`. The statements of
    /// an engine in another process are checked here: an answer that cannot be right is
    /// [`JobOutcome::Failed`].
    fn result<'a>(
        &'a self,
        id: &'a str,
        job: &'a EngineJob,
    ) -> BoxFuture<'a, Result<JobOutcome, EndpointError>>;

    /// Stops a job, unless more than `waiting` callers wait for its result.
    fn cancel<'a>(&'a self, job: &'a str, waiting: u32)
    -> BoxFuture<'a, Result<(), EndpointError>>;
}

/// State of an engine at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineSnapshot {
    /// State of the circuit's key; `None` if the engine does not know the circuit.
    pub tier: Option<Tier>,
    /// Number of unfinished jobs, of all callers.
    pub jobs: u64,
    /// Whether the engine accepts no new jobs.
    pub draining: bool,
}

/// Readiness of a proving key at an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// The key is on disk only.
    Cold,
    /// Mapped, or being loaded.
    Warm,
    /// Ready to prove.
    Hot,
}

/// A proof to make.
#[derive(Clone)]
pub struct EngineJob {
    /// The circuit's name or id.
    pub circuit: String,
    /// Priority of the job; not part of its identity.
    pub priority: EnginePriority,
    /// Source of the witness.
    pub input: JobInput,
    /// Context of the attempt's span; not part of the job's identity.
    pub trace: Option<TraceContext>,
}

/// Source of a witness. `Debug` shows sizes only.
#[derive(Clone)]
pub enum JobInput {
    /// The whole witness: the content of a `.wtns` file if it begins with that file's magic, else a
    /// vector of 32 little-endian bytes per variable.
    Witness(Bytes),
    /// A circuit's inputs, for one of the engine's witness generators.
    Inputs {
        /// The generator's name.
        generator: String,
        /// The inputs as JSON.
        json: Bytes,
    },
}

/// A job that an engine has accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The job's id at the engine.
    pub job: String,
    /// Whether the job existed before this request.
    pub existing: bool,
}

/// The end of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobOutcome {
    /// A proof, which the engine claims to have verified; it was checked as far as
    /// [`Endpoint::result`] can.
    Proved(ProofOutput),
    /// The job failed without a proof, for this reason.
    Failed(String),
    /// The job was cancelled.
    Cancelled,
}

/// A proof and its statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofOutput {
    /// The circuit's id, in hexadecimal.
    pub circuit_id: String,
    /// The curve's name.
    pub curve: String,
    /// The proof as in snarkjs's `proof.json`; serialized from the points by the process that
    /// checked it.
    pub proof_json: String,
    /// The public inputs as in snarkjs's `public.json`; serialized from the numbers.
    pub public_json: String,
}

/// The reason why an engine does not carry out a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// The engine has no capacity at present.
    #[error("{why}")]
    Exhausted {
        /// The exhausted resource, as a sentence fragment.
        why: String,
        /// Time after which to try again.
        retry_after: Duration,
    },
    /// The engine does not answer, refuses this caller, or is ending.
    #[error("{0}")]
    Unavailable(String),
    /// The engine cannot do this job at present: it lacks the circuit, the generator or the memory.
    #[error("{0}")]
    Unable(String),
    /// The job is malformed for the engine's circuit.
    #[error("{0}")]
    Invalid(String),
    /// The request id belongs to another job.
    #[error("{0}")]
    Taken(String),
}

// === impl JobInput ===

impl fmt::Debug for JobInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Witness(bytes) => write!(f, "a witness of {} bytes", bytes.len()),
            Self::Inputs { generator, json } => {
                write!(f, "{} bytes for generator {generator:?}", json.len())
            }
        }
    }
}

// === impl EngineJob ===

impl fmt::Debug for EngineJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a job for {:?}: {:?}", self.circuit, self.input)
    }
}
