//! A message that was delivered to this process, and what becomes of it.

use std::time::Duration;

use async_nats::header::NATS_MESSAGE_ID;
use async_nats::jetstream::message::Acker;
use async_nats::jetstream::{AckKind, Message};
use bytes::Bytes;

/// How often an acknowledgement is tried again that the server did not confirm.
const ATTEMPTS: u32 = 5;

/// A message that was delivered to this process.
pub(crate) struct Delivery {
    pub(crate) payload: Bytes,
    /// The subject.
    pub(crate) queue: String,
    /// Its place in the stream.
    pub(crate) sequence: u64,
    /// Which delivery this is, from 1.
    pub(crate) delivered: u64,
    /// When it was stored, in nanoseconds since 1970: tells it from the message that had its place
    /// in an earlier stream of that name.
    pub(crate) stored: i128,
    /// The id that it was published with.
    pub(crate) id: Option<String>,
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
        Ok(Self {
            payload: message.payload,
            queue: message.subject.to_string(),
            sequence,
            delivered,
            stored,
            id,
            acker,
        })
    }

    /// Says that it is done with, and waits until the server knows.
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
        // It comes again; its outputs are known by their ids.
    }

    /// Says that it is done with. Returns before the server knows.
    pub(crate) async fn ack_soon(&self) {
        self.say(AckKind::Ack).await;
    }

    /// Says that it is being worked on: the server waits for another ACK_WAIT.
    pub(crate) async fn progress(&self) {
        self.say(AckKind::Progress).await;
    }

    /// Hands it back, to be delivered again after `delay`.
    pub(crate) async fn hand_back(&self, delay: Option<Duration>) {
        self.say(AckKind::Nak(delay)).await;
    }

    async fn say(&self, kind: AckKind) {
        // Without a connection the server delivers it again when ACK_WAIT is over.
        if let Err(error) = self.acker.ack_with(kind).await {
            tracing::debug!(queue = self.queue, sequence = self.sequence, %error, "not said");
        }
    }
}
