//! A message delivered to this process, and the answers to its delivery.

use std::time::Duration;

use async_nats::header::NATS_MESSAGE_ID;
use async_nats::jetstream::message::Acker;
use async_nats::jetstream::{AckKind, Message};
use bytes::Bytes;
use proofmill_trace::TraceContext;

use super::trace::context_of;

/// Most tries of an acknowledgement that the server does not confirm.
const ATTEMPTS: u32 = 5;

/// A message delivered to this process.
pub(crate) struct Delivery {
    pub(crate) payload: Bytes,
    /// The subject.
    pub(crate) queue: String,
    /// The sequence number of the message in the stream.
    pub(crate) sequence: u64,
    /// The number of this delivery, from 1.
    pub(crate) delivered: u64,
    /// Time of storage, in nanoseconds since 1970. It tells the message from one with the same sequence
    /// number in an earlier stream of that name.
    pub(crate) stored: i128,
    /// The id that it was published with.
    pub(crate) id: Option<String>,
    /// The trace context that it came with.
    pub(crate) trace: Option<TraceContext>,
    acker: Acker,
}

// === impl Delivery ===

impl Delivery {
    pub(super) fn new(message: Message) -> Result<Self, String> {
        let (sequence, delivered, stored) = {
            let info = message.info().map_err(|error| error.to_string())?;
            let delivered = u64::try_from(info.delivered).unwrap_or(1);
            (
                info.stream_sequence,
                delivered,
                info.published.unix_timestamp_nanos(),
            )
        };
        let (message, acker) = message.split();
        let id = message.headers.as_ref().and_then(|headers| {
            let id = headers.get(NATS_MESSAGE_ID)?;
            Some(id.as_str().to_owned())
        });
        let trace = message.headers.as_ref().and_then(context_of);
        Ok(Self {
            payload: message.payload,
            queue: message.subject.to_string(),
            sequence,
            delivered,
            stored,
            id,
            trace,
            acker,
        })
    }

    /// Identifier of the message's trace, for log lines.
    pub(crate) fn trace_id(&self) -> Option<String> {
        let trace = self.trace.as_ref()?.trace();
        Some(trace.to_string())
    }

    /// Acknowledges the message, and waits until the server confirms.
    pub(crate) async fn ack(&self) {
        for attempt in 1..=ATTEMPTS {
            match self.acker.double_ack().await {
                Ok(()) => return,
                Err(error) => {
                    tracing::warn!(queue = self.queue, sequence = self.sequence, attempt, %error,
                        "acknowledgement not confirmed");
                }
            }
        }
        // The message comes again; its outputs are recognised by their ids.
    }

    /// Acknowledges the message, and returns before the server confirms.
    pub(crate) async fn ack_soon(&self) {
        self.say(AckKind::Ack).await;
    }

    /// Extends the acknowledgement deadline by another ACK_WAIT.
    pub(crate) async fn progress(&self) {
        self.say(AckKind::Progress).await;
    }

    /// Hands the message back, to be delivered again after `delay`.
    pub(crate) async fn hand_back(&self, delay: Option<Duration>) {
        self.say(AckKind::Nak(delay)).await;
    }

    async fn say(&self, kind: AckKind) {
        // Without a connection the server delivers the message again after ACK_WAIT.
        if let Err(error) = self.acker.ack_with(kind).await {
            tracing::debug!(queue = self.queue, sequence = self.sequence, %error, "not said");
        }
    }
}
