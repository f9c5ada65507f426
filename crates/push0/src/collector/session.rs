//! The work of a collector while it holds the lease.

use std::sync::Arc;
use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::stream::Stream;
use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::StreamExt as _;
use futures_util::stream::{BoxStream, SelectAll};
use proofmill_bus::Lease;
use proofmill_orchestrator::shutdown::{Level, Shutdown};
use tokio::time::{Instant, MissedTickBehavior};

use super::emitted::Emitted;
use super::grouping::{Group, Grouping, Member, Offered, grouping};
use super::held::{MAX_BYTES, Waiting};
use crate::environment::{Collection, Config, Field, Strategy};
use crate::error::RunError;
use crate::metrics::Metrics;
use crate::payload;
use crate::queues::{
    Backoff, Consumer, ConsumerOptions, Delivery, Outgoing, PublishError, Streams, add_trace,
    message_id, tail,
};

/// Most messages that are held for incomplete groups. At that number no more are delivered, and only
/// COLLECT_TIMEOUT_PERIOD_MILLIS with MAX_DELIVER makes room.
const MAX_ACK_PENDING: i64 = 262_144;

/// Messages at the end of the output's stream that are searched for groups emitted before.
const TAIL: u64 = 16_384;

/// The reason that a session ended.
pub(super) enum Ended {
    Shutdown,
    LeaseLost,
}

/// A collector's session, from taking the lease to giving it back.
pub(super) struct Session<'a> {
    config: &'a Config,
    collection: &'a Collection,
    name: &'a str,
    input: &'a Stream,
    outgoing: &'a Outgoing,
    metrics: &'a Arc<Metrics>,
    grouping: Box<dyn Grouping>,
    field: Option<Field>,
    emitted: Emitted,
    waiting: Waiting,
    messages: SelectAll<BoxStream<'static, Result<Delivery, String>>>,
    ack_wait: Duration,
}

// === impl Session ===

impl<'a> Session<'a> {
    /// Reads which groups were emitted before, and begins to consume messages.
    pub(super) async fn begin(
        config: &'a Config,
        name: &'a str,
        input: &'a Stream,
        streams: &Streams,
        outgoing: &'a Outgoing,
        metrics: &'a Arc<Metrics>,
    ) -> Result<Self, RunError> {
        let (collection, output) = config.collection()?;
        let Some(mut grouping) = grouping(&collection.strategy, config.input_queues.len()) else {
            let expected = "Match, Sequential or Proof";
            return Err(crate::EnvError::missing("STRATEGY", expected).into());
        };
        let made = input.cached_info().created.unix_timestamp_nanos();
        let mut emitted = Emitted::new(format!("{}/{name}/{made}", config.input_stream));
        let stream = streams
            .ensure(&config.output_stream, &[output.to_owned()])
            .await?;
        let restored = tail(&stream, output, TAIL, |headers, _| {
            if let Some(mark) = emitted.restore(headers) {
                grouping.restore(mark);
            }
        })
        .await;
        if let Err(why) = restored {
            tracing::warn!(output, why, "the groups emitted before are not known");
        }
        let field = match &collection.strategy {
            Strategy::Match { field, .. } => field.clone(),
            _ => None,
        };
        let mut session = Self {
            config,
            collection,
            name,
            input,
            outgoing,
            metrics,
            grouping,
            field,
            emitted,
            waiting: Waiting::new(MAX_BYTES),
            messages: SelectAll::new(),
            ack_wait: config.ack_wait,
        };
        session.subscribe().await?;
        tracing::info!(consumer = name, queues = ?config.input_queues, "collector ready");
        Ok(session)
    }

    async fn subscribe(&mut self) -> Result<(), RunError> {
        self.messages.clear();
        for (name, queues) in self.config.consumers("collector") {
            let options = ConsumerOptions {
                name: name.clone(),
                queues,
                ack_wait: self.config.ack_wait,
                max_ack_pending: MAX_ACK_PENDING,
            };
            let consumer = Consumer::ensure(self.input, &options).await?;
            self.ack_wait = self.ack_wait.min(consumer.ack_wait);
            let messages = consumer
                .messages()
                .await
                .map_err(|why| RunError::Consumer {
                    consumer: name,
                    stream: self.config.input_stream.clone(),
                    why,
                })?;
            // The end of the messages is treated as an error, so that they are requested again.
            let end = futures_util::stream::once(async { Err("its messages end".to_owned()) });
            self.messages.push(messages.chain(end).boxed());
        }
        Ok(())
    }

