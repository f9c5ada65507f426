//! One client's requests and their answers.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{FuturesUnordered, StreamExt};
use proofmill_shutdown::{Level, Shutdown};
use proofmill_verifier::{Handle, KeyDigest, Request};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufWriter};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::frame::{FrameError, Frames, write_frame};
use super::message::{Answer, AnswerBody, Ask, AskBody, KeyEntry, decode_ask};

/// A client's conversation with a verifier.
#[derive(Clone, Debug)]
struct Conversation {
    handle: Handle,
    peer: Peer,
    under_way: Arc<UnderWay>,
}

/// The other end of a conversation.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The client whose keys are used.
    pub client: Arc<str>,
    /// The name of this conversation among the client's: what numbers its requests, and is their
    /// source where they name none.
    pub conversation: Arc<str>,
}

/// Requests of a conversation that have no answer yet, and their sources.
#[derive(Debug, Default)]
struct UnderWay(Mutex<HashMap<u64, Arc<str>>>);

/// Requests of a conversation whose answers have not been written, at most: whoever reads none is not
/// read either.
const UNANSWERED_MAX: usize = 4096;

/// An answer to come, with its place among those not written.
type ToCome = BoxFuture<'static, (Answer, OwnedSemaphorePermit)>;

/// Answers everything that is asked on a stream, in whatever order the answers come, until it ends or
/// `shutdown` says [`Level::Drain`]; then what was accepted is answered. If the stream breaks, what was
/// asked on it is taken back.
///
/// # Errors
///
/// [`FrameError`] for a stream that breaks, or that has no frames.
pub async fn converse(
    handle: Handle,
    peer: Peer,
    reader: impl AsyncRead + Unpin,
    writer: impl AsyncWrite + Unpin,
    shutdown: Shutdown,
) -> Result<(), FrameError> {
    let conversation = Conversation {
        handle,
        peer,
        under_way: Arc::default(),
    };
    let (sender, receiver) = mpsc::channel(1);
    let places = Arc::new(Semaphore::new(UNANSWERED_MAX));
    let asking = conversation.clone().read(reader, sender, places, shutdown);
    let answering = write(BufWriter::new(writer), receiver);
    let (asked, answered) = tokio::join!(asking, async {
        let answered = answering.await;
        if answered.is_err() {
            conversation.take_back();
        }
        answered
    });
    asked?;
    answered?;
    Ok(())
}

// === impl Conversation ===

impl Conversation {
    async fn read(
        self,
        reader: impl AsyncRead + Unpin,
        answers: mpsc::Sender<ToCome>,
        places: Arc<Semaphore>,
        mut shutdown: Shutdown,
    ) -> Result<(), FrameError> {
        let mut frames = Frames::new(reader);
        loop {
            // What was read of a frame that is not complete is nothing that was accepted.
            let frame = tokio::select! {
                frame = frames.next() => frame,
                () = shutdown.reached(Level::Drain) => return Ok(()),
                // Nobody writes answers any more.
                () = answers.closed() => return Ok(()),
            };
            let answer = match frame {
                Ok(None) => return Ok(()),
                Ok(Some(frame)) => self.answer(frame).await,
                Err(error @ FrameError::TooLong(_)) => {
                    // Nothing after it can be told apart; what was asked before is answered.
                    let answer = Answer::refused(0, &error);
                    self.send(&answers, &places, at_once(answer)).await;
                    return Err(error);
                }
                Err(error) => {
                    self.take_back();
                    return Err(error);
                }
            };
            self.send(&answers, &places, answer).await;
        }
    }

    async fn send(
        &self,
        answers: &mpsc::Sender<ToCome>,
        places: &Arc<Semaphore>,
        answer: BoxFuture<'static, Answer>,
    ) {
        // The semaphore is never closed; the receiver is gone once nothing can be written.
        if let Ok(place) = places.clone().acquire_owned().await {
            let _ = answers
                .send(Box::pin(async move { (answer.await, place) }))
                .await;
        }
    }

