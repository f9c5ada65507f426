//! A sink that publishes each emitted message to a stream of a NATS server.

use futures_util::future::BoxFuture;
use proofmill_bus::{PublishError, Publisher};

use super::service::{Emitted, Sink, SinkError};
use crate::plan::Backoff;

/// Publishes each message under an id that is the same for every attempt, and waits until the
/// stream has stored it.
pub struct JetStream {
    publisher: Publisher,
    backoff: Backoff,
    /// Whether the next message may already be in the stream, put there by an earlier process, or
    /// by an attempt whose answer was lost.
    unsure: bool,
}

// === impl JetStream ===

impl JetStream {
    /// Publishes with `publisher`, which must not be used elsewhere.
    pub fn new(publisher: Publisher, backoff: Backoff) -> Self {
        Self {
            publisher,
            backoff,
            unsure: true,
        }
    }

    async fn publish(&mut self, emitted: &Emitted) -> Result<(), PublishError> {
        let key = emitted.key();
        // The stream itself detects duplicate ids within its duplicate window only.
        if self.unsure && self.publisher.last_id().await?.as_deref() == Some(&key) {
            self.unsure = false;
            return Ok(());
        }
        self.unsure = true;
        let described = emitted.described().map(|(name, value)| {
            let words = name.split('_').map(capitalized);
            let name = words.collect::<Vec<_>>().join("-");
            (format!("Proofmill-{name}"), value)
        });
        let mut headers = described.to_vec();
        if let Some(trace) = &emitted.trace {
            headers.push(("traceparent".to_owned(), trace.traceparent()));
            let state = trace.tracestate();
            headers.extend(state.map(|state| ("tracestate".to_owned(), state.to_string())));
        }
        let payload = emitted.bytes.clone();
        self.publisher.publish(&key, &headers, payload).await?;
        self.unsure = false;
        Ok(())
    }
}

fn capitalized(word: &str) -> String {
    let (first, rest) = word.split_at(1);
    format!("{}{rest}", first.to_uppercase())
}

impl Sink for JetStream {
    fn place(&self, _emitted: &Emitted) -> String {
        format!("subject {}", self.publisher.subject())
    }

    fn put<'a>(&'a mut self, emitted: &'a Emitted) -> BoxFuture<'a, Result<(), SinkError>> {
        Box::pin(async move {
            let published = self.publish(emitted).await;
            published.map_err(|error| {
                let place = self.place(emitted);
                match error {
                    error @ PublishError::Failed(_) => SinkError::new(place, error),
                    error => SinkError::refused(place, error),
                }
            })
        })
    }

    fn backoff(&self) -> Backoff {
        self.backoff
    }
}
