//! Round trips of a plain NATS client to the same server, as a baseline.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use async_nats::jetstream::consumer::{AckPolicy, pull};
use async_nats::jetstream::stream::{self, Stream};
use async_nats::jetstream::{self, Context, Message};
use futures_util::StreamExt;
use proofmill_bus::NatsOptions;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::harness::Figures;

/// Time after the last message at which a missing one counts as lost.
const PATIENCE: Duration = Duration::from_secs(30);

/// Measured round trips, in milliseconds.
pub(super) struct Bare {
    /// Time from the publication of a message until its ack is acknowledged: the stream stores and
    /// syncs the message, and a pull consumer receives and acks it.
    pub(super) acknowledged: Figures,
    /// The same time where the consumer, before its ack, publishes a result and waits until a stream
    /// has stored and synced it.
    pub(super) stored: Figures,
}

/// Starts both measurements, each with one message every `period`. They are shifted against the
/// messages that the caller sends from `start` on, so that the three take turns.
pub(super) async fn start(
    bus: &NatsOptions,
    start: tokio::time::Instant,
    period: Duration,
    messages: usize,
) -> anyhow::Result<impl Future<Output = anyhow::Result<Bare>> + use<>> {
    let plain = spawn_round_trips(bus, false, start + period / 3, period, messages).await?;
    let storing = spawn_round_trips(bus, true, start + period * 2 / 3, period, messages).await?;
    Ok(async {
        let panicked = "a bare program panicked";
        Ok(Bare {
            acknowledged: plain.await.context(panicked)??,
            stored: storing.await.context(panicked)??,
        })
    })
}

/// Creates a stream whose only subject is its own name.
async fn stream(context: &Context, bus: &NatsOptions, name: &str) -> anyhow::Result<Stream> {
    let config = stream::Config {
        name: name.to_owned(),
        subjects: vec![name.to_owned()],
        num_replicas: bus.replicas,
        ..stream::Config::default()
    };
    let made = context.create_stream(config).await;
    made.context("cannot make a stream")
}

async fn spawn_round_trips(
    bus: &NatsOptions,
    stores_result: bool,
    start: tokio::time::Instant,
    period: Duration,
    messages: usize,
) -> anyhow::Result<JoinHandle<anyhow::Result<Figures>>> {
    let client = async_nats::connect(bus.servers.clone())
        .await
        .context("cannot connect to the server")?;
    let context = jetstream::new(client);
    let subject = format!("{}-bare-{stores_result}", bus.prefix);
    let results = stores_result.then(|| format!("{subject}-results"));
    if let Some(results) = &results {
        stream(&context, bus, results).await?;
    }
    let consumer = stream(&context, bus, &subject)
        .await?
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
            let time_max = PATIENCE + period.mul_f64(messages as f64);
            for _ in 0..messages {
                let message = timeout(time_max, pulled.next()).await;
                let message = message.context("a bare message is lost")?;
                let message = message.context("the consumer has ended")??;
                let (context, results) = (context.clone(), results.clone());
                tokio::spawn(acknowledge(message, context, results, done.clone()));
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

/// Acknowledges a message, and sends its number and the time of the server's answer to `done`. With
/// `results`, it first stores a result in that stream.
async fn acknowledge(
    message: Message,
    context: Context,
    results: Option<String>,
    done: mpsc::UnboundedSender<(usize, Instant)>,
) -> anyhow::Result<()> {
    if let Some(results) = results {
        let stored = context.publish(results, message.payload.clone()).await?;
        stored.await?;
    }
    let acked = message.double_ack().await;
    acked.map_err(|error| anyhow::anyhow!("cannot acknowledge: {error}"))?;
    let info = message.info();
    let info = info.map_err(|error| anyhow::anyhow!("a message without a number: {error}"))?;
    let number = usize::try_from(info.stream_sequence)?.saturating_sub(1);
    // Sending fails if the receiver has given up.
    let _ = done.send((number, Instant::now()));
    Ok(())
}
