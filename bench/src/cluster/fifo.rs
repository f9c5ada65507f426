//! Tasks taken in the order of arrival, as a baseline for priority.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Context;
use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::{self, stream};
use futures_util::StreamExt;
use proofmill_bus::NatsOptions;
use tokio::task::JoinSet;

/// Time within which a task must come to a worker that asks for one; past it, the rest counts as lost.
const PATIENCE: Duration = Duration::from_secs(3);

/// The start of a task, in microseconds, and its block.
pub(super) type TaskStart = (u64, u64);

/// Tasks that arrive newest block first, and workers that take them in the order of arrival.
#[derive(Clone, Copy, Debug)]
pub(super) struct FifoLoad {
    /// Number of tasks, one for each block from 0.
    pub(super) tasks: u64,
    /// Number of workers, each with one task at a time.
    pub(super) workers: u32,
    /// Duration of a task.
    pub(super) proof: Duration,
}

// === impl FifoLoad ===

impl FifoLoad {
    /// Measures the start of every task where workers take the tasks from a queue in this process.
    pub(super) async fn in_process(self) -> anyhow::Result<Vec<TaskStart>> {
        let queue: VecDeque<u64> = (0..self.tasks).rev().collect();
        let queue = Arc::new(Mutex::new(queue));
        let start = Instant::now();
        let mut workers = JoinSet::new();
        for _ in 0..self.workers {
            let queue = queue.clone();
            workers.spawn(async move {
                let mut starts = Vec::new();
                loop {
                    // The clock is read under the lock, so that the times have the order of the queue.
                    let next = {
                        let mut queue = queue.lock().expect("no worker panics");
                        queue.pop_front().map(|block| (elapsed_us(start), block))
                    };
                    let Some(next) = next else {
                        return anyhow::Ok(starts);
                    };
                    starts.push(next);
                    tokio::time::sleep(self.proof).await;
                }
            });
        }
        join_workers(workers).await
    }

    /// Measures the start of every task where workers take the tasks from one durable pull consumer of JetStream,
    /// which delivers in the order of the stream. A task is acknowledged when it has ended. Tasks that no worker
    /// received are missing from the result.
    pub(super) async fn over_jetstream(self, bus: &NatsOptions) -> anyhow::Result<Vec<TaskStart>> {
        let client = async_nats::connect(bus.servers.clone())
            .await
            .context("cannot connect to the server")?;
        let context = jetstream::new(client);
        let name = format!("{}-tasks", bus.prefix);
        let stream = context
            .create_stream(stream::Config {
                name: name.clone(),
                subjects: vec![name.clone()],
                num_replicas: bus.replicas,
                ..stream::Config::default()
            })
            .await
            .context("cannot make a stream")?;
        let mut stored = Vec::new();
        for block in (0..self.tasks).rev() {
            let payload = block.to_string();
            stored.push(context.publish(name.clone(), payload.into()).await?);
        }
        for stored in stored {
            stored.await.context("a task is not stored")?;
        }
        let consumer = stream
            .create_consumer(pull::Config {
                durable_name: Some("fifo".into()),
                ack_policy: AckPolicy::Explicit,
                num_replicas: bus.replicas,
                max_ack_pending: i64::from(self.workers),
                ..pull::Config::default()
            })
            .await
            .context("cannot make a consumer")?;
        let start = Instant::now();
        let mut workers = JoinSet::new();
        for _ in 0..self.workers {
            workers.spawn(self.run_worker(consumer.clone(), start));
        }
        join_workers(workers).await
    }

    /// A worker of [`over_jetstream`](Self::over_jetstream).
    async fn run_worker(
        self,
        consumer: PullConsumer,
        start: Instant,
    ) -> anyhow::Result<Vec<TaskStart>> {
        let mut starts = Vec::new();
        loop {
            let fetch = consumer.fetch().max_messages(1).expires(PATIENCE);
            let mut fetched = fetch.messages().await.context("cannot pull")?;
            let Some(message) = fetched.next().await else {
                return Ok(starts);
            };
            let message = message.map_err(|error| anyhow::anyhow!("cannot pull: {error}"))?;
            let block: u64 = std::str::from_utf8(&message.payload)?.parse()?;
            starts.push((elapsed_us(start), block));
            tokio::time::sleep(self.proof).await;
            let acknowledged = message.double_ack().await;
            acknowledged.map_err(|error| anyhow::anyhow!("cannot acknowledge: {error}"))?;
            // Block 0 is the last one in the stream, so every other block has come to a worker.
            if block == 0 {
                return Ok(starts);
            }
        }
    }
}

/// Microseconds since `start`.
fn elapsed_us(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX)
}

/// Waits for all workers, and returns the tasks that they started.
async fn join_workers(
    mut workers: JoinSet<anyhow::Result<Vec<TaskStart>>>,
) -> anyhow::Result<Vec<TaskStart>> {
    let mut starts = Vec::new();
    while let Some(ended) = workers.join_next().await {
        starts.extend(ended.context("a worker panicked")??);
    }
    Ok(starts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn tasks_are_taken_in_the_order_of_arrival() {
        let load = FifoLoad {
            tasks: 40,
            workers: 4,
            proof: Duration::from_millis(1),
        };
        let mut starts = load.in_process().await.expect("no worker fails");
        starts.sort_by_key(|(at, block)| (*at, u64::MAX - block));
        let blocks: Vec<u64> = starts.into_iter().map(|(_, block)| block).collect();
        assert_eq!(blocks, (0..40).rev().collect::<Vec<u64>>());
    }
}
