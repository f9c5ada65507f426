//! The executor of a stage whose tasks are proved by engines.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::future::{BoxFuture, join_all};
use proofmill_workflow as file;
use proofmill_workflow::EnginePriority;
use serde::Serialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;
use zeroize::Zeroizing;

use super::endpoint::{Endpoint, EngineJob, JobInput, ProofOutput};
use super::head::BlocksInProgress;
use super::router::{RouteError, Router};
use crate::executor::machine::Unfinished;
use crate::executor::resolved::Resolved;
use crate::executor::traits::{Execution, Executor, Product};
use crate::id::TaskId;
use crate::payload::Encoding;
use crate::record::Failure;

/// Domain separator of request ids, with the version of their computation.
const REQUEST_DOMAIN: &[u8] = b"proofmill/executor/engine/1";

/// Executes each task as a job at an engine.
pub struct EngineExecutor {
    workflow: String,
    circuit: String,
    generator: Option<String>,
    priority: Option<EnginePriority>,
    time_limit: Option<Duration>,
    router: Router,
    blocks: BlocksInProgress,
}

/// The result of a task: a proof and its public inputs, as snarkjs writes them.
#[derive(Serialize)]
struct Proved<'a> {
    circuit_id: &'a str,
    curve: &'a str,
    proof: &'a RawValue,
    public: &'a RawValue,
}

// === impl EngineExecutor ===

impl EngineExecutor {
    /// The executor of a stage of `workflow`, with the engines in the order of the file. An attempt
    /// fails after `time_limit`.
    pub fn new(
        workflow: &str,
        engine: &file::EngineExecutor,
        time_limit: Option<Duration>,
        endpoints: Vec<Arc<dyn Endpoint>>,
    ) -> Self {
        Self {
            workflow: workflow.to_owned(),
            circuit: engine.circuit.clone(),
            generator: engine.generator.clone(),
            priority: engine.priority,
            time_limit,
            router: Router::new(&engine.circuit, endpoints, engine.patience),
            blocks: BlocksInProgress::default(),
        }
    }

    async fn run(&self, execution: Execution) -> Result<Product, Failure> {
        let began = Instant::now();
        let failed = |error: RouteError| failure(&error, began.elapsed());
        let Execution {
            task,
            input,
            trace,
            cancel,
            ..
        } = execution;
        let input = job_input(input, self.generator.as_deref());
        let input = input.map_err(|why| failed(RouteError::Permanent(why)))?;
        let in_progress = self.blocks.begin(task.id.block);
        let job = EngineJob {
            circuit: self.circuit.clone(),
            priority: self.priority.unwrap_or(match in_progress.is_head() {
                true => EnginePriority::High,
                false => EnginePriority::Normal,
            }),
            input,
            trace,
        };
        let request = request_id(&self.workflow, &task.id, task.last, &job);
        let stop = stopped(&cancel, self.time_limit);
        let proof = self.router.prove(&request, &job, stop).await;
        let output = proof.and_then(|proof| proof.to_json());
        Ok(Product {
            outputs: vec![(Encoding::Json, output.map_err(failed)?)],
            fan_out: false,
            ran: began.elapsed(),
        })
    }
}

impl Executor for EngineExecutor {
    // An engine without capacity, or without an answer, is skipped or waited for by the router:
    // that is not an attempt either.
    fn execute(&self, batch: Vec<Execution>) -> BoxFuture<'_, Vec<Result<Product, Unfinished>>> {
        let run = |execution| async { self.run(execution).await.map_err(Unfinished::from) };
        Box::pin(join_all(batch.into_iter().map(run)))
    }
}

/// The id under which engines know a task's job. It depends on the workflow, the task and the
/// statement to prove, and not on the attempt or the worker; `last` is the last block that the task is about.
pub fn request_id(workflow: &str, task: &TaskId, last: u64, job: &EngineJob) -> String {
    let (generator, content) = match &job.input {
        JobInput::Witness(bytes) => ("", bytes),
        JobInput::Inputs { generator, json } => (&**generator, json),
    };
    let id = task.to_string();
    let mut hasher = Sha256::new();
    hasher.update(REQUEST_DOMAIN);
    for part in [workflow, &id, &job.circuit, generator] {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.update(last.to_le_bytes());
    hasher.update(Sha256::digest(content));
    let digest = hex::encode(&hasher.finalize()[..16]);
    // The stage and the block are readable in the engine's list of jobs. A stage's name has at most
    // 63 characters, an id 128.
    format!("{}/{}-{digest}", task.stage, task.block)
}

/// Resolves when the result is no longer wanted, or the time limit has passed.
pub async fn stopped(cancel: &CancellationToken, time_limit: Option<Duration>) -> RouteError {
    let limit = async {
        match time_limit {
            Some(limit) => {
                tokio::time::sleep(limit).await;
                RouteError::Retry(format!("no proof within {limit:?}"))
            }
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = cancel.cancelled() => RouteError::Cancelled,
        late = limit => late,
    }
}

/// The record of a failed attempt.
pub fn failure(error: &RouteError, ran: Duration) -> Failure {
    let failure = match error {
        RouteError::Permanent(reason) => Failure::permanent(reason),
        RouteError::Retry(_) | RouteError::Cancelled => Failure::retryable(error.to_string()),
    };
    failure.after(ran)
}

/// Converts a payload to a job's input. Error messages never contain parts of the payload.
fn job_input(payload: Resolved, generator: Option<&str>) -> Result<JobInput, String> {
    match (generator, payload) {
        (Some(_), Resolved::One(Encoding::Binary, _)) => Err(
            "the payload is binary, and a witness generator is given JSON: make the stage before \
             write JSON, or drop `generator` if the payload is a witness"
                .to_owned(),
        ),
        (Some(generator), payload) => Ok(JobInput::Inputs {
            generator: generator.to_owned(),
            json: payload.to_program_input()?,
        }),
        (None, Resolved::One(Encoding::Binary, bytes)) => Ok(JobInput::Witness(bytes)),
        (None, Resolved::One(Encoding::Json, json)) => {
            let no_witness = || {
                "the payload is no witness: a string with a .wtns file in base64 is expected, or \
                 `generator` in the workflow file if these are a circuit's inputs"
                    .to_owned()
            };
            let text: String = serde_json::from_slice(&json).map_err(|_| no_witness())?;
            let text = Zeroizing::new(text);
            let bytes = STANDARD.decode(&*text).map_err(|_| no_witness())?;
            Ok(JobInput::Witness(Bytes::from_owner(Zeroizing::new(bytes))))
        }
        (None, Resolved::Group { .. }) => Err(
            "the payload is a group of messages, and a witness is one: name a `generator`, or put \
             a stage between that makes a witness of the group"
                .to_owned(),
        ),
    }
}

// === impl ProofOutput ===

impl ProofOutput {
    /// The message of the result: `circuit_id`, `curve`, `proof` and `public`.
    fn to_json(&self) -> Result<Bytes, RouteError> {
        let unreadable = |error: serde_json::Error| {
            RouteError::Retry(format!("the engine's proof is not JSON: {error}"))
        };
        let json = serde_json::to_vec(&Proved {
            circuit_id: &self.circuit_id,
            curve: &self.curve,
            proof: serde_json::from_str(&self.proof_json).map_err(unreadable)?,
            public: serde_json::from_str(&self.public_json).map_err(unreadable)?,
        });
        json.map(Bytes::from).map_err(unreadable)
    }
}
