//! `proofmill.engine.v1.ProvingEngine`, implemented with an engine's handle.

use std::pin::Pin;
use std::sync::Arc;
use std::time::SystemTime;

use futures_util::stream::{self, Stream, StreamExt};
use proofmill_engine::{Error, Handle, JobId, JobResult, JobState};
use proofmill_trace::TraceContext;
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status, Streaming};

use super::access::Caller;
use super::convert;
use super::history::History;
use super::proto;
use super::proto::proving_engine_server::ProvingEngine;
use super::refusal;
use super::streaming;
use crate::grpc::timeout_of_call;
use crate::traces::caller_of;

/// The service on one listener.
#[derive(Clone, Debug)]
pub(crate) struct EngineService {
    pub(crate) handle: Handle,
    pub(crate) history: Arc<History>,
    /// Whether only the engine's own user can call. Only that user may use calls that read the engine's
    /// files or take its memory from all other clients.
    pub(crate) private: bool,
}

type Answer<T> = Result<Response<T>, Status>;

/// The name of the client whose token a call carries.
fn caller<T>(request: &Request<T>) -> Option<Arc<str>> {
    let caller = request.extensions().get();
    caller.map(|caller: &Caller| caller.name.clone())
}

/// The trace context of a call.
fn trace_of(metadata: &MetadataMap) -> Option<TraceContext> {
    caller_of(metadata.as_ref()).map(Arc::unwrap_or_clone)
}

/// Whether a call may use operators' rights: always where no tokens are needed, otherwise if the client is
/// an operator.
fn may_operate<T>(request: &Request<T>) -> bool {
    let caller = request.extensions().get();
    caller.is_none_or(|caller: &Caller| caller.rights.operator)
}

fn require_operator<T>(request: &Request<T>) -> Result<(), Status> {
    if may_operate(request) {
        return Ok(());
    }
    Err(Status::permission_denied(
        "keys are everybody's: this needs the token of a client with `operator` on its line of the \
         engine's tokens",
    ))
}

// === impl EngineService ===

impl EngineService {
    fn require_private(&self) -> Result<(), Status> {
        if self.private {
            return Ok(());
        }
        Err(Status::permission_denied(
            "this is answered on the engine's Unix socket only",
        ))
    }

    /// Checks that a job belongs to the client of the call's token. Other clients' jobs are reported as
    /// unknown.
    async fn check_owner(&self, caller: Option<&str>, job: JobId) -> Result<(), Status> {
        let Some(caller) = caller else { return Ok(()) };
        let view = self
            .handle
            .job(job)
            .await
            .map_err(refusal::status_of_error)?;
        if view.request.client() == caller {
            Ok(())
        } else {
            Err(refusal::status_of_error(Error::UnknownJob(job)))
        }
    }

    async fn result_of(&self, job: JobId) -> Result<JobResult, Status> {
        self.handle
            .await_result(job)
            .await
            .map_err(refusal::status_of_error)
    }
}

/// Removes the paths of a circuit's files.
fn remove_paths(circuit: proto::Circuit) -> proto::Circuit {
    proto::Circuit {
        key_path: String::new(),
        constraints_path: String::new(),
        ..circuit
    }
}

/// The circuits of an engine, the number of its unfinished jobs, and whether it drains.
async fn list_circuits(handle: &Handle) -> Result<proto::ListCircuitsResponse, Status> {
    let circuits = handle.circuits().await.map_err(refusal::status_of_error)?;
    let load = handle.load().await.map_err(refusal::status_of_error)?;
    Ok(proto::ListCircuitsResponse {
        circuits: circuits.iter().map(convert::circuit).collect(),
        jobs: load.jobs,
        draining: load.draining,
    })
}

#[tonic::async_trait]
impl ProvingEngine for EngineService {
    async fn submit(
        &self,
        request: Request<proto::SubmitRequest>,
    ) -> Answer<proto::SubmitResponse> {
        let caller = caller(&request);
        let (metadata, _, request) = request.into_parts();
        let pending = convert::submission(request, caller.as_deref())?;
        let mut submission = pending.complete([])?;
        submission.trace = trace_of(&metadata);
        let submitted = self.handle.submit(submission).await;
        let submitted = submitted.map_err(refusal::status_of_error)?;
        Ok(Response::new(convert::submitted(submitted)))
    }

