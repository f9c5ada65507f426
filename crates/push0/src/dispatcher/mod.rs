//! `proofmill dispatcher`: runs a program on each message of the input queues.
//!
//! A message is acknowledged only after the outputs of its program are stored. While the program runs, the
//! acknowledgement deadline is extended, so that ACK_WAIT measures silent processes and not slow programs.

mod scratch;

use futures_util::future::BoxFuture;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::stream::Stream;
use bytes::Bytes;
use futures_util::future::try_join_all;
use proofmill_orchestrator::shutdown::{Level, Shutdown};
use proofmill_process::{Outcome, ProcessExecutor, ProcessSpec, TaskContext};
use proofmill_trace::TraceContext;
use proofmill_workflow::{self as file, Host as _, LocalHost, ProgramFault};
use tokio::time::MissedTickBehavior;

use crate::Notices;
use crate::environment::{Config, EnvError};
use crate::error::RunError;
use crate::metrics::Metrics;
use crate::payload;
use crate::queues::{
    Backoff, Consumer, ConsumerOptions, Delivery, Outgoing, PublishError, Streams, add_trace,
    connect, message_id,
};
use scratch::ScratchRoot;

/// Default of `MAX_DELIVER`.
const MAX_DELIVER: u64 = 5;

/// First wait before a failed message is delivered again. Each wait is twice the one before, up to
/// [`RETRY_WAIT_MAX`].
const RETRY_WAIT_MIN: Duration = Duration::from_secs(1);
/// Longest wait before a failed message is delivered again.
const RETRY_WAIT_MAX: Duration = Duration::from_secs(60);

/// Most unacknowledged messages of one consumer, which bounds the number of dispatchers that can share it.
const MAX_ACK_PENDING: i64 = 65_536;

/// Runs a dispatcher until `shutdown`. At [`Level::Drain`] it finishes the running program, at
/// [`Level::Stop`] it kills the program and hands the message back.
///
/// # Errors
/// [`RunError`] if it cannot begin. Later failures are tried again.
pub fn run(
    config: Config,
    shutdown: Shutdown,
    notices: Notices,
) -> BoxFuture<'static, Result<(), RunError>> {
    // Boxed, so that it is compiled in this crate and not again in every program that calls it.
    Box::pin(async move {
        let program = config.program()?.clone();
        check_binary(&program.binary)?;
        let name = config.consumer("dispatcher");
        let metrics = Metrics::new("dispatcher", name.clone());
        let role = async {
            let scratch = ScratchRoot::claim().await?;
            let mut spec = ProcessSpec::new(&program.binary);
            spec.inherit_env.clone_from(&program.inherit_env);
            // A larger output could not be published; this leaves room for an array of several messages.
            spec.output_limit = 256 << 20;
            let executor = ProcessExecutor::new(spec, scratch.path().to_owned())?;
            let Some((_connection, context)) = connect(&config.nats_url, shutdown.clone()).await?
            else {
                return Ok(());
            };
            let stream = Streams::new(context.clone())
                .ensure(&config.input_stream, &config.input_queues)
                .await?;
            let outgoing = Outgoing::open(
                &context,
                &config.output_stream,
                config.output_queue.as_deref(),
                config.dead_letter_queue(),
                shutdown.clone(),
            )
            .await?;
            let dispatcher = Dispatcher {
                executor,
                multiple_output: program.multiple_output,
                outgoing,
                stream,
                max_deliver: config.max_deliver.map_or(MAX_DELIVER, u64::from),
                metrics: metrics.clone(),
                shutdown: shutdown.clone(),
                notices,
            };
            let consumers = config.consumers("dispatcher").into_iter();
            let loops = consumers.map(|(name, queues)| {
                dispatcher.consume(ConsumerOptions {
                    name,
                    queues,
                    ack_wait: config.ack_wait,
                    max_ack_pending: MAX_ACK_PENDING,
                })
            });
            try_join_all(loops).await?;
            Ok(())
        };
        metrics.clone().serve_during(config.metrics, role).await
    })
}

struct Dispatcher {
    executor: ProcessExecutor,
    multiple_output: bool,
    outgoing: Outgoing,
    stream: Stream,
    max_deliver: u64,
    metrics: Arc<Metrics>,
    shutdown: Shutdown,
    notices: Notices,
}

/// The fate of a message after an attempt.
enum Verdict {
    Done,
    /// The attempt failed for this reason, and the message is delivered again after a wait.
    Retry(String),
    /// The message goes to the dead letters, for this reason.
    Dead(String),
    /// The attempt was interrupted, and the message is handed back at once.
    HandedBack,
}

