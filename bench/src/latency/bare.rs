//! The bare round trips of the same server, as a plain program makes them.

use std::time::{Duration, Instant};

use anyhow::Context;
use async_nats::jetstream::consumer::{AckPolicy, pull};
use async_nats::jetstream::stream;
use async_nats::jetstream::{self, Message};
use futures_util::StreamExt;
use proofmill_bus::NatsOptions;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::harness::Figures;

/// How long after the last message one counts as lost.
const PATIENCE: Duration = Duration::from_secs(30);

/// Messages that go through a stream of their own, one every `period` from `start` on.
///
/// The time of each is from publishing it until the stream has it, synced, a pull consumer has
/// got it and acknowledged it, and the server has acknowledged that.
pub(super) async fn start(
    bus: &NatsOptions,
    start: tokio::time::Instant,
    period: Duration,
    messages: usize,
) -> anyhow::Result<JoinHandle<anyhow::Result<Figures>>> {
    let client = async_nats::connect(bus.servers.clone())
        .await
        .context("cannot connect to the server")?;
    let context = jetstream::new(client);
    let subject = format!("{}-bare", bus.prefix);
    let stream = context
        .create_stream(stream::Config {
            name: subject.clone(),
            subjects: vec![subject.clone()],
            num_replicas: bus.replicas,
            ..stream::Config::default()
        })
        .await
        .context("cannot make a stream")?;
    let consumer = stream
        .create_consumer(pull::Config {
            durable_name: Some("bare".into()),
            ack_policy: AckPolicy::Explicit,
            num_replicas: bus.replicas,
            ..pull::Config::default()
        })
        .await
        .context("cannot make a consumer")?;
    let mut pulled = consumer.messages().await.context("cannot pull")?;
    Ok(tokio::spawn(async move {
        let (done, mut ended) = mpsc::unbounded_channel();
        let publishing = async {
            let mut published = Vec::with_capacity(messages);
            for number in 0..messages {
                tokio::time::sleep_until(start + period.mul_f64(number as f64)).await;
                published.push(Instant::now());
                let payload = format!("{{\"block\":{number},\"witness\":\"{number:064x}\"}}");
                let accepted = context.publish(subject.clone(), payload.into()).await?;
                tokio::spawn(accepted.into_future());
            }
            anyhow::Ok(published)
        };
        let pulling = async {
            let mut times = Vec::with_capacity(messages);
            let whole = PATIENCE + period.mul_f64(messages as f64);
            for _ in 0..messages {
                let message = timeout(whole, pulled.next()).await;
                let message = message.context("a bare message is lost")?;
                let message = message.context("the consumer has ended")??;
                tokio::spawn(acknowledge(message, done.clone()));
            }
            for _ in 0..messages {
                let ended = timeout(PATIENCE, ended.recv()).await;
                times.extend(ended.context("a bare message is not acknowledged")?);
            }
            anyhow::Ok(times)
        };
        let (published, times) = tokio::try_join!(publishing, pulling)?;
        let took = times
            .into_iter()
            .filter_map(|(number, at)| Some(super::ms(at - *published.get(number)?)));
        Ok(Figures::of(took.collect()))
    }))
}

/// Acknowledges a message, and says which it was and when the server had acknowledged that.
async fn acknowledge(
    message: Message,
    done: mpsc::UnboundedSender<(usize, Instant)>,
) -> anyhow::Result<()> {
    let acked = message.double_ack().await;
    acked.map_err(|error| anyhow::anyhow!("cannot acknowledge: {error}"))?;
    let info = message.info();
    let info = info.map_err(|error| anyhow::anyhow!("a message without a number: {error}"))?;
    let number = usize::try_from(info.stream_sequence)?.saturating_sub(1);
    // Whoever waits for it may have given up.
    let _ = done.send((number, Instant::now()));
    Ok(())
}
