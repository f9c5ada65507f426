//! An engine in another process, over gRPC.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use proofmill_orchestrator::executor::engine::{
    Endpoint, EndpointError, EngineJob, EngineSnapshot, JobInput, JobOutcome, Ticket, Tier,
};
use proofmill_workflow::EngineExecutor;
use tokio::sync::OnceCell;
use tonic::Code;

use super::job::{is_wtns, priority};
use super::outcome::{checked_outcome, make_retryable, sent_witness, without_proof};
use crate::engine::convert;
use crate::engine::proto::partition::Input;
use crate::engine::proto::{self, GeneratorInputs, JobState, Partition, SubmitRequest};
use crate::engine::{
    Address, AnswerKey, Client, ClientError, Credentials, check_answer_of_any_curve,
};

/// Wait before the next try, if the engine does not set one.
const RETRY_WAIT_DEFAULT: Duration = Duration::from_secs(1);

/// The endpoints for the engines of a stage, in their order. Each connects at its first request, and again
/// when the connection is lost.
pub fn endpoints(engine: &EngineExecutor) -> Vec<Arc<dyn Endpoint>> {
    let credentials = Credentials {
        authority: engine.ca.clone(),
        token: engine.token.clone(),
    };
    let key = Arc::new(OnceCell::new());
    let endpoint = |address: String| -> Arc<dyn Endpoint> {
        Arc::new(RemoteEndpoint {
            address,
            credentials: credentials.clone(),
            client: OnceCell::new(),
            key_path: engine.verifying_key.clone(),
            key: key.clone(),
        })
    };
    let addresses = engine.endpoints.iter();
    addresses.map(|at| endpoint(at.to_string())).collect()
}

struct RemoteEndpoint {
    address: String,
    credentials: Credentials,
    /// Set at the first connection; the client reconnects by itself.
    client: OnceCell<Client>,
    /// Path of the key that proofs are verified with.
    key_path: Option<PathBuf>,
    /// The key, which is read when the first proof comes. All engines of the stage share it.
    key: Arc<OnceCell<Arc<AnswerKey>>>,
}

// === impl RemoteEndpoint ===

impl RemoteEndpoint {
    async fn client(&self) -> Result<&Client, EndpointError> {
        let connect = || async {
            let address = self.address.parse::<Address>();
            let address = address.map_err(|error| EndpointError::Unavailable(error.to_string()))?;
            let connected = Client::connect(&address, &self.credentials).await;
            connected.map_err(endpoint_error)
        };
        self.client.get_or_try_init(connect).await
    }

    async fn verifying_key(&self) -> Result<Option<Arc<AnswerKey>>, EndpointError> {
        let Some(path) = &self.key_path else {
            return Ok(None);
        };
        let load = || async {
            let path = path.clone();
            let loaded = tokio::task::spawn_blocking(move || AnswerKey::load(&path)).await;
            let loaded = loaded.unwrap_or_else(|error| Err(error.to_string()));
            let unusable = |why| EndpointError::Unavailable(format!("verifying key: {why}"));
            loaded.map(Arc::new).map_err(unusable)
        };
        self.key.get_or_try_init(load).await.cloned().map(Some)
    }
}

impl Endpoint for RemoteEndpoint {
    fn address(&self) -> &str {
        &self.address
    }

    fn snapshot<'a>(
        &'a self,
        circuit: &'a str,
    ) -> BoxFuture<'a, Result<EngineSnapshot, EndpointError>> {
        Box::pin(async move {
            let listed = self.client().await?.list_circuits().await;
            Ok(snapshot(circuit, &listed.map_err(endpoint_error)?))
        })
    }

    fn submit<'a>(
        &'a self,
        request: &'a str,
        job: &'a EngineJob,
    ) -> BoxFuture<'a, Result<Ticket, EndpointError>> {
        Box::pin(async move {
            // An unusable key file is reported before the engine works, not after it.
            self.verifying_key().await?;
            let client = self.client().await?;
            let submitted = client.submit_in_trace(submission(request, job), job.trace.as_ref());
            let submitted = submitted.await;
            let submitted = submitted.map_err(endpoint_error)?;
            Ok(Ticket {
                job: submitted.job,
                existing: submitted.existing,
            })
        })
    }

    fn result<'a>(
        &'a self,
        id: &'a str,
        job: &'a EngineJob,
    ) -> BoxFuture<'a, Result<JobOutcome, EndpointError>> {
        Box::pin(async move {
            let key = self.verifying_key().await?;
            let result = self.client().await?;
            let result = result.await_result_in_trace(id, job.trace.as_ref()).await;
            let result = result.map_err(|error| make_retryable(endpoint_error(error)))?;
            job_outcome(result, job, key).await
        })
    }

    fn cancel<'a>(
        &'a self,
        job: &'a str,
        waiting: u32,
    ) -> BoxFuture<'a, Result<(), EndpointError>> {
        Box::pin(async move {
            let client = self.client().await?;
            let cancelled = client.cancel_unless_wanted(job, waiting).await;
            cancelled.map(drop).map_err(endpoint_error)
        })
    }
}