    /// The answer to a frame, once what it asks for is accepted.
    async fn answer(&self, frame: Bytes) -> BoxFuture<'static, Answer> {
        let Ask {
            request_id, body, ..
        } = match decode_ask(&frame) {
            Ok(ask) => ask,
            Err((request_id, error)) => return at_once(Answer::refused(request_id, error)),
        };
        let count = |count: u64| at_once(Answer::new(request_id, AnswerBody::Count(count)));
        match body {
            AskBody::Verify { .. } => self.verify(request_id, body, &frame).await,
            AskBody::Cancel { request } => {
                let source = self.under_way.get().get(&request).cloned();
                count(
                    source
                        .is_some_and(|source| self.cancel(&source, request))
                        .into(),
                )
            }
            AskBody::CancelSource { source } => {
                count(self.handle.cancel_source(&self.peer.client, source) as u64)
            }
            AskBody::AddKey { kind, key } => {
                let key = frame.slice_ref(key);
                let added = self.handle.add_key(&self.peer.client, kind, key).await;
                at_once(match added {
                    Ok(digest) => Answer::new(
                        request_id,
                        AnswerBody::Key {
                            digest: digest.to_string(),
                        },
                    ),
                    Err(error) => Answer::refused(request_id, error),
                })
            }
            AskBody::RemoveKey { key } => match key.parse() {
                Ok(digest) => count(self.handle.remove_key(&self.peer.client, digest).into()),
                Err(error) => at_once(Answer::refused(request_id, error)),
            },
            AskBody::ListKeys => {
                let keys = self.handle.keys(&self.peer.client).into_iter();
                let entries = keys.map(|key| KeyEntry {
                    digest: key.digest.to_string(),
                    kind: key.kind,
                    bytes: key.bytes as u64,
                });
                at_once(Answer::new(request_id, AnswerBody::Keys(entries.collect())))
            }
            AskBody::ListKinds => {
                let kinds = AnswerBody::Kinds(self.handle.kinds());
                at_once(Answer::new(request_id, kinds))
            }
        }
    }

    async fn verify(
        &self,
        request_id: u64,
        body: AskBody<'_>,
        frame: &Bytes,
    ) -> BoxFuture<'static, Answer> {
        let request = match self.request(request_id, body, frame) {
            Ok(request) => request,
            Err(reason) => return at_once(Answer::refused(request_id, reason)),
        };
        let source = request.source.clone();
        let before = self.under_way.get().insert(request_id, source.clone());
        if let Some(other) = before {
            self.under_way.get().insert(request_id, other);
            let reason = format!("request {request_id} is under way: number each one anew");
            return at_once(Answer::refused(request_id, reason));
        }
        // Nothing more is read until there is room for it.
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

    fn request(
        &self,
        request_id: u64,
        body: AskBody<'_>,
        frame: &Bytes,
    ) -> Result<Request, String> {
        let AskBody::Verify {
            kind,
            key,
            statement,
            proof,
            source,
            priority,
            deadline_ms,
        } = body
        else {
            return Err("no proof to verify".to_owned());
        };
        let key = key.map(str::parse::<KeyDigest>).transpose();
        Ok(Request {
            client: self.peer.client.clone(),
            source: match source {
                "" => self.peer.conversation.clone(),
                source => source.into(),
            },
            id: self.id(request_id),
            kind: kind.to_owned(),
            key: key.map_err(|error| error.to_string())?,
            statement: frame.slice_ref(statement),
            proof: frame.slice_ref(proof),
            priority,
            deadline: deadline_ms.map(Duration::from_millis),
        })
    }

    /// Takes back all that has no answer.
    fn take_back(&self) {
        let under_way: Vec<_> = self.under_way.get().drain().collect();
        for (request, source) in under_way {
            self.cancel(&source, request);
        }
    }

    fn cancel(&self, source: &str, request: u64) -> bool {
        self.handle
            .cancel(&self.peer.client, source, &self.id(request))
    }

    /// The name of a request among those of its source, which may come by several conversations.
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

/// Writes answers as they come, until no more can come.
async fn write(
    mut writer: BufWriter<impl AsyncWrite + Unpin>,
    mut answers: mpsc::Receiver<ToCome>,
) -> io::Result<()> {
    let mut to_come = FuturesUnordered::<ToCome>::new();
    let mut is_open = true;
    while is_open || !to_come.is_empty() {
        let (answer, _place) = tokio::select! {
            answer = answers.recv(), if is_open => {
                match answer {
                    Some(answer) => to_come.push(answer),
                    None => is_open = false,
                }
                continue;
            }
            Some(answer) = to_come.next(), if !to_come.is_empty() => answer,
        };
        write_frame(&mut writer, &answer.encode()).await?;
        // Many that come together leave together.
        while let Some(Some((answer, _place))) = to_come.next().now_or_never() {
            write_frame(&mut writer, &answer.encode()).await?;
        }
        writer.flush().await?;
    }
    Ok(())
}