// === impl Dispatcher ===

impl Dispatcher {
    /// Processes the messages of one consumer, one at a time.
    async fn consume(&self, options: ConsumerOptions) -> Result<(), RunError> {
        let mut consumer = Consumer::ensure(&self.stream, &options).await?;
        (self.notices)(&format!(
            "dispatcher {}: ready, reads {}",
            options.name,
            options.queues.join(", ")
        ));
        let mut backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(5));
        while self.shutdown.level() == Level::Run {
            match consumer.next().await {
                Ok(Some(delivery)) if self.shutdown.level() == Level::Run => {
                    backoff.reset();
                    self.metrics.delivered(&delivery);
                    self.metrics.held.add(1);
                    self.work(&delivery, &consumer, &options.name).await;
                    self.metrics.held.subtract(1);
                }
                Ok(Some(delivery)) => delivery.hand_back(None).await,
                Ok(None) => backoff.reset(),
                Err(why) => {
                    tracing::warn!(consumer = options.name, why, "no messages; asked again");
                    let mut shutdown = self.shutdown.clone();
                    tokio::select! {
                        () = shutdown.reached(Level::Drain) => break,
                        () = backoff.wait() => {}
                    }
                    // The consumer may have been removed.
                    match Consumer::ensure(&self.stream, &options).await {
                        Ok(found) => consumer = found,
                        Err(error) => tracing::warn!(%error, "no consumer"),
                    }
                }
            }
        }
        Ok(())
    }

    async fn work(&self, delivery: &Delivery, consumer: &Consumer, name: &str) {
        let mut tick = tokio::time::interval(consumer.ack_wait / 3);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        tick.tick().await;
        let mut handled = pin!(self.handle(delivery, consumer, name));
        loop {
            tokio::select! {
                () = &mut handled => return,
                _ = tick.tick() => delivery.progress().await,
            }
        }
    }

    /// Runs the program on a message, and acts on the outcome.
    async fn handle(&self, delivery: &Delivery, consumer: &Consumer, name: &str) {
        // Messages that the server would drop without notice are dead-lettered before that.
        let most = self
            .max_deliver
            .min(consumer.max_deliver.unwrap_or(u64::MAX));
        let verdict = if delivery.delivered > most {
            let times = delivery.delivered - 1;
            let why =
                "but no attempt came to an end: the dispatchers that had it died or were stopped";
            Verdict::Dead(format!("it was delivered {times} times, {why}"))
        } else {
            match self.attempt(delivery, name).await {
                Verdict::Retry(why) if delivery.delivered >= most => {
                    Verdict::Dead(format!("delivery {} of {most}: {why}", delivery.delivered))
                }
                verdict => verdict,
            }
        };
        match verdict {
            Verdict::Done => {
                delivery.ack().await;
                self.metrics.completed.add(1);
            }
            Verdict::Retry(why) => {
                let delay = retry_delay(delivery.delivered);
                tracing::warn!(
                    queue = delivery.queue,
                    sequence = delivery.sequence,
                    attempt = delivery.delivered,
                    trace_id = delivery.trace_id(),
                    ?delay,
                    why,
                    "tried again later"
                );
                delivery.hand_back(Some(delay)).await;
            }
            Verdict::Dead(why) => match self.outgoing.dead_letter(delivery, &why).await {
                Ok(()) => {
                    self.metrics.dead_lettered.add(1);
                    delivery.ack().await;
                }
                Err(PublishError::Never(why)) => {
                    // The payload was published before, so it fits: only its headers can be too large.
                    tracing::error!(why, "no dead letter");
                    delivery.hand_back(Some(RETRY_WAIT_MAX)).await;
                }
                Err(PublishError::Stopped) => delivery.hand_back(None).await,
            },
            Verdict::HandedBack => delivery.hand_back(None).await,
        }
    }

    async fn attempt(&self, delivery: &Delivery, name: &str) -> Verdict {
        let context = TaskContext {
            id: format!("{}/{}", delivery.queue, delivery.sequence),
            attempt: u32::try_from(delivery.delivered).unwrap_or(u32::MAX),
            block: payload::block_of(&delivery.payload).unwrap_or(0),
        };
        let trace = delivery.trace.iter().flat_map(TraceContext::variables);
        let trace = trace.map(|(name, value)| (name.to_owned(), value));
        let executor = self.executor.with_env(trace);
        let mut backoff = Backoff::new(RETRY_WAIT_MIN, RETRY_WAIT_MAX);
        let output = loop {
            let mut stop = self.shutdown.clone();
            let run = executor
                .run(&context, &delivery.payload, stop.reached(Level::Stop))
                .await;
            let why = match run.outcome {
                Outcome::Succeeded(output) => break output,
                Outcome::Cancelled => return Verdict::HandedBack,
                Outcome::Permanent { reason } => {
                    self.metrics.failed.add(1);
                    return Verdict::Dead(reason);
                }
                // The machine is at fault, not the message: it is kept and tried again, and no other
                // message is taken until then.
                Outcome::CouldNotStart { reason } => reason,
                Outcome::Machine(failure) => failure.to_string(),
                outcome @ (Outcome::Failed { .. } | Outcome::TimedOut) => {
                    self.metrics.failed.add(1);
                    return Verdict::Retry(outcome.to_string());
                }
            };
            self.metrics.failed.add(1);
            tracing::error!(why, "the program does not run on this machine; tried again");
            let mut drain = self.shutdown.clone();
            tokio::select! {
                () = drain.reached(Level::Drain) => return Verdict::HandedBack,
                () = backoff.wait() => {}
            }
        };
        self.emit(delivery, name, &output).await
    }

    /// Publishes a program's output. Each message has an id that another attempt would give it too.
    async fn emit(&self, delivery: &Delivery, name: &str, output: &[u8]) -> Verdict {
        let outputs: Vec<Bytes> = if self.multiple_output {
            match payload::elements(output) {
                Ok(elements) => elements
                    .iter()
                    .map(|element| Bytes::copy_from_slice(element.get().as_bytes()))
                    .collect(),
                Err(why) => return self.fault(why),
            }
        } else {
            match payload::parse_value(output) {
                Ok(value) => vec![Bytes::copy_from_slice(value.get().as_bytes())],
                Err(why) => return self.fault(why),
            }
        };
        let Some(queue) = self.outgoing.queue() else {
            return Verdict::Done;
        };
        let mut headers = HeaderMap::new();
        add_trace(&mut headers, delivery.trace.as_ref());
        for (index, payload) in (0_u64..).zip(outputs) {
            let id = message_id(&[
                b"output",
                name.as_bytes(),
                delivery.queue.as_bytes(),
                &delivery.sequence.to_le_bytes(),
                &delivery.stored.to_le_bytes(),
                queue.as_bytes(),
                &index.to_le_bytes(),
            ]);
            match self.outgoing.publish(payload, &id, headers.clone()).await {
                Ok(()) => {}
                Err(PublishError::Never(why)) => {
                    self.metrics.failed.add(1);
                    return Verdict::Dead(why);
                }
                Err(PublishError::Stopped) => return Verdict::HandedBack,
            }
        }
        Verdict::Done
    }

    fn fault(&self, why: String) -> Verdict {
        self.metrics.failed.add(1);
        Verdict::Retry(why)
    }
}

