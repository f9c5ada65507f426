//! An engine in this process.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use proofmill_engine::{
    CircuitView, Error, Handle, Input, JobId, JobResult, JobState, Load, Partition, RequestId,
    Secret, Submission, Tier,
};
use proofmill_orchestrator::executor::engine as executor;
use proofmill_orchestrator::executor::engine::{
    Endpoint, EndpointError, EngineJob, EngineSnapshot, JobInput, JobOutcome, Ticket,
};

use super::job::{is_wtns, priority};
use super::outcome::{checked_outcome, make_retryable, sent_witness, without_proof};
use crate::engine::answer::check_proof;
use crate::engine::convert::DEFAULT_CLIENT;

/// The engine's name in errors.
const NAME: &str = "in-process";

/// An engine in this process, as an endpoint of an executor.
pub fn in_process_endpoint(handle: Handle) -> Arc<dyn Endpoint> {
    Arc::new(LocalEndpoint(handle))
}

struct LocalEndpoint(Handle);

impl Endpoint for LocalEndpoint {
    fn address(&self) -> &str {
        NAME
    }

    fn snapshot<'a>(
        &'a self,
        circuit: &'a str,
    ) -> BoxFuture<'a, Result<EngineSnapshot, EndpointError>> {
        Box::pin(async move {
            let circuits = self.0.circuits().await.map_err(endpoint_error)?;
            let load = self.0.load().await.map_err(endpoint_error)?;
            Ok(snapshot(circuit, &circuits, load))
        })
    }

    fn submit<'a>(
        &'a self,
        request: &'a str,
        job: &'a EngineJob,
    ) -> BoxFuture<'a, Result<Ticket, EndpointError>> {
        Box::pin(async move {
            let submitted = self.0.submit(submission(request, job)?).await;
            let submitted = submitted.map_err(endpoint_error)?;
            Ok(Ticket {
                job: submitted.job.to_string(),
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
            let id = job_id(id)?;
            if let Some(trace) = &job.trace {
                self.0.note_trace(id, trace.clone());
            }
            let result = self.0.await_result(id).await;
            let result = result.map_err(|error| make_retryable(endpoint_error(error)))?;
            job_outcome(result, job).await
        })
    }

    fn cancel<'a>(
        &'a self,
        job: &'a str,
        waiting: u32,
    ) -> BoxFuture<'a, Result<(), EndpointError>> {
        Box::pin(async move {
            let job = job_id(job)?;
            let cancelled = self.0.cancel_unless_wanted(job, waiting as usize).await;
            cancelled.map(drop).map_err(endpoint_error)
        })
    }
}

fn job_id(text: &str) -> Result<JobId, EndpointError> {
    text.parse()
        .map_err(|error| EndpointError::Invalid(format!("job: {error}")))
}

/// Converts a refusal into the same error as over gRPC.
fn endpoint_error(error: Error) -> EndpointError {
    let why = error.to_string();
    match error {
        Error::Exhausted { retry_after, .. } => EndpointError::Exhausted { why, retry_after },
        Error::Invalid(_) | Error::Name(_) | Error::TooLarge { .. } => EndpointError::Invalid(why),
        Error::UnknownCircuit { .. }
        | Error::UnknownGenerator { .. }
        | Error::UnknownJob(_)
        | Error::Impossible { .. }
        | Error::InUse(..)
        | Error::Circuit(_) => EndpointError::Unable(why),
        Error::Conflict { .. } | Error::NameTaken { .. } => EndpointError::Taken(why),
        _ => EndpointError::Unavailable(why),
    }
}