/// The error of a call that failed.
fn endpoint_error(error: ClientError) -> EndpointError {
    match error {
        ClientError::Refused {
            code,
            message,
            retry_after,
        } => error_of_status(code, message, retry_after),
        // The caller adds the address.
        ClientError::Unreachable { why, .. } => EndpointError::Unavailable(why),
        error => EndpointError::Unavailable(error.to_string()),
    }
}

/// Converts a refusal into an error for a caller that chooses an engine.
pub(super) fn error_of_status(
    code: Code,
    why: String,
    retry_after: Option<Duration>,
) -> EndpointError {
    match code {
        Code::ResourceExhausted => EndpointError::Exhausted {
            why,
            retry_after: retry_after.unwrap_or(RETRY_WAIT_DEFAULT),
        },
        Code::InvalidArgument => EndpointError::Invalid(why),
        Code::NotFound | Code::FailedPrecondition | Code::Unimplemented => {
            EndpointError::Unable(why)
        }
        Code::AlreadyExists => EndpointError::Taken(why),
        _ => EndpointError::Unavailable(why),
    }
}

/// Outcome of a job of one partition, taken from the engine's answer. The answer is checked against the job
/// and with `key`, and the texts that are passed on are printed from the checked values.
async fn job_outcome(
    result: proto::JobResult,
    job: &EngineJob,
    key: Option<Arc<AnswerKey>>,
) -> Result<JobOutcome, EndpointError> {
    match result.state() {
        JobState::Done => {}
        JobState::Failed => return Ok(JobOutcome::Failed(result.failure)),
        _ => return Ok(JobOutcome::Cancelled),
    }
    let answer = result.proofs.into_iter().next();
    let mut answer = answer.ok_or_else(|| without_proof(&result.job))?;
    let circuit_id = std::mem::take(&mut answer.circuit_id);
    let witness = sent_witness(job);
    checked_outcome(circuit_id, move || {
        check_answer_of_any_curve(&answer, witness.as_deref(), key.as_deref())
    })
    .await
}

/// A request for one proof.
fn submission(request: &str, job: &EngineJob) -> SubmitRequest {
    let input = match &job.input {
        JobInput::Witness(bytes) if is_wtns(bytes) => Input::Wtns(bytes.to_vec()),
        JobInput::Witness(bytes) => Input::Vector(bytes.to_vec()),
        JobInput::Inputs { generator, json } => Input::Inputs(GeneratorInputs {
            generator: generator.clone(),
            json: json.to_vec(),
        }),
    };
    SubmitRequest {
        request_id: request.to_owned(),
        priority: convert::priority(priority(job.priority)).into(),
        partitions: vec![Partition {
            circuit: job.circuit.clone(),
            input: Some(input),
        }],
        ..SubmitRequest::default()
    }
}

/// The circuit's tier and the engine's load, from a list of circuits.
fn snapshot(circuit: &str, listed: &proto::ListCircuitsResponse) -> EngineSnapshot {
    let mut circuits = listed.circuits.iter();
    let found = circuits.find(|it| it.name == circuit || it.id == circuit);
    EngineSnapshot {
        tier: found.map(|it| match it.tier() {
            proto::Tier::Hot => Tier::Hot,
            proto::Tier::Warm => Tier::Warm,
            // A key that is being loaded counts as warm.
            _ if it.loading => Tier::Warm,
            _ => Tier::Cold,
        }),
        jobs: listed.jobs,
        draining: listed.draining,
    }
}
