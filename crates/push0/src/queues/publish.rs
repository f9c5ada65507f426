//! Publishing, repeated until the stream has stored the message.

use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::{Context, ErrorCode};
use bytes::Bytes;
use proofmill_orchestrator::shutdown::{Level, Shutdown};

use super::{Backoff, Delivery, Streams, add_trace, with_sources};
use crate::error::RunError;

/// Longest error text in a header of a dead letter, in bytes.
const MAX_ERROR: usize = 1024;

/// Publishes to one queue, and dead-letters messages that cannot be processed.
#[derive(Clone)]
pub(crate) struct Outgoing {
    context: Context,
    streams: Streams,
    stream: String,
    queue: Option<String>,
    dead_letters: String,
    shutdown: Shutdown,
}

/// The reason that a message was not published.
#[derive(Debug)]
pub(crate) enum PublishError {
    /// The message is too large, and can never be published.
    Never(String),
    /// The process was told to stop during a try.
    Stopped,
}

// === impl Outgoing ===

impl Outgoing {
    /// Ensures that `stream` holds `queue`, and that a stream holds the dead letters.
    pub(crate) async fn open(
        context: &Context,
        stream: &str,
        queue: Option<&str>,
        dead_letters: String,
        shutdown: Shutdown,
    ) -> Result<Self, RunError> {
        let outgoing = Self {
            context: context.clone(),
            streams: Streams::new(context.clone()),
            stream: stream.to_owned(),
            queue: queue.map(str::to_owned),
            dead_letters,
            shutdown,
        };
        outgoing.ensure().await?;
        Ok(outgoing)
    }

    async fn ensure(&self) -> Result<(), RunError> {
        let queues: Vec<String> = self.queue.iter().cloned().collect();
        // A stream without subjects would get its own name as a subject.
        let queues = if queues.is_empty() {
            vec![self.dead_letters.clone()]
        } else {
            queues
        };
        let stream = self.streams.ensure(&self.stream, &queues).await?;
        self.streams
            .ensure_dead_letters(&stream, &self.dead_letters)
            .await
    }

    /// The queue to which messages are published; `None` if only dead letters are.
    pub(crate) fn queue(&self) -> Option<&str> {
        self.queue.as_deref()
    }

    /// Publishes to the queue under `id`, and tries until the message is stored. Does nothing without a
    /// queue.
    pub(crate) async fn publish(
        &self,
        payload: Bytes,
        id: &str,
        headers: HeaderMap,
    ) -> Result<(), PublishError> {
        match self.queue.clone() {
            Some(queue) => self.send(queue, payload, id, headers).await,
            None => Ok(()),
        }
    }

    /// Publishes a message unchanged to the dead-letter queue, with the error and its trace context in its headers.
    pub(crate) async fn dead_letter(&self, of: &Delivery, error: &str) -> Result<(), PublishError> {
        let mut shown: String = error
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        if shown.len() > MAX_ERROR {
            let cut = (0..=MAX_ERROR).rev().find(|&at| shown.is_char_boundary(at));
            shown.truncate(cut.unwrap_or(0));
        }
        tracing::error!(
            queue = of.queue,
            sequence = of.sequence,
            deliveries = of.delivered,
            to = self.dead_letters,
            trace_id = of.trace_id(),
            error = shown,
            "dead letter"
        );
        let mut headers = HeaderMap::new();
        headers.insert("Proofmill-Error", shown);
        headers.insert("Proofmill-Queue", of.queue.as_str());
        headers.insert("Proofmill-Sequence", of.sequence.to_string());
        headers.insert("Proofmill-Deliveries", of.delivered.to_string());
        add_trace(&mut headers, of.trace.as_ref());
        let id = super::message_id(&[
            b"dead letter",
            self.dead_letters.as_bytes(),
            of.queue.as_bytes(),
            &of.sequence.to_le_bytes(),
            &of.stored.to_le_bytes(),
        ]);
        self.send(self.dead_letters.clone(), of.payload.clone(), &id, headers)
            .await
    }

    async fn send(
        &self,
        queue: String,
        payload: Bytes,
        id: &str,
        headers: HeaderMap,
    ) -> Result<(), PublishError> {
        let mut shutdown = self.shutdown.clone();
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(10));
        let attempts = async {
            loop {
                // The id is set last, since the builder's `headers` replaces what was set before.
                let message = PublishMessage::build()
                    .payload(payload.clone())
                    .headers(headers.clone())
                    .message_id(id);
                let sent = async {
                    self.context
                        .send_publish(queue.clone(), message)
                        .await?
                        .await
                };
                let error = match sent.await {
                    Ok(_) => return Ok(()),
                    Err(error) => error,
                };
                let why = with_sources(&error);
                if is_too_large(&error) {
                    return Err(PublishError::Never(format!(
                        "its output of {} bytes is over what the server or the stream takes: {why}",
                        payload.len()
                    )));
                }
                tracing::warn!(queue, why, "not stored; tried again");
                if error.kind() == PublishErrorKind::StreamNotFound
                    && let Err(error) = self.ensure().await
                {
                    tracing::warn!(%error, "no stream");
                }
                backoff.wait().await;
            }
        };
        tokio::select! {
            biased;
            published = attempts => published,
            () = shutdown.reached(Level::Stop) => Err(PublishError::Stopped),
        }
    }
}

fn is_too_large(error: &async_nats::jetstream::context::PublishError) -> bool {
    if error.kind() == PublishErrorKind::MaxPayloadExceeded {
        return true;
    }
    let source = std::error::Error::source(error);
    let server = source.and_then(|source| source.downcast_ref::<async_nats::jetstream::Error>());
    server.is_some_and(|server| server.error_code() == ErrorCode::STREAM_MESSAGE_EXCEEDS_MAXIMUM)
}
