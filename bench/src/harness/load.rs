//! Submission of blocks at a steady rate.

use std::time::Duration;

use anyhow::Context;
use proofmill_orchestrator::conversation::Submit;
use proofmill_orchestrator::port::SourcePort;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

/// A task that submits blocks at a steady rate until it is ended, without waiting for results.
pub(crate) struct Load {
    end: watch::Sender<bool>,
    submitting: JoinHandle<anyhow::Result<u64>>,
}

// === impl Load ===

impl Load {
    /// Submits the messages that `messages` returns for blocks 0, 1, … at `rate` blocks a second.
    pub(crate) fn start(
        port: SourcePort,
        rate: f64,
        messages: impl Fn(u64) -> Vec<Submit> + Send + 'static,
    ) -> Self {
        let (end, mut ended) = watch::channel(false);
        let submitting = tokio::spawn(async move {
            let period = Duration::from_secs_f64(1.0 / rate);
            let start = Instant::now();
            for block in 0.. {
                tokio::select! {
                    () = sleep_until(start + period.mul_f64(block as f64)) => {}
                    _ = ended.changed() => return Ok(block),
                }
                for message in messages(block) {
                    // The reply is not awaited: the experiment counts the emissions.
                    drop(port.submit_later(message).await?);
                }
            }
            Ok(u64::MAX)
        });
        Self { end, submitting }
    }

    /// Ends the load; returns the number of submitted blocks.
    pub(crate) async fn end(self) -> anyhow::Result<u64> {
        self.end.send_replace(true);
        self.submitting.await.context("the producer panicked")?
    }
}