    pub(super) async fn run(&mut self, mut shutdown: Shutdown, lease: &Lease) -> Ended {
        let mut progress = tokio::time::interval(self.ack_wait / 3);
        progress.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let period = self.collection.collect_timeout;
        let look = period.unwrap_or(Duration::from_secs(3600)) / 2;
        let mut look =
            tokio::time::interval(look.clamp(Duration::from_millis(50), Duration::from_secs(1)));
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(5));
        loop {
            tokio::select! {
                biased;
                () = shutdown.reached(Level::Drain) => return Ended::Shutdown,
                () = lease.lost() => return Ended::LeaseLost,
                _ = progress.tick() => self.progress().await,
                _ = look.tick(), if period.is_some() => {
                    if let Some(period) = period {
                        self.hand_back_expired(period).await;
                    }
                }
                message = self.messages.next() => match message {
                    Some(Ok(delivery)) => {
                        backoff.reset();
                        if self.take(delivery).await.is_err() {
                            return Ended::Shutdown;
                        }
                        self.metrics.held.set(self.waiting.len() as u64);
                    }
                    end => {
                        let why = end.and_then(Result::err);
                        tracing::warn!(consumer = self.name, why, "no messages; asked again");
                        tokio::select! {
                            () = shutdown.reached(Level::Drain) => return Ended::Shutdown,
                            () = backoff.wait() => {}
                        }
                        if let Err(error) = self.subscribe().await {
                            tracing::warn!(%error, "no consumer");
                            // Nothing is left to wait for: the next turn ends the session.
                        }
                    }
                },
            }
        }
    }

    /// Extends the acknowledgement deadline of all held messages, so that they are not delivered to another
    /// process.
    async fn progress(&self) {
        for held in self.waiting.iter() {
            held.delivery.progress().await;
        }
    }

    /// Takes a message. An error means that the process was told to stop.
    async fn take(&mut self, delivery: Delivery) -> Result<(), PublishError> {
        self.metrics.delivered(&delivery);
        let sequence = delivery.sequence;
        if self.emitted.contains(sequence) {
            delivery.ack_soon().await;
            return Ok(());
        }
        if self.waiting.get(sequence).is_some() {
            self.waiting.renew(delivery);
            return Ok(());
        }
        let queue = self
            .config
            .input_queues
            .iter()
            .position(|queue| *queue == delivery.queue);
        let facts = match payload::facts(&delivery.payload, self.field.as_ref()) {
            Ok(facts) => facts,
            Err(why) => return self.dead_letter(delivery, &why).await,
        };
        let member = Member {
            sequence,
            queue: queue.unwrap_or(usize::MAX),
            facts,
            id: delivery.id.clone(),
        };
        match self.grouping.offer(member) {
            Offered::Rejected(why) => self.dead_letter(delivery, &why).await,
            Offered::Repeat => {
                self.metrics.repeated.add(1);
                tracing::info!(queue = delivery.queue, sequence, "its group has it already");
                delivery.ack_soon().await;
                Ok(())
            }
            Offered::Taken(groups) => {
                self.waiting.insert(delivery);
                for group in groups {
                    self.emit(group).await?;
                }
                Ok(())
            }
        }
    }

    /// Stores a group, then acknowledges its members.
    async fn emit(&mut self, group: Group) -> Result<(), PublishError> {
        let payload = match self.assemble(&group).await {
            Ok(payload) => payload,
            Err(why) => return self.dead_letter_group(&group, &why).await,
        };
        let mut identity: Vec<Vec<u8>> = vec![b"group".to_vec(), self.name.as_bytes().to_vec()];
        for sequence in &group.members {
            identity.push(sequence.to_le_bytes().to_vec());
            let stored = self.waiting.get(*sequence).map(|held| held.delivery.stored);
            identity.push(stored.unwrap_or_default().to_le_bytes().to_vec());
        }
        let identity: Vec<&[u8]> = identity.iter().map(Vec::as_slice).collect();
        let mut headers = self.emitted.headers(&group);
        add_trace(&mut headers, self.waiting.trace(&group.members));
        let id = message_id(&identity);
        let published = {
            let publish = self.outgoing.publish(payload.into(), &id, headers);
            let mut publish = std::pin::pin!(publish);
            loop {
                // The stream may be full for a long time, so the deadlines of held messages are extended
                // meanwhile.
                match tokio::time::timeout(self.ack_wait / 3, &mut publish).await {
                    Ok(published) => break published,
                    Err(_) => self.progress().await,
                }
            }
        };
        match published {
            Ok(()) => {}
            Err(PublishError::Never(why)) => return self.dead_letter_group(&group, &why).await,
            Err(stopped @ PublishError::Stopped) => return Err(stopped),
        }
        for sequence in &group.members {
            self.emitted.insert(*sequence);
            if let Some(delivery) = self.waiting.remove(*sequence) {
                delivery.ack_soon().await;
                self.metrics.completed.add(1);
            }
        }
        self.metrics.groups.add(1);
        tracing::debug!(
            key = group.key,
            members = group.members.len(),
            "group emitted"
        );
        Ok(())
    }

    /// The message of a group.
    async fn assemble(&self, group: &Group) -> Result<Vec<u8>, String> {
        let number = group.again.map(|block| Bytes::from(block.to_string()));
        let mut payloads: Vec<Bytes> = number.into_iter().collect();
        for sequence in &group.members {
            let payload = self.waiting.payload(*sequence, self.input).await;
            payloads.push(payload.map_err(|why| format!("message {sequence}: {why}"))?);
        }
        let single = self.collection.single_output;
        let is_proof = matches!(self.collection.strategy, Strategy::Proof { .. });
        Ok(match payloads.as_slice() {
            [block, proofs @ ..] if single && is_proof => {
                let mut object = br#"{"block":"#.to_vec();
                object.extend_from_slice(block.trim_ascii());
                object.extend_from_slice(br#","proofs":"#);
                object.extend(payload::array(proofs.iter().map(|proof| &**proof)));
                object.push(b'}');
                object
            }
            [one] if single => one.trim_ascii().to_vec(),
            all => payload::array(all.iter().map(|payload| &**payload)),
        })
    }

    /// Dead-letters the members of a group that cannot be emitted.
    async fn dead_letter_group(&mut self, group: &Group, why: &str) -> Result<(), PublishError> {
        let why = format!("the group {} cannot be emitted: {why}", group.key);
        for sequence in &group.members {
            if let Some(delivery) = self.waiting.remove(*sequence) {
                self.dead_letter(delivery, &why).await?;
            }
        }
        Ok(())
    }

    async fn dead_letter(&self, delivery: Delivery, why: &str) -> Result<(), PublishError> {
        match self.outgoing.dead_letter(&delivery, why).await {
            Ok(()) => {
                self.metrics.dead_lettered.add(1);
                delivery.ack_soon().await;
                Ok(())
            }
            Err(PublishError::Never(why)) => {
                tracing::error!(why, "no dead letter");
                delivery.hand_back(Some(Duration::from_secs(60))).await;
                Ok(())
            }
            Err(stopped) => {
                delivery.hand_back(None).await;
                Err(stopped)
            }
        }
    }

    /// Hands back the members of groups that have waited too long for another member. Members that were
    /// handed back MAX_DELIVER times are dead-lettered.
    async fn hand_back_expired(&mut self, period: Duration) {
        let now = Instant::now();
        for members in self.grouping.open() {
            let Some(youngest) = self.waiting.youngest(&members) else {
                continue;
            };
            if now.duration_since(youngest) < self.waiting.patience(&members, period) {
                continue;
            }
            for sequence in members {
                self.grouping.remove(sequence);
                let Some(delivery) = self.waiting.remove(sequence) else {
                    continue;
                };
                let most = self.config.max_deliver.map(u64::from);
                if most.is_some_and(|most| delivery.delivered >= most) {
                    let why = "its group was not complete within COLLECT_TIMEOUT_PERIOD_MILLIS";
                    if self.dead_letter(delivery, why).await.is_err() {
                        return;
                    }
                } else {
                    delivery.hand_back(None).await;
                }
            }
        }
        self.metrics.held.set(self.waiting.len() as u64);
    }

    /// Hands all messages back, so that the next collector gets them at once.
    pub(super) async fn hand_all_back(&mut self, client: &Client) {
        // Messages that were delivered but not taken yet.
        while let Some(Some(Ok(delivery))) = self.messages.next().now_or_never() {
            delivery.hand_back(None).await;
        }
        self.messages.clear();
        for held in self.waiting.iter() {
            held.delivery.hand_back(None).await;
        }
        self.metrics.held.set(0);
        if let Err(error) = client.flush().await {
            tracing::warn!(%error, "what was held comes again after ACK_WAIT");
        }
    }
}