    async fn submit_stream(
        &self,
        request: Request<Streaming<proto::SubmitStreamRequest>>,
    ) -> Answer<proto::SubmitResponse> {
        let caller = caller(&request);
        let (metadata, _, messages) = request.into_parts();
        let received = streaming::receive(&self.handle, messages, caller.as_deref()).await;
        let mut submission = received?;
        submission.trace = trace_of(&metadata);
        let submitted = self.handle.submit(submission).await;
        let submitted = submitted.map_err(refusal::status_of_error)?;
        Ok(Response::new(convert::submitted(submitted)))
    }

    async fn r#await(&self, request: Request<proto::AwaitRequest>) -> Answer<proto::JobResult> {
        let caller = caller(&request);
        let job = convert::job_id(&request.get_ref().job)?;
        self.check_owner(caller.as_deref(), job).await?;
        if let Some(context) = trace_of(request.metadata()) {
            self.handle.note_trace(job, context);
        }
        let result = self.result_of(job).await?;
        Ok(Response::new(convert::result(&result)))
    }

    async fn prove(&self, request: Request<proto::SubmitRequest>) -> Answer<proto::JobResult> {
        let caller = caller(&request);
        let timeout = timeout_of_call(request.metadata().as_ref())?;
        let (metadata, _, request) = request.into_parts();
        let mut pending = convert::submission(request, caller.as_deref())?;
        if let Some(until) = timeout.and_then(|it| SystemTime::now().checked_add(it)) {
            pending.limit_deadline(until);
        }
        let mut submission = pending.complete([])?;
        submission.trace = trace_of(&metadata);
        let submitted = self.handle.submit(submission).await;
        let job = submitted.map_err(refusal::status_of_error)?.job;
        let result = self.result_of(job).await?;
        match &result.state {
            JobState::Cancelled => Err(Status::cancelled(format!("job {job} was cancelled"))),
            JobState::Expired => Err(Status::deadline_exceeded(format!(
                "the deadline of job {job} passed"
            ))),
            JobState::Failed(why) => Err(Status::failed_precondition(format!(
                "job {job} failed: {why}"
            ))),
            _ => Ok(Response::new(convert::result(&result))),
        }
    }

    async fn cancel(&self, request: Request<proto::CancelRequest>) -> Answer<proto::Job> {
        let caller = caller(&request);
        let job = convert::job_id(&request.get_ref().job)?;
        self.check_owner(caller.as_deref(), job).await?;
        let cancelled = match request.get_ref().waiting {
            None => self.handle.cancel(job).await,
            Some(waiting) => {
                self.handle
                    .cancel_unless_wanted(job, waiting as usize)
                    .await
            }
        };
        let view = cancelled.map_err(refusal::status_of_error)?;
        Ok(Response::new(convert::job(&view)))
    }

    async fn get_job(&self, request: Request<proto::GetJobRequest>) -> Answer<proto::Job> {
        let caller = caller(&request);
        let job = convert::job_id(&request.get_ref().job)?;
        self.check_owner(caller.as_deref(), job).await?;
        let view = self
            .handle
            .job(job)
            .await
            .map_err(refusal::status_of_error)?;
        Ok(Response::new(convert::job(&view)))
    }

    type StreamEventsStream = Pin<Box<dyn Stream<Item = Result<proto::Event, Status>> + Send>>;

    async fn stream_events(
        &self,
        request: Request<proto::StreamEventsRequest>,
    ) -> Answer<Self::StreamEventsStream> {
        let (caller, sees_all) = (caller(&request), may_operate(&request));
        let proto::StreamEventsRequest { past, end, job } = request.into_inner();
        let job = match &*job {
            "" if !sees_all => {
                return Err(Status::permission_denied(
                    "the token's client sees the events of its own jobs only: name one of these \
                     jobs, or use the token of an operator",
                ));
            }
            "" => None,
            id => Some(convert::job_id(id)?),
        };
        if let Some(job) = job {
            self.check_owner(caller.as_deref(), job).await?;
        }
        let mut reader = self.history.read(past, job);
        let before = std::mem::take(&mut reader.past);
        let before = stream::iter(before.into_iter().map(Ok));
        if end {
            return Ok(Response::new(Box::pin(before)));
        }
        let after = stream::unfold(Some(reader), |reader| async {
            let mut reader = reader?;
            match reader.next().await {
                Some(event) => Some((Ok(event), Some(reader))),
                None => Some((Err(refusal::status_of_error(Error::Stopped)), None)),
            }
        });
        Ok(Response::new(Box::pin(before.chain(after))))
    }

    async fn get_status(
        &self,
        request: Request<proto::GetStatusRequest>,
    ) -> Answer<proto::EngineStatus> {
        let mut status = self
            .handle
            .status()
            .await
            .map_err(refusal::status_of_error)?;
        if let Some(caller) = caller(&request) {
            let own = |job: &proofmill_engine::JobView| job.request.client() == &*caller;
            status.jobs.retain(own);
            status.recent.retain(own);
        }
        let mut status = convert::status(&status);
        if !may_operate(&request) {
            let circuits = status.circuits.into_iter();
            status.circuits = circuits.map(remove_paths).collect();
        }
        Ok(Response::new(status))
    }

    async fn register(&self, request: Request<proto::RegisterRequest>) -> Answer<proto::Circuit> {
        self.require_private()?;
        let registration = convert::registration(request.into_inner())?;
        let circuit = self.handle.register(registration).await;
        Ok(Response::new(convert::circuit(
            &circuit.map_err(refusal::status_of_error)?,
        )))
    }

    async fn unregister(
        &self,
        request: Request<proto::UnregisterRequest>,
    ) -> Answer<proto::UnregisterResponse> {
        self.require_private()?;
        let name = request.into_inner().name;
        self.handle
            .unregister(name)
            .await
            .map_err(refusal::status_of_error)?;
        Ok(Response::new(proto::UnregisterResponse {}))
    }

    async fn list_circuits(
        &self,
        request: Request<proto::ListCircuitsRequest>,
    ) -> Answer<proto::ListCircuitsResponse> {
        let mut listed = list_circuits(&self.handle).await?;
        if !may_operate(&request) {
            let circuits = listed.circuits.into_iter();
            listed.circuits = circuits.map(remove_paths).collect();
        }
        Ok(Response::new(listed))
    }

    async fn preload(&self, request: Request<proto::PreloadRequest>) -> Answer<proto::Circuit> {
        require_operator(&request)?;
        let proto::PreloadRequest { circuit, tier } = request.into_inner();
        let circuit = convert::circuit_ref(&circuit)?;
        let tier = convert::preload_tier(tier)?;
        let circuit = self.handle.preload(circuit, tier).await;
        Ok(Response::new(convert::circuit(
            &circuit.map_err(refusal::status_of_error)?,
        )))
    }

    async fn evict(&self, request: Request<proto::EvictRequest>) -> Answer<proto::EvictResponse> {
        require_operator(&request)?;
        let circuit = convert::circuit_ref(&request.get_ref().circuit)?;
        let bytes = self
            .handle
            .evict(circuit)
            .await
            .map_err(refusal::status_of_error)?;
        Ok(Response::new(proto::EvictResponse { bytes }))
    }

    async fn pin(&self, request: Request<proto::PinRequest>) -> Answer<proto::Circuit> {
        self.require_private()?;
        let proto::PinRequest { circuit, pinned } = request.into_inner();
        let circuit = convert::circuit_ref(&circuit)?;
        let circuit = self.handle.pin(circuit, pinned).await;
        Ok(Response::new(convert::circuit(
            &circuit.map_err(refusal::status_of_error)?,
        )))
    }
}
