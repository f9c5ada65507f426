//! Between what executors say and what engines do.

use std::sync::Arc;
use std::time::Duration;

use proofmill_orchestrator::executor::engine::{
    End, EndpointError, Job, JobInput, Look, Made, Tier,
};
use proofmill_r1cs::iden3::WTNS_FORMAT;
use proofmill_workflow::EnginePriority;
use tonic::Code;

use crate::engine::answer::{AnswerKey, check_answer_of_any_curve};
use crate::engine::proto::partition::Input;
use crate::engine::proto::{self, GeneratorInputs, JobState, Partition, Priority, SubmitRequest};

/// When to try again if the engine does not say.
const LATER: Duration = Duration::from_secs(1);

/// What a refusal means to who looks for an engine.
pub(super) fn refused(code: Code, why: String, retry_after: Option<Duration>) -> EndpointError {
    match code {
        Code::ResourceExhausted => EndpointError::Exhausted {
            why,
            retry_after: retry_after.unwrap_or(LATER),
        },
        Code::InvalidArgument => EndpointError::Invalid(why),
        Code::NotFound | Code::FailedPrecondition | Code::Unimplemented => {
            EndpointError::Unable(why)
        }
        Code::AlreadyExists => EndpointError::Taken(why),
        _ => EndpointError::Unavailable(why),
    }
}

/// A job that was accepted is not known any more: it is to be submitted again.
pub(super) fn forgotten(error: EndpointError) -> EndpointError {
    match error {
        EndpointError::Unable(why) => EndpointError::Unavailable(why),
        error => error,
    }
}

/// Outcome of a job of one partition, taken from the engine's answer. The answer is compared with
/// the job and with `key`, and the texts that are passed on are written from the checked values.
pub(super) async fn end(
    result: proto::JobResult,
    job: &Job,
    key: Option<Arc<AnswerKey>>,
) -> Result<End, EndpointError> {
    match result.state() {
        JobState::Done => {}
        JobState::Failed => return Ok(End::Failed(result.failure)),
        _ => return Ok(End::Stopped),
    }
    let proof = result.proofs.into_iter().next().ok_or_else(|| {
        EndpointError::Unavailable(format!("job {} is done and has no proof", result.job))
    })?;
    let witness = match &job.input {
        JobInput::Witness(bytes) => Some(bytes.clone()),
        JobInput::Inputs { .. } => None,
    };
    // A pairing takes milliseconds, many inputs longer.
    let checked = tokio::task::spawn_blocking(move || {
        let texts = check_answer_of_any_curve(&proof, witness.as_deref(), key.as_deref());
        texts.map(|texts| (proof, texts))
    });
    let checked = checked
        .await
        .map_err(|error| EndpointError::Unavailable(error.to_string()))?;
    Ok(match checked {
        Ok((proof, texts)) => End::Proved(Made {
            circuit_id: proof.circuit_id,
            curve: proof.curve,
            proof: proof.proof,
            public: proof.public_inputs,
            proof_json: texts.proof,
            public_json: texts.public,
        }),
        // Another engine, or another job, may do better.
        Err(error) => End::Failed(error.to_string()),
    })
}

/// A request for one proof.
pub(super) fn submission(request: &str, job: &Job) -> SubmitRequest {
    let priority = match job.priority {
        EnginePriority::Low => Priority::Low,
        EnginePriority::Normal => Priority::Normal,
        EnginePriority::High => Priority::High,
        EnginePriority::Critical => Priority::Critical,
    };
    let input = match &job.input {
        JobInput::Witness(bytes) if bytes.starts_with(&WTNS_FORMAT.magic) => {
            Input::Wtns(bytes.to_vec())
        }
        JobInput::Witness(bytes) => Input::Vector(bytes.to_vec()),
        JobInput::Inputs { generator, json } => Input::Inputs(GeneratorInputs {
            generator: generator.clone(),
            json: json.to_vec(),
        }),
    };
    SubmitRequest {
        request_id: request.to_owned(),
        priority: priority.into(),
        partitions: vec![Partition {
            circuit: job.circuit.clone(),
            input: Some(input),
        }],
        ..SubmitRequest::default()
    }
}

/// What a list of circuits says of one.
pub(super) fn look(circuit: &str, listed: &proto::ListCircuitsResponse) -> Look {
    let mut circuits = listed.circuits.iter();
    let found = circuits.find(|it| it.name == circuit || it.id == circuit);
    Look {
        tier: found.map(|it| match it.tier() {
            proto::Tier::Hot => Tier::Hot,
            proto::Tier::Warm => Tier::Warm,
            // It is nearly there.
            _ if it.loading => Tier::Warm,
            _ => Tier::Cold,
        }),
        jobs: listed.jobs,
        draining: listed.draining,
    }
}
