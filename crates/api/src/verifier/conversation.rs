//! One client's requests and their answers, independent of their encoding.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{FuturesUnordered, StreamExt};
use proofmill_shutdown::{Level, Shutdown};
use proofmill_verifier::{Handle, Request};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::message::{Answer, AnswerBody, KeyEntry};
use super::operation::{NumberedRequest, Operation, ProofToVerify};

/// A client's conversation with a verifier.
#[derive(Clone, Debug)]
pub(super) struct Conversation {
    handle: Handle,
    peer: Peer,
    unanswered: Arc<Unanswered>,
}

/// The other end of a conversation.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The client whose keys are used.
    client: Arc<str>,
    /// The name of this conversation among the client's, which makes its requests' numbers unique.
    conversation: Arc<str>,
    /// Source of requests that name none.
    source: Arc<str>,
    /// Permits for requests whose answers have not been written.
    permits: Arc<Semaphore>,
}

/// The incoming requests of a conversation.
pub(super) trait RequestStream: Send {
    /// The reason that no more can be read.
    type Error;

    /// The next request; none at the end.
    fn next(
        &mut self,
    ) -> impl Future<Output = Result<Option<NumberedRequest>, ReadError<Self::Error>>> + Send;
}

/// The outgoing answers of a conversation.
pub(super) trait AnswerSink: Send {
    /// The reason that no more can be written.
    type Error;

    /// Writes an answer, perhaps to a buffer.
    fn write(&mut self, answer: Answer) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Sends buffered answers.
    fn flush(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Waits until the client no longer reads, where that can be detected.
    fn closed(&mut self) -> impl Future<Output = ()> + Send;
}

/// The reason that requests end too soon.
#[derive(Debug)]
pub(super) enum ReadError<E> {
    /// A request is malformed, and nothing after it can be read. The client still gets the answers of its earlier
    /// requests.
    Malformed(E),
    /// The client has disconnected: its requests are cancelled.
    Gone(E),
}

/// The reason that a conversation ended without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The client has sent all its requests.
    RequestsEnded,
    /// The verifier drains.
    Drained,
}

/// Requests of a conversation that have no answer yet, and their sources.
#[derive(Debug, Default)]
struct Unanswered(Mutex<HashMap<u64, Arc<str>>>);

/// Most requests of a client whose answers have not been written. No further request is read from a client that does
/// not read its answers.
pub(super) const UNANSWERED_MAX: usize = 4096;

/// A future answer, with the permit of its request.
type PendingAnswer = BoxFuture<'static, (Answer, OwnedSemaphorePermit)>;

/// Answers requests as soon as answers are known, until the requests end or `shutdown` reaches
/// [`Level::Drain`]; then accepted requests are still answered. If the client disconnects, its requests are
/// cancelled.
pub(super) async fn converse_over<Q, A>(
    handle: Handle,
    peer: Peer,
    requests: Q,
    answers: A,
    shutdown: Shutdown,
) -> Result<End, Q::Error>
where
    Q: RequestStream,
    A: AnswerSink<Error: Into<Q::Error>>,
{
    let conversation = Conversation::new(handle, peer);
    let (sender, receiver) = mpsc::channel(1);
    let reading = conversation.clone().read(requests, sender, shutdown);
    let (read, answered) = tokio::join!(reading, async {
        let answered = write(answers, receiver).await;
        // Requests without an answer by now have no reader.
        conversation.cancel_all();
        answered
    });
    let end = read?;
    answered.map_err(Into::into)?;
    Ok(end)
}

// === impl Peer ===

impl Peer {
    /// A conversation of a client, which is a source of its own and has permits of its own.
    pub fn new(client: &str, conversation: &str) -> Self {
        let conversation: Arc<str> = conversation.into();
        Self {
            client: client.into(),
            source: conversation.clone(),
            conversation,
            permits: Arc::new(Semaphore::new(UNANSWERED_MAX)),
        }
    }

    /// A conversation of a client that may have several, which share one source and the permits.
    pub(super) fn of_client(client: Arc<str>, conversation: &str, permits: Arc<Semaphore>) -> Self {
        Self {
            client,
            source: "".into(),
            conversation: conversation.into(),
            permits,
        }
    }
}

// === impl Conversation ===

impl Conversation {
    pub(super) fn new(handle: Handle, peer: Peer) -> Self {
        Self {
            handle,
            peer,
            unanswered: Arc::default(),
        }
    }

    async fn read<Q: RequestStream>(
        self,
        mut requests: Q,
        answers: mpsc::Sender<PendingAnswer>,
        mut shutdown: Shutdown,
    ) -> Result<End, Q::Error> {
        loop {
            // An incomplete request was not accepted, so it may be dropped.
            let request = tokio::select! {
                request = requests.next() => request,
                () = shutdown.reached(Level::Drain) => return Ok(End::Drained),
                // No answers can be written any more.
                () = answers.closed() => {
                    self.cancel_all();
                    return Ok(End::RequestsEnded);
                }
            };
            let request = match request {
                Ok(Some(request)) => request,
                Ok(None) => return Ok(End::RequestsEnded),
                Err(ReadError::Malformed(error)) => return Err(error),
                Err(ReadError::Gone(error)) => {
                    self.cancel_all();
                    return Err(error);
                }
            };
            let permit = self.acquire_permit().await;
            let answer = self.answer(request).await;
            // The receiver is gone if no answers can be written.
            let _ = answers
                .send(Box::pin(async move { (answer.await, permit) }))
                .await;
        }
    }

