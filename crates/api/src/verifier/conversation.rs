//! One client's requests and their answers, independent of their encoding.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{FuturesUnordered, StreamExt};
use proofmill_shutdown::{Level, Shutdown};
use proofmill_verifier::{Handle, Request};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::message::{Answer, AnswerBody, KeyEntry};
use super::order::{NumberedRequest, Operation, ProofToVerify};

/// A client's conversation with a verifier.
#[derive(Clone, Debug)]
pub(super) struct Conversation {
    handle: Handle,
    peer: Peer,
    under_way: Arc<UnderWay>,
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
    /// Places for requests whose answers have not been written.
    places: Arc<Semaphore>,
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
    /// A request is malformed, and so is all that follows. The client is there, and gets its answers.
    Malformed(E),
    /// The client has gone: its requests are cancelled.
    Gone(E),
}

/// The end of a conversation that did not break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The client has sent all its requests.
    RequestsEnded,
    /// The verifier drains.
    Drained,
}

/// Requests of a conversation that have no answer yet, and their sources.
#[derive(Debug, Default)]
struct UnderWay(Mutex<HashMap<u64, Arc<str>>>);

/// Most requests of a client whose answers have not been written. A client that does not read answers is
/// not read from.
pub(super) const UNANSWERED_MAX: usize = 4096;

/// An answer to come, with its place among the unwritten ones.
type PendingAnswer = BoxFuture<'static, (Answer, OwnedSemaphorePermit)>;

/// Answers requests as soon as answers are known, until the requests end or `shutdown` reaches
/// [`Level::Drain`]; then accepted requests are still answered. If the client goes, its requests are
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
    let asking = conversation.clone().read(requests, sender, shutdown);
    let (asked, answered) = tokio::join!(asking, async {
        let answered = write(answers, receiver).await;
        // Requests without an answer by now have no reader.
        conversation.cancel_all();
        answered
    });
    let end = asked?;
    answered.map_err(Into::into)?;
    Ok(end)
}

// === impl Peer ===

impl Peer {
    /// A conversation of a client, which is a source of its own and has places of its own.
    pub fn new(client: &str, conversation: &str) -> Self {
        let conversation: Arc<str> = conversation.into();
        Self {
            client: client.into(),
            source: conversation.clone(),
            conversation,
            places: Arc::new(Semaphore::new(UNANSWERED_MAX)),
        }
    }

    /// A conversation of a client that may have several, which share one source and its places.
    pub(super) fn of_client(client: Arc<str>, conversation: &str, places: Arc<Semaphore>) -> Self {
        Self {
            client,
            source: "".into(),
            conversation: conversation.into(),
            places,
        }
    }
}

// === impl Conversation ===

impl Conversation {
    pub(super) fn new(handle: Handle, peer: Peer) -> Self {
        Self {
            handle,
            peer,
            under_way: Arc::default(),
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
            let place = self.place().await;
            let answer = self.answer(request).await;
            // The receiver is gone if no answers can be written.
            let _ = answers
                .send(Box::pin(async move { (answer.await, place) }))
                .await;
        }
    }

    /// Waits until the client may have one more request without an answer.
    pub(super) async fn place(&self) -> OwnedSemaphorePermit {
        let place = self.peer.places.clone().acquire_owned().await;
        place.expect("the semaphore is never closed")
    }

    /// Accepts a request, and returns the future of its answer.
    pub(super) async fn answer(&self, request: NumberedRequest) -> BoxFuture<'static, Answer> {
        let NumberedRequest {
            request_id,
            operation,
        } = request;
        let client = &self.peer.client;
        let body = match operation {
            Err(reason) => return at_once(Answer::refused(request_id, reason)),
            Ok(Operation::Verify(proof)) => return self.verify(request_id, proof).await,
            Ok(Operation::Cancel(request)) => {
                let source = self.under_way.get().get(&request).cloned();
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
                    Err(error) => return at_once(Answer::refused(request_id, error)),
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
        at_once(Answer::new(request_id, body))
    }

    async fn verify(&self, request_id: u64, proof: ProofToVerify) -> BoxFuture<'static, Answer> {
        let request = self.request(request_id, proof);
        let source = request.source.clone();
        let before = self.under_way.get().insert(request_id, source);
        if let Some(other) = before {
            self.under_way.get().insert(request_id, other);
            let reason =
                format!("request {request_id} is under way: give each request a new number");
            return at_once(Answer::refused(request_id, reason));
        }
        // No further request is read until there is room for this one.
        let pending = match self.handle.submit(request).await {
            Ok(pending) => pending,
            Err(error) => {
                self.under_way.get().remove(&request_id);
                return at_once(Answer::refused(request_id, error));
            }
        };
        let under_way = self.under_way.clone();
        Box::pin(async move {
            let verdict = pending.await;
            under_way.get().remove(&request_id);
            Answer::verdict(request_id, &verdict)
        })
    }

    fn request(&self, request_id: u64, proof: ProofToVerify) -> Request {
        Request {
            client: self.peer.client.clone(),
            source: match &*proof.source {
                "" => self.peer.source.clone(),
                source => source.into(),
            },
            id: self.id(request_id),
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
        let under_way: Vec<_> = self.under_way.get().drain().collect();
        for (request, source) in under_way {
            self.cancel(&source, request);
        }
    }

    fn cancel(&self, source: &str, request: u64) -> bool {
        self.handle
            .cancel(&self.peer.client, source, &self.id(request))
    }

    /// The name of a request, unique among those of its source, which may come by several conversations.
    fn id(&self, request: u64) -> Arc<str> {
        format!("{} {request}", self.peer.conversation).into()
    }
}

// === impl UnderWay ===

impl UnderWay {
    fn get(&self) -> MutexGuard<'_, HashMap<u64, Arc<str>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn at_once(answer: Answer) -> BoxFuture<'static, Answer> {
    Box::pin(std::future::ready(answer))
}

/// Writes answers as they become known, until no more can come or the client no longer reads.
async fn write<A: AnswerSink>(
    mut answers: A,
    mut asked: mpsc::Receiver<PendingAnswer>,
) -> Result<(), A::Error> {
    let mut pending = FuturesUnordered::<PendingAnswer>::new();
    let mut is_open = true;
    while is_open || !pending.is_empty() {
        let (answer, _place) = tokio::select! {
            answer = asked.recv(), if is_open => {
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
        while let Some(Some((answer, _place))) = pending.next().now_or_never() {
            answers.write(answer).await?;
        }
        answers.flush().await?;
    }
    Ok(())
}
