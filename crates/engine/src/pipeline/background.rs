//! Slow work outside the scheduler's task: loading keys and running stages.

use std::sync::Arc;

use tokio::sync::mpsc;
use tracing::Instrument as _;

use super::flight::RunningPartition;
use super::lanes::Entry;
use super::scheduler::Env;
use super::step::{self, StageOutcome, StageResources};
use crate::interface::JobId;
use crate::key::{Key, StepError};

/// Partitions that wait for a key or are in a stage. Each comes back once.
pub(super) struct Background {
    env: Arc<Env>,
    sender: mpsc::UnboundedSender<Completion>,
    receiver: mpsc::UnboundedReceiver<Completion>,
}

/// A partition that comes back, with the outcome of its work.
pub(super) enum Completion {
    /// The key is loaded, or loading failed.
    Key(Box<RunningPartition>, Result<Arc<dyn Key>, StepError>),
    /// The partition left a stage.
    Stage(Box<StageOutcome>),
}

// === impl Background ===

impl Background {
    pub(super) fn new(env: Arc<Env>) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Self {
            env,
            sender,
            receiver,
        }
    }

    /// Waits for the key of a partition.
    pub(super) fn load_key(&self, mut running: RunningPartition) {
        let sender = self.sender.clone();
        let log = self.env.events.traces().log_span(running.job());
        tokio::spawn(async move {
            let key = running.load_key().instrument(log).await;
            // The receiver exists as long as any partition is under way.
            let _ = sender.send(Completion::Key(Box::new(running), key));
        });
    }

    /// Runs a stage. It began at `began_us`, in microseconds since the service began.
    pub(super) fn run(&self, entry: Entry, began_us: u64) {
        let (env, sender) = (self.env.clone(), self.sender.clone());
        let resources = StageResources {
            worker: entry.worker,
            pool: entry.pool.unwrap_or_else(|| env.pool.clone()),
            accelerator: entry.accelerator,
        };
        let log = env.events.traces().log_span(entry.running.job());
        let step = step::run(env, entry.running, entry.stage, resources, began_us).instrument(log);
        tokio::spawn(async move {
            // The receiver exists as long as any partition is under way.
            let _ = sender.send(Completion::Stage(Box::new(step.await)));
        });
    }

    /// Waits for the next partition that comes back.
    pub(super) async fn next(&mut self) -> Completion {
        match self.receiver.recv().await {
            Some(completion) => completion,
            // This struct holds a sender, so the channel is never closed.
            None => std::future::pending().await,
        }
    }

    /// A partition that has come back already, if there is one.
    pub(super) fn try_next(&mut self) -> Option<Completion> {
        self.receiver.try_recv().ok()
    }
}

// === impl Completion ===

impl Completion {
    /// The job.
    pub(super) fn job(&self) -> JobId {
        match self {
            Self::Key(running, _) => running.job(),
            Self::Stage(outcome) => outcome.running.job(),
        }
    }

    /// The partition, whatever the outcome.
    pub(super) fn into_running(self) -> RunningPartition {
        match self {
            Self::Key(running, _) => *running,
            Self::Stage(outcome) => outcome.running,
        }
    }
}
