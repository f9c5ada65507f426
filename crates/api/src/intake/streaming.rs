//! Messages over gRPC, single or in a stream.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use proofmill_orchestrator::source::SourceMessage;
use proofmill_trace::TraceContext;
use serde_json::value::RawValue;
use tonic::{Request, Response, Status, Streaming};

use super::proto::intake_server::Intake;
use super::proto::submit_stream_response::Told;
use super::proto::{
    Outcome, Refusal, SubmitRequest, SubmitResponse, SubmitStreamRequest, SubmitStreamResponse,
};
use super::queues::Queues;
use super::taker::{AT_ONCE, Taker};
use crate::gate::Caller;
use crate::grpc::retry_after;
use crate::traces::caller_of;
use crate::types::SubmitAnswer;

/// The gRPC service.
pub(super) struct IntakeService {
    taker: Arc<Taker>,
}

// === impl IntakeService ===

impl IntakeService {
    pub(super) fn new(taker: Arc<Taker>) -> Self {
        Self { taker }
    }
}

#[tonic::async_trait]
impl Intake for IntakeService {
    async fn submit(
        &self,
        request: Request<SubmitRequest>,
    ) -> Result<Response<SubmitResponse>, Status> {
        let caller = Caller::<Queues>::of_call(&request)?;
        let trace = caller_of(request.metadata().as_ref());
        let taken = take(&self.taker, &caller, (request.into_inner(), trace)).await?;
        Ok(Response::new(taken))
    }

    type SubmitStreamStream =
        Pin<Box<dyn Stream<Item = Result<SubmitStreamResponse, Status>> + Send>>;

    async fn submit_stream(
        &self,
        request: Request<Streaming<SubmitStreamRequest>>,
    ) -> Result<Response<Self::SubmitStreamStream>, Status> {
        let taker = self.taker.clone();
        let caller = Caller::<Queues>::of_call(&request)?;
        let trace = caller_of(request.metadata().as_ref());
        let answers = request.into_inner().map(move |message| {
            let (taker, caller, trace) = (taker.clone(), caller.clone(), trace.clone());
            async move {
                // A malformed message ends the stream.
                let SubmitStreamRequest { message } = message?;
                let taken = match message {
                    Some(message) => take(&taker, &caller, (message, trace)).await,
                    None => Err(Status::invalid_argument("there is no message in it")),
                };
                Ok(stream_response(taken))
            }
        });
        Ok(Response::new(Box::pin(answers.buffered(AT_ONCE))))
    }
}

/// Takes a message, and waits until it is durable.
async fn take(
    taker: &Taker,
    caller: &Caller<Queues>,
    (request, trace): (SubmitRequest, Option<Arc<TraceContext>>),
) -> Result<SubmitResponse, Status> {
    let queue = taker.submissions.queue(&request.queue);
    let queue = queue.map_err(|error| Status::not_found(error.to_string()))?;
    caller.check(taker.submissions.plan(), queue)?;
    let message =
        message(request).map_err(|why| Status::invalid_argument(format!("the message: {why}")))?;
    let message = SourceMessage {
        caller: trace,
        ..message
    };
    let room = taker.bodies.room(message.bytes.len()).await?;
    let (_, answer) = taker.take(queue, message, room, taker.until()).await?;
    let (outcome, same) = match answer {
        SubmitAnswer::Accepted => (Outcome::Accepted, None),
        SubmitAnswer::Duplicate { same } => (Outcome::Duplicate, same),
        SubmitAnswer::Rejected { why } => {
            return Err(Status::failed_precondition(format!(
                "it is in the dead-letter queue: {why}"
            )));
        }
        SubmitAnswer::Dead { task, why } => {
            return Err(Status::failed_precondition(format!(
                "task {task} is in the dead-letter queue: {why}; see `proofmill dlq`"
            )));
        }
    };
    Ok(SubmitResponse {
        outcome: outcome.into(),
        same,
    })
}

fn message(request: SubmitRequest) -> Result<SourceMessage, String> {
    let SubmitRequest {
        queue: _,
        block,
        last,
        part,
        payload,
        requires,
    } = request;
    let payload = trimmed(&payload).map_err(|error| format!("`payload` is no JSON: {error}"))?;
    let requires = requires.map(|it| it.labels.into_iter().collect());
    let blocks = (block, last.unwrap_or(block));
    SourceMessage::of_json(blocks, part.as_deref(), payload, requires)
}

/// JSON without surrounding white space, which comparisons ignore.
fn trimmed(json: &Bytes) -> Result<Bytes, serde_json::Error> {
    let value: &RawValue = serde_json::from_slice(json)?;
    Ok(json.slice_ref(value.get().as_bytes()))
}

fn stream_response(taken: Result<SubmitResponse, Status>) -> SubmitStreamResponse {
    let told = match taken {
        Ok(taken) => Told::Taken(taken),
        Err(status) => Told::Refused(Refusal {
            code: status.code().into(),
            why: status.message().to_owned(),
            retry_after_ms: retry_after(&status)
                .map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
        }),
    };
    SubmitStreamResponse { told: Some(told) }
}
