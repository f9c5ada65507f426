//! Tasks at a steady rate, and the time from the submission of each to the beginning of its run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use proofmill_orchestrator::executor::{
    Context, FromPayload, IntoPayloads, Produced, Prover, ProverError, Resolved,
};
use proofmill_orchestrator::plan::QueueIx;
use proofmill_orchestrator::port::SourcePort;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::sleep_until;

use crate::harness::json_message;

/// First block of the tasks, above all others.
const FIRST: u64 = 1 << 32;

/// A prover that tells when it begins, and takes no time.
pub(super) struct Stamp {
    begun: mpsc::UnboundedSender<(u64, Instant)>,
}

/// The task's payload, which the prover does not read.
pub(super) struct Unread(Resolved);

/// A task's submission, and the beginning of its run.
type Times = Arc<Mutex<BTreeMap<u64, (Instant, Option<Instant>)>>>;

/// Submission of tasks until it is ended.
pub(super) struct Probes {
    times: Times,
    submitting: JoinHandle<anyhow::Result<()>>,
    noting: JoinHandle<()>,
}

// === impl Stamp ===

impl Stamp {
    pub(super) fn new(begun: mpsc::UnboundedSender<(u64, Instant)>) -> Self {
        Self { begun }
    }
}

impl Prover for Stamp {
    type Input = Unread;
    type Output = Unread;

    fn prove(&self, context: &Context, input: Unread) -> Result<Unread, ProverError> {
        // Nobody listens any more when the experiment ends.
        let _ = self.begun.send((context.task.block, Instant::now()));
        Ok(input)
    }
}

// === impl Unread ===

impl FromPayload for Unread {
    fn from_payload(payload: Resolved) -> Result<Self, String> {
        Ok(Self(payload))
    }
}

impl IntoPayloads for Unread {
    fn into_payloads(self) -> Result<Produced, String> {
        let bytes = self.0.to_program_input()?;
        let encoding = proofmill_orchestrator::payload::Encoding::Json;
        Ok(Produced::One(encoding, bytes))
    }
}

// === impl Probes ===

impl Probes {
    /// Submits `rate` tasks a second; `begun` has the beginnings of their runs.
    pub(super) fn start(
        port: SourcePort,
        queue: QueueIx,
        rate: f64,
        mut begun: mpsc::UnboundedReceiver<(u64, Instant)>,
    ) -> Self {
        let times = Times::default();
        let submitted = times.clone();
        let submitting = tokio::spawn(async move {
            let period = Duration::from_secs_f64(1.0 / rate);
            let start = tokio::time::Instant::now();
            for number in 0u64.. {
                sleep_until(start + period.mul_f64(number as f64)).await;
                let block = FIRST + number;
                let request = json_message(queue, block, format!("{{\"block\":{block}}}"));
                lock(&submitted).insert(block, (Instant::now(), None));
                // The reply is not awaited: the beginning of the run shows that the task was accepted.
                drop(port.submit_later(request).await?);
            }
            anyhow::Ok(())
        });
        let noted = times.clone();
        let noting = tokio::spawn(async move {
            while let Some((block, at)) = begun.recv().await {
                if let Some(times) = lock(&noted).get_mut(&block) {
                    times.1 = Some(at);
                }
            }
        });
        Self {
            times,
            submitting,
            noting,
        }
    }

    /// Milliseconds from submission to run of the tasks that were submitted between these times, and of no task
    /// twice.
    pub(super) fn between(&mut self, from: Instant, until: Instant) -> Vec<f64> {
        let mut times = lock(&self.times);
        let took = times.values().filter_map(|(submitted, begun)| {
            let is_within = from <= *submitted && *submitted < until;
            let begun = (*begun).filter(|_| is_within)?;
            Some((begun - *submitted).as_secs_f64() * 1e3)
        });
        let took = took.collect();
        times.retain(|_, (submitted, _)| *submitted >= until);
        took
    }

    /// Ends the submission.
    pub(super) async fn end(self) -> anyhow::Result<()> {
        self.noting.abort();
        if self.submitting.is_finished() {
            return self.submitting.await.context("the producer panicked")?;
        }
        self.submitting.abort();
        Ok(())
    }
}

fn lock<T>(times: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    times.lock().unwrap_or_else(PoisonError::into_inner)
}
