//! The outcome of a job, for a local or a remote engine.

use bytes::Bytes;
use proofmill_engine::AnyProof;
use proofmill_orchestrator::executor::engine::{
    EndpointError, EngineJob, JobInput, JobOutcome, ProofOutput,
};

use crate::engine::answer::{AnswerError, ProofTexts};

/// Makes the error of an accepted job that the engine no longer knows retryable, since the job must be submitted again.
pub(super) fn make_retryable(error: EndpointError) -> EndpointError {
    match error {
        EndpointError::Unable(why) => EndpointError::Unavailable(why),
        error => error,
    }
}

/// The error of a job that is done but has no proof, which is the engine's fault.
pub(super) fn without_proof(job: impl std::fmt::Display) -> EndpointError {
    EndpointError::Unavailable(format!("job {job} is done and has no proof"))
}

/// The witness that was sent; none if the engine generates it.
pub(super) fn sent_witness(job: &EngineJob) -> Option<Bytes> {
    match &job.input {
        JobInput::Witness(bytes) => Some(bytes.clone()),
        JobInput::Inputs { .. } => None,
    }
}

/// The outcome of a job whose proof `check` returns: the proof as texts, or a failure if the check fails. An error if
/// the check itself could not be run.
pub(super) async fn checked_outcome(
    circuit_id: String,
    check: impl FnOnce() -> Result<AnyProof, AnswerError> + Send + 'static,
) -> Result<JobOutcome, EndpointError> {
    // Checking takes milliseconds for a pairing, and longer for many inputs.
    let checked = tokio::task::spawn_blocking(move || {
        let proof = check()?;
        let texts = ProofTexts::from(&proof);
        Ok::<_, AnswerError>(ProofOutput {
            circuit_id,
            curve: proof.curve().name().to_owned(),
            proof_json: texts.proof,
            public_json: texts.public,
        })
    });
    let checked = checked
        .await
        .map_err(|error| EndpointError::Unavailable(error.to_string()))?;
    Ok(match checked {
        Ok(made) => JobOutcome::Proved(made),
        Err(error) => JobOutcome::Failed(error.to_string()),
    })
}
