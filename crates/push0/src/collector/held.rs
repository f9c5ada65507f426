//! Messages that wait for the rest of their group.

use std::collections::HashMap;
use std::time::Duration;

use async_nats::jetstream::stream::Stream;
use bytes::Bytes;
use proofmill_trace::TraceContext;
use tokio::time::Instant;

use crate::queues::{Delivery, with_sources};

/// Most bytes of payloads, and of trace states, kept in memory. Further payloads are read from the stream again when
/// their group is complete: unacknowledged messages stay in the stream. Further trace states are dropped.
pub(super) const MAX_BYTES: usize = 256 << 20;

/// A waiting message.
pub(super) struct Held {
    pub(super) delivery: Delivery,
    pub(super) since: Instant,
    kept: bool,
}

/// The waiting messages, by sequence number.
pub(super) struct Waiting {
    messages: HashMap<u64, Held>,
    bytes: usize,
    most_bytes: usize,
}

// === impl Waiting ===

impl Waiting {
    /// Makes an empty collection that keeps at most `most_bytes` bytes of payloads in memory.
    pub(super) fn new(most_bytes: usize) -> Self {
        Self {
            messages: HashMap::new(),
            bytes: 0,
            most_bytes,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    pub(super) fn get(&self, sequence: u64) -> Option<&Held> {
        self.messages.get(&sequence)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Held> {
        self.messages.values()
    }

    pub(super) fn insert(&mut self, mut delivery: Delivery) {
        let size = size_of(&delivery);
        let kept = self.bytes + size <= self.most_bytes;
        delivery.payload = if kept {
            self.bytes += size;
            // A copy, since the delivered payload is a slice of a larger buffer.
            Bytes::copy_from_slice(&delivery.payload)
        } else {
            delivery.trace = delivery.trace.map(TraceContext::without_state);
            Bytes::new()
        };
        let since = Instant::now();
        self.messages.insert(
            delivery.sequence,
            Held {
                delivery,
                since,
                kept,
            },
        );
    }

    /// Replaces the delivery of a message that came again: from now on acknowledgements answer this one.
    pub(super) fn renew(&mut self, mut delivery: Delivery) {
        if let Some(held) = self.messages.get_mut(&delivery.sequence) {
            delivery.payload = held.delivery.payload.clone();
            delivery.trace = held.delivery.trace.clone();
            held.delivery = delivery;
        }
    }

    pub(super) fn remove(&mut self, sequence: u64) -> Option<Delivery> {
        let held = self.messages.remove(&sequence)?;
        if held.kept {
            self.bytes -= size_of(&held.delivery);
        }
        Some(held.delivery)
    }

    /// Arrival time of the youngest of these messages.
    pub(super) fn youngest(&self, sequences: &[u64]) -> Option<Instant> {
        let held = sequences.iter().filter_map(|sequence| self.get(*sequence));
        held.map(|held| held.since).max()
    }

    /// The trace context that a group of these messages continues: that of the first that has one.
    pub(super) fn trace(&self, sequences: &[u64]) -> Option<&TraceContext> {
        let mut held = sequences.iter().filter_map(|sequence| self.get(*sequence));
        held.find_map(|held| held.delivery.trace.as_ref())
    }

    /// The payload of a waiting message.
    pub(super) async fn payload(&self, sequence: u64, stream: &Stream) -> Result<Bytes, String> {
        let held = self.get(sequence).ok_or("it is not held")?;
        if held.kept {
            return Ok(held.delivery.payload.clone());
        }
        let message = stream.get_raw_message(sequence).await;
        Ok(message.map_err(|error| with_sources(&error))?.payload)
    }

    /// Time that a group may wait for another member. It is `period`, doubled for each further delivery of
    /// its members, up to 30 s: otherwise a slow group would be handed back again and again.
    pub(super) fn patience(&self, sequences: &[u64], period: Duration) -> Duration {
        const LONGEST: Duration = Duration::from_secs(30);
        let held = sequences.iter().filter_map(|sequence| self.get(*sequence));
        let deliveries = held.map(|held| held.delivery.delivered).max().unwrap_or(1);
        let doublings = u32::try_from(deliveries.saturating_sub(1))
            .unwrap_or(u32::MAX)
            .min(16);
        (period * 2_u32.pow(doublings)).min(LONGEST.max(period))
    }
}

/// Bytes of a message that count for the limit.
fn size_of(delivery: &Delivery) -> usize {
    let trace = delivery.trace.as_ref();
    let state = trace.and_then(TraceContext::tracestate);
    delivery.payload.len() + state.map_or(0, |state| state.len())
}

#[cfg(test)]
mod tests {
    use async_nats::jetstream;

    use super::*;
    use crate::queues::{Consumer, ConsumerOptions, Streams};

    const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    /// The next message. A request for one ends without it if the machine stalls.
    async fn next(consumer: &Consumer) -> Delivery {
        let begun = Instant::now();
        loop {
            if let Ok(Some(delivery)) = consumer.next().await {
                return delivery;
            }
            assert!(begun.elapsed() < Duration::from_secs(90), "no message");
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn messages_that_do_not_fit_in_memory_are_read_again() {
        let nats = proofmill_nats_server::NatsServer::start();
        let client = async_nats::connect(nats.url()).await.unwrap();
        let context = jetstream::new(client);
        let queue = "s.q".to_owned();
        let streams = Streams::new(context.clone());
        let stream = streams
            .ensure("s", std::slice::from_ref(&queue))
            .await
            .unwrap();
        let options = ConsumerOptions {
            name: "c".to_owned(),
            queues: vec![queue.clone()],
            ack_wait: Duration::from_secs(30),
            max_ack_pending: 10,
        };
        let consumer = Consumer::ensure(&stream, &options).await.unwrap();
        let mut waiting = Waiting::new(10);
        for payload in ["seven b", "too much", "abc"] {
            let stored = context
                .publish(queue.clone(), payload.into())
                .await
                .unwrap();
            stored.await.unwrap();
            let mut delivery = next(&consumer).await;
            if payload == "too much" {
                delivery.trace = TraceContext::parse(CALLER, ["a=1"]);
            }
            waiting.insert(delivery);
        }
        assert_eq!(waiting.bytes, 10);
        // Its state counts for the limit as the payload does.
        let trace = waiting.trace(&[1, 2, 3]).expect("the second has one");
        assert_eq!((&*trace.traceparent(), trace.tracestate()), (CALLER, None));
        for (sequence, payload) in [(1, "seven b"), (2, "too much"), (3, "abc")] {
            assert_eq!(waiting.payload(sequence, &stream).await.unwrap(), payload);
            assert_eq!(waiting.get(sequence).unwrap().kept, sequence != 2);
        }
        for sequence in [2, 1, 3] {
            assert!(waiting.remove(sequence).is_some());
        }
        assert_eq!((waiting.bytes, waiting.len()), (0, 0));
        assert!(waiting.payload(1, &stream).await.is_err());
    }
}
