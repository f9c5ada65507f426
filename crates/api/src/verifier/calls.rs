//! `proofmill.verifier.v1.Verifier`: conversations over gRPC, and calls for keys.

use std::sync::Arc;
use std::time::Duration;

use proofmill_verifier::{KeyDigest, KeyError};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Response, Status, Streaming};

use super::conversation::{AnswerSink, End, ReadError, RequestStream, converse_over};
use super::message::{Answer, AnswerBody, KeyEntry, VerificationResult};
use super::operation::{NumberedRequest, Operation, ProofToVerify};
use super::port_state::{PortState, Rights};
use super::proto::verifier_server::Verifier;
use super::proto::verify_request::Ask;
use super::proto::verify_response::Answer as Reply;
use super::proto::{self, VerificationStatus};
use crate::gate::Caller;

/// Most answers of a stream that have not been sent, beside those that the connection buffers.
const ANSWERS_HELD: usize = 64;

/// The service on one listener.
pub(super) struct VerifierCalls(pub(super) Arc<PortState>);

/// The requests of a stream.
struct StreamRequests(Streaming<proto::VerifyRequest>);

/// The answers of a stream.
struct StreamAnswers(mpsc::Sender<Result<proto::VerifyResponse, Status>>);

type CallResult<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl Verifier for VerifierCalls {
    type VerifyStream = ReceiverStream<Result<proto::VerifyResponse, Status>>;

    async fn verify(
        &self,
        request: Request<Streaming<proto::VerifyRequest>>,
    ) -> CallResult<Self::VerifyStream> {
        let caller = Caller::of_call(&request)?;
        let open_call = self.0.admit()?;
        let peer = self.0.peer(&caller);
        let (handle, shutdown) = (self.0.handle.clone(), self.0.shutdown.clone());
        let (sender, receiver) = mpsc::channel(ANSWERS_HELD);
        let requests = StreamRequests(request.into_inner());
        let answers = StreamAnswers(sender.clone());
        tokio::spawn(async move {
            let ended = converse_over(handle, peer, requests, answers, shutdown).await;
            let last = match ended {
                Ok(End::RequestsEnded) => None,
                Ok(End::Drained) => Some(PortState::stopping().into()),
                Err(status) => Some(status),
            };
            if let Some(status) = last {
                // The client may have gone.
                let _ = sender.send(Err(status)).await;
            }
            drop(open_call);
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn add_key(
        &self,
        request: Request<proto::AddKeyRequest>,
    ) -> CallResult<proto::AddKeyResponse> {
        let caller = Caller::<Rights>::of_call(&request)?;
        let proto::AddKeyRequest { kind, key } = request.into_inner();
        let added = self
            .0
            .handle
            .add_key(PortState::client(&caller), &kind, key);
        let digest = added.await.map_err(|error| match error {
            KeyError::TooMany { .. } => Status::failed_precondition(error.to_string()),
            error => Status::invalid_argument(error.to_string()),
        })?;
        Ok(Response::new(proto::AddKeyResponse {
            digest: digest.to_string(),
        }))
    }

    async fn list_keys(
        &self,
        request: Request<proto::ListKeysRequest>,
    ) -> CallResult<proto::ListKeysResponse> {
        let caller = Caller::<Rights>::of_call(&request)?;
        let keys = self.0.handle.keys(PortState::client(&caller)).into_iter();
        let keys = keys.map(KeyEntry::from).map(|key| proto::Key {
            digest: key.digest,
            kind: key.kind,
            bytes: key.bytes,
        });
        Ok(Response::new(proto::ListKeysResponse {
            keys: keys.collect(),
        }))
    }

    async fn remove_key(
        &self,
        request: Request<proto::RemoveKeyRequest>,
    ) -> CallResult<proto::RemoveKeyResponse> {
        let caller = Caller::<Rights>::of_call(&request)?;
        let digest: KeyDigest = request
            .get_ref()
            .digest
            .parse()
            .map_err(|error| Status::invalid_argument(format!("`digest`: {error}")))?;
        let removed = self.0.handle.remove_key(PortState::client(&caller), digest);
        Ok(Response::new(proto::RemoveKeyResponse { removed }))
    }

    async fn list_kinds(
        &self,
        _: Request<proto::ListKindsRequest>,
    ) -> CallResult<proto::ListKindsResponse> {
        let kinds = self.0.handle.kinds();
        Ok(Response::new(proto::ListKindsResponse { kinds }))
    }

    async fn cancel_source(
        &self,
        request: Request<proto::CancelSourceRequest>,
    ) -> CallResult<proto::CancelSourceResponse> {
        let caller = Caller::<Rights>::of_call(&request)?;
        let source = &request.get_ref().source;
        let count = self
            .0
            .handle
            .cancel_source(PortState::client(&caller), source);
        Ok(Response::new(proto::CancelSourceResponse {
            count: count as u64,
        }))
    }
}

// === impl StreamRequests ===

impl RequestStream for StreamRequests {
    type Error = Status;

    async fn next(&mut self) -> Result<Option<NumberedRequest>, ReadError<Status>> {
        match self.0.message().await {
            Ok(message) => Ok(message.map(read_request)),
            // Malformed, too large and late messages are detected by this server; all other errors are failures of
            // the connection.
            Err(status) => Err(match status.code() {
                Code::InvalidArgument | Code::ResourceExhausted | Code::DeadlineExceeded => {
                    ReadError::Malformed(status)
                }
                _ => ReadError::Gone(status),
            }),
        }
    }
}

fn read_request(message: proto::VerifyRequest) -> NumberedRequest {
    let proto::VerifyRequest { request_id, ask } = message;
    let operation = match ask {
        Some(Ask::Proof(proof)) => proof_to_verify(proof).map(Operation::Verify),
        Some(Ask::Cancel(request)) => Ok(Operation::Cancel(request)),
        Some(Ask::CancelSource(source)) => Ok(Operation::CancelSource(source)),
        None => Err("not a request: it has neither `proof`, `cancel` nor `cancel_source`".into()),
    };
    NumberedRequest {
        request_id,
        operation,
    }
}

fn proof_to_verify(proof: proto::Proof) -> Result<ProofToVerify, String> {
    let key = match &*proof.key {
        "" => None,
        digest => {
            let digest = digest.parse();
            Some(digest.map_err(|error| format!("`key`: {error}"))?)
        }
    };
    let priority = u8::try_from(proof.priority)
        .map_err(|_| format!("`priority`: {} is not within 0 to 255", proof.priority))?;
    Ok(ProofToVerify {
        kind: proof.kind,
        key,
        statement: proof.statement,
        proof: proof.proof,
        source: proof.source,
        priority,
        deadline: proof.deadline_ms.map(Duration::from_millis),
    })
}

// === impl StreamAnswers ===

impl AnswerSink for StreamAnswers {
    type Error = Status;

    async fn write(&mut self, answer: Answer) -> Result<(), Status> {
        let sent = self.0.send(Ok(response(answer))).await;
        sent.map_err(|_| Status::cancelled("nobody reads the answers"))
    }

    async fn flush(&mut self) -> Result<(), Status> {
        Ok(())
    }

    async fn closed(&mut self) {
        self.0.closed().await;
    }
}

fn response(answer: Answer) -> proto::VerifyResponse {
    let reply = match answer.body {
        AnswerBody::Result(result) => Reply::Result(result_message(result)),
        AnswerBody::Count(count) => Reply::Count(count),
        AnswerBody::Refused { error_message } => Reply::Refused(error_message),
        // No request of a stream has such an answer.
        AnswerBody::Key { .. } | AnswerBody::Keys(_) | AnswerBody::Kinds(_) => {
            Reply::Refused("the request is not possible in a stream".to_owned())
        }
    };
    proto::VerifyResponse {
        request_id: answer.request_id,
        answer: Some(reply),
    }
}

fn result_message(result: VerificationResult) -> proto::VerificationResult {
    let status = match result.status() {
        Some(super::ResultStatus::Valid) => VerificationStatus::Valid,
        Some(super::ResultStatus::Invalid) => VerificationStatus::Invalid,
        // A verdict with an unknown status is sent as unavailable.
        Some(super::ResultStatus::Unavailable) | None => VerificationStatus::Unavailable,
    };
    proto::VerificationResult {
        status: status.into(),
        error_message: result.error_message,
        time_in_queue_ms: result.time_in_queue_ms,
        time_in_verify_ms: result.time_in_verify_ms,
        batch_failure_count: result.batch_failure_count,
        batch_size: result.batch_size,
    }
}