/// Checks that the program can be run, so that a wrong setting shows at start and not with the first
/// message. A program that vanishes later is waited for.
fn check_binary(binary: &Path) -> Result<(), EnvError> {
    let program = match binary.to_str() {
        Some(name) if !name.contains('/') => file::Program::Search(name.to_owned()),
        _ => file::Program::File(binary.to_owned()),
    };
    let found = LocalHost::new::<String>([]).program(&program);
    let expected = match found {
        Ok(()) => return Ok(()),
        Err(ProgramFault::Missing) => {
            "an existing program: a path, relative to the working directory, or a name in PATH"
        }
        Err(ProgramFault::NotExecutable) => "an executable program: chmod +x",
    };
    Err(EnvError::holds(
        "BINARY",
        binary.display().to_string(),
        expected,
    ))
}

/// Wait after the failure of attempt `number`, from 1.
fn retry_delay(number: u64) -> Duration {
    let doublings = u32::try_from(number.saturating_sub(1))
        .unwrap_or(u32::MAX)
        .min(16);
    (RETRY_WAIT_MIN * 2_u32.pow(doublings)).min(RETRY_WAIT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_waits_double_up_to_a_minute() {
        let waits = [1, 2, 3, 6, 7, 8, u64::MAX].map(|number| retry_delay(number).as_secs());
        assert_eq!(waits, [1, 2, 4, 32, 60, 60, 60]);
    }
}