/// A job of one partition.
fn submission(request: &str, job: &EngineJob) -> Result<Submission, EndpointError> {
    let request = RequestId::new(DEFAULT_CLIENT, request).map_err(EndpointError::Invalid)?;
    let circuit = job.circuit.parse();
    let circuit = circuit.map_err(|error| EndpointError::Invalid(format!("circuit: {error}")))?;
    let input = match &job.input {
        JobInput::Witness(bytes) if is_wtns(bytes) => Input::Wtns(Secret::new(bytes.to_vec())),
        JobInput::Witness(bytes) => Input::Vector(Secret::new(bytes.to_vec())),
        JobInput::Inputs { generator, json } => Input::Inputs {
            generator: generator.clone(),
            json: Secret::new(json.to_vec()),
        },
    };
    Ok(Submission {
        request,
        priority: priority(job.priority),
        deadline: None,
        partitions: vec![Partition { circuit, input }],
        trace: job.trace.clone(),
    })
}

/// Outcome of a job of one partition. The proof's public inputs are compared with the witness that was
/// sent.
async fn job_outcome(result: JobResult, job: &EngineJob) -> Result<JobOutcome, EndpointError> {
    match &result.state {
        JobState::Done => {}
        JobState::Failed(why) => return Ok(JobOutcome::Failed(why.clone())),
        _ => return Ok(JobOutcome::Cancelled),
    }
    let made = result.proofs.first().cloned();
    let made = made.ok_or_else(|| without_proof(result.job))?;
    let witness = sent_witness(job);
    let check = move || {
        check_proof(&made.proof, witness.as_deref(), None)?;
        Ok(made.proof)
    };
    checked_outcome(made.circuit.to_string(), check).await
}

/// The circuit's tier and the engine's load, for a caller that chooses an engine.
fn snapshot(circuit: &str, circuits: &[CircuitView], load: Load) -> EngineSnapshot {
    let mut circuits = circuits.iter();
    let found = circuits.find(|it| it.name == circuit || it.id.to_string() == circuit);
    EngineSnapshot {
        tier: found.map(|it| match it.tier {
            Tier::Hot => executor::Tier::Hot,
            Tier::Warm => executor::Tier::Warm,
            // A key that is being loaded counts as warm.
            Tier::Cold if it.loading => executor::Tier::Warm,
            Tier::Cold => executor::Tier::Cold,
        }),
        jobs: load.jobs,
        draining: load.draining,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proofmill_engine::{CircuitId, CircuitRef, Resource, check_name};

    use super::*;
    use crate::engine::endpoint::remote;
    use crate::engine::refusal;
    use crate::grpc::retry_after;

    #[test]
    fn errors_are_converted_as_over_grpc() {
        let (job, id) = (JobId([1; 16]), CircuitId([1; 32]));
        let request = RequestId::new("client", "1").unwrap();
        let what = "a proof".to_owned();
        let errors = [
            Error::Invalid("why".to_owned()),
            check_name("").unwrap_err().into(),
            Error::UnknownCircuit {
                circuit: CircuitRef::Id(id),
                known: Vec::new(),
            },
            Error::UnknownGenerator {
                name: "it".to_owned(),
                known: Vec::new(),
            },
            Error::UnknownJob(job),
            Error::Conflict { request, job },
            Error::NameTaken {
                name: "it".to_owned(),
                id,
            },
            Error::Exhausted {
                resource: Resource::Queue,
                used: 2,
                limit: 2,
                retry_after: Duration::from_millis(1500),
            },
            Error::TooLarge {
                what: "it",
                size: 2,
                limit: 1,
            },
            Error::Impossible {
                what,
                needed: 2,
                total: 1,
                pinned: 0,
            },
            Error::InUse("it".to_owned(), "pinned"),
            Error::Circuit("why".to_owned()),
            Error::Draining,
            Error::Stopped,
            Error::Damaged("why".to_owned()),
            Error::Storage("why".to_owned()),
        ];
        for error in errors {
            let status = refusal::status_of_error(error.clone());
            let after = retry_after(&status);
            let there = remote::error_of_status(status.code(), status.message().to_owned(), after);
            assert_eq!(endpoint_error(error), there);
        }
    }
}
