//! What there is to say to an engine.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use proofmill_workflow::EnginePriority;

/// An engine, wherever it is. What it is asked may be asked again: the same request is the same job.
pub trait Endpoint: Send + Sync + 'static {
    /// Where it is, for messages.
    fn address(&self) -> &str;

    /// Whether it has a circuit, and how much it has to do.
    fn look<'a>(&'a self, circuit: &'a str) -> BoxFuture<'a, Result<Look, EndpointError>>;

    /// Accepts a job under the id `request`, or finds the one that has it.
    fn submit<'a>(
        &'a self,
        request: &'a str,
        job: &'a Job,
    ) -> BoxFuture<'a, Result<Ticket, EndpointError>>;

    /// Waits for the end of the job `id`, which is that of `job`. What an engine in another process says
    /// of it is checked here: an answer that cannot be right is [`End::Failed`].
    fn result<'a>(&'a self, id: &'a str, job: &'a Job)
    -> BoxFuture<'a, Result<End, EndpointError>>;

    /// Stops a job, unless more than `waiting` callers wait for its result.
    fn cancel<'a>(&'a self, job: &'a str, waiting: u32)
    -> BoxFuture<'a, Result<(), EndpointError>>;
}

/// An engine as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Where the circuit's key is; none if the engine does not know the circuit.
    pub tier: Option<Tier>,
    /// Jobs that are not at their end, whoever's they are.
    pub jobs: u64,
    /// Whether it takes nothing new.
    pub draining: bool,
}

/// How near a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// On disk.
    Cold,
    /// Mapped, or being loaded.
    Warm,
    /// Ready to prove.
    Hot,
}

/// One proof to be made.
#[derive(Clone)]
pub struct Job {
    /// The circuit's name or id.
    pub circuit: String,
    /// Whose turn it is; not part of what makes two jobs the same.
    pub priority: EnginePriority,
    /// What the witness comes from.
    pub input: JobInput,
}

/// What a witness comes from. `Debug` shows sizes only.
#[derive(Clone)]
pub enum JobInput {
    /// The whole witness: a `.wtns` file's content if it begins with that file's magic, and else a
    /// vector of 32 little-endian bytes for each variable.
    Witness(Bytes),
    /// A circuit's inputs, for one of the engine's generators.
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
    /// The job's id there.
    pub job: String,
    /// Whether it was there before.
    pub existing: bool,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// With a proof, which the engine says that it has verified; it was checked as far as
    /// [`Endpoint::result`] can.
    Proved(Made),
    /// Without one: why.
    Failed(String),
    /// Somebody stopped it.
    Stopped,
}

/// A proof, and what it proves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// The circuit's id, hexadecimal.
    pub circuit_id: String,
    /// The curve's name.
    pub curve: String,
    /// The proof as snarkjs writes it to `proof.json`; printed by whoever checked it, from the points.
    pub proof_json: String,
    /// The public inputs as snarkjs writes them to `public.json`; printed from the numbers.
    pub public_json: String,
}

/// Why an engine does not do what it is asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// There is no room now.
    #[error("{why}")]
    Exhausted {
        /// Of what.
        why: String,
        /// When to try again.
        retry_after: Duration,
    },
    /// It does not answer, does not let this caller in, or ends.
    #[error("{0}")]
    Unavailable(String),
    /// It cannot do this job as it is: it lacks the circuit, the generator or the memory.
    #[error("{0}")]
    Unable(String),
    /// The job is malformed for the circuit that it has.
    #[error("{0}")]
    Invalid(String),
    /// The request id is another job's.
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

// === impl Job ===

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a job for {:?}: {:?}", self.circuit, self.input)
    }
}