    /// Waits until the client may have one more request without an answer.
    pub(super) async fn acquire_permit(&self) -> OwnedSemaphorePermit {
        let permit = self.peer.permits.clone().acquire_owned().await;
        permit.expect("the semaphore is never closed")
    }

    /// Accepts a request, and returns the future of its answer.
    pub(super) async fn answer(&self, request: NumberedRequest) -> BoxFuture<'static, Answer> {
        let NumberedRequest {
            request_id,
            operation,
        } = request;
        let client = &self.peer.client;
        let body = match operation {
            Err(reason) => return ready_answer(Answer::refused(request_id, reason)),
            Ok(Operation::Verify(proof)) => return self.verify(request_id, proof).await,
            Ok(Operation::Cancel(request)) => {
                let source = self.unanswered.lock().get(&request).cloned();
                let found = source.is_some_and(|source| self.cancel(&source, request));
                AnswerBody::Count(found.into())
            }
            Ok(Operation::CancelSource(source)) => {
                AnswerBody::Count(self.handle.cancel_source(client, &source) as u64)
            }
            Ok(Operation::AddKey { kind, key }) => {
                match self.handle.add_key(client, &kind, key).await {
                    Ok(digest) => AnswerBody::Key {
                        digest: digest.to_string(),
                    },
                    Err(error) => return ready_answer(Answer::refused(request_id, error)),
                }
            }
            Ok(Operation::RemoveKey(digest)) => {
                AnswerBody::Count(self.handle.remove_key(client, digest).into())
            }
            Ok(Operation::ListKeys) => {
                let keys = self.handle.keys(client).into_iter();
                AnswerBody::Keys(keys.map(KeyEntry::from).collect())
            }
            Ok(Operation::ListKinds) => AnswerBody::Kinds(self.handle.kinds()),
        };
        ready_answer(Answer::new(request_id, body))
    }

    async fn verify(&self, request_id: u64, proof: ProofToVerify) -> BoxFuture<'static, Answer> {
        let request = self.verification_request(request_id, proof);
        let source = request.source.clone();
        let before = self.unanswered.lock().insert(request_id, source);
        if let Some(other) = before {
            self.unanswered.lock().insert(request_id, other);
            let reason =
                format!("request {request_id} is under way: give each request a new number");
            return ready_answer(Answer::refused(request_id, reason));
        }
        // Submitting waits for room, and no further request is read meanwhile.
        let pending = match self.handle.submit(request).await {
            Ok(pending) => pending,
            Err(error) => {
                self.unanswered.lock().remove(&request_id);
                return ready_answer(Answer::refused(request_id, error));
            }
        };
        let unanswered = self.unanswered.clone();
        Box::pin(async move {
            let verdict = pending.await;
            unanswered.lock().remove(&request_id);
            Answer::verdict(request_id, &verdict)
        })
    }

    fn verification_request(&self, request_id: u64, proof: ProofToVerify) -> Request {
        Request {
            client: self.peer.client.clone(),
            source: match &*proof.source {
                "" => self.peer.source.clone(),
                source => source.into(),
            },
            id: self.unique_id(request_id),
            kind: proof.kind,
            key: proof.key,
            statement: proof.statement,
            proof: proof.proof,
            priority: proof.priority,
            deadline: proof.deadline,
        }
    }

    /// Cancels all requests without an answer.
    pub(super) fn cancel_all(&self) {
        let unanswered: Vec<_> = self.unanswered.lock().drain().collect();
        for (request, source) in unanswered {
            self.cancel(&source, request);
        }
    }

    fn cancel(&self, source: &str, request: u64) -> bool {
        self.handle
            .cancel(&self.peer.client, source, &self.unique_id(request))
    }

    /// The name of a request, unique among the requests of its source, which may have several conversations.
    fn unique_id(&self, request: u64) -> Arc<str> {
        format!("{} {request}", self.peer.conversation).into()
    }
}

// === impl Unanswered ===

impl Unanswered {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<str>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn ready_answer(answer: Answer) -> BoxFuture<'static, Answer> {
    Box::pin(std::future::ready(answer))
}

/// Writes answers as they become known, until no more can come or the client no longer reads.
async fn write<A: AnswerSink>(
    mut answers: A,
    mut accepted: mpsc::Receiver<PendingAnswer>,
) -> Result<(), A::Error> {
    let mut pending = FuturesUnordered::<PendingAnswer>::new();
    let mut is_open = true;
    while is_open || !pending.is_empty() {
        let (answer, _permit) = tokio::select! {
            answer = accepted.recv(), if is_open => {
                match answer {
                    Some(answer) => pending.push(answer),
                    None => is_open = false,
                }
                continue;
            }
            Some(answer) = pending.next(), if !pending.is_empty() => answer,
            () = answers.closed() => {
                return Ok(());
            }
        };
        answers.write(answer).await?;
        // Answers that are ready together are sent together.
        while let Some(Some((answer, _permit))) = pending.next().now_or_never() {
            answers.write(answer).await?;
        }
        answers.flush().await?;
    }
    Ok(())
}
