//! Observer of a coordinator, which tells a reporter of the work on blocks.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesOrdered, StreamExt as _};
use proofmill_bus::BlobStore;
use proofmill_orchestrator::coordinator::{CoordinatorGone, Handle};
use proofmill_orchestrator::core::WorkEvent;
use proofmill_orchestrator::record::TaskRecord;
use proofmill_orchestrator::sink::message_of;
use tokio::sync::mpsc;

use crate::reports::{EarlierEmission, Emission, Reports};

/// Most messages that are fetched at a time; those of further emissions are not reported.
const FETCHES_MAX: usize = 64;

/// Longest time of fetching a message.
const FETCH_TIME_MAX: Duration = Duration::from_secs(30);

/// A subscription to the work of a mill. Its channel has no bound, so that [`run`](Self::run) must follow at once.
pub struct Observer {
    events: mpsc::UnboundedReceiver<WorkEvent>,
    workflow: Arc<str>,
    blobs: Arc<BlobStore>,
    reports: Reports,
    options: ObserverOptions,
}

/// Options of an observer.
#[derive(Clone, Debug, Default)]
pub struct ObserverOptions {
    /// Dispatcher stage with whose first lease proving begins; any stage if `None`.
    pub begins_at: Option<String>,
    /// Folder of emitted messages, if the sequencer has one in this process's reach.
    pub directory: Option<PathBuf>,
}

/// A message that was fetched, or that cannot be had.
type Fetched = (u64, Option<Emission>);

// === impl Observer ===

impl Observer {
    /// Subscribes to the work of a workflow that this process leads. Nothing that begins later is missed.
    ///
    /// # Errors
    /// The coordinator has stopped.
    pub async fn begin(
        handle: &Handle,
        blobs: Arc<BlobStore>,
        reports: Reports,
        options: ObserverOptions,
    ) -> Result<Self, CoordinatorGone> {
        let (sender, events) = mpsc::unbounded_channel();
        handle.observe_work(sender).await?;
        let workflow = handle.plan().workflow.clone();
        Ok(Self {
            events,
            workflow,
            blobs,
            reports,
            options,
        })
    }

    /// Passes on what is told, until the coordinator has stopped.
    pub async fn run(mut self) {
        let mut fetching: FuturesOrdered<BoxFuture<'static, Fetched>> = FuturesOrdered::new();
        loop {
            tokio::select! {
                event = self.events.recv() => match event {
                    Some(event) => self.take(event, &mut fetching),
                    None => break,
                },
                // In the order of blocks: an emission ends all that is below it.
                Some(fetched) = fetching.next(), if !fetching.is_empty() => self.emitted(fetched),
            }
        }
        while let Some(fetched) = fetching.next().await {
            self.emitted(fetched);
        }
    }

    fn take(&self, event: WorkEvent, fetching: &mut FuturesOrdered<BoxFuture<'static, Fetched>>) {
        match event {
            WorkEvent::Accepted { first, last, at_ms } => {
                self.reports.accepted((first, last), at_ms);
            }
            WorkEvent::Begun {
                stage,
                first,
                last,
                at_ms,
            } => {
                if self.begins(&stage) {
                    self.reports.begun((first, last), at_ms);
                }
            }
            WorkEvent::Emitted { task } if fetching.len() >= FETCHES_MAX => {
                self.reports.lost(task.id.block);
            }
            WorkEvent::Emitted { task } => fetching.push_back(self.fetch(task)),
            WorkEvent::EmittedBefore {
                first,
                last,
                at_ms,
                begun,
            } => {
                let begun = begun.iter().filter(|(stage, _)| self.begins(stage));
                let begun_ms = begun.map(|(_, at_ms)| *at_ms).min();
                if let Some(begun_ms) = begun_ms.filter(|_| first == last) {
                    self.reports.emitted_before(EarlierEmission {
                        block: first,
                        begun_ms,
                        proved_ms: at_ms,
                        files: files(&self.options, first, last),
                    });
                }
            }
        }
    }

    fn begins(&self, stage: &str) -> bool {
        let begins_at = self.options.begins_at.as_deref();
        begins_at.is_none_or(|begins_at| begins_at == stage)
    }

    fn fetch(&self, task: Arc<TaskRecord>) -> BoxFuture<'static, Fetched> {
        let (workflow, blobs) = (self.workflow.clone(), self.blobs.clone());
        let options = self.options.clone();
        Box::pin(async move {
            let (first, last) = (task.id.block, task.last);
            let fetching = message_of(&workflow, &task, &blobs);
            let message = match tokio::time::timeout(FETCH_TIME_MAX, fetching).await {
                Ok(Ok(emitted)) => Some(emitted.bytes),
                // The blob may have been swept since; the sequencer's folder has the message too.
                Ok(Err(_)) | Err(_) => stored(&options, first, last).await,
            };
            let emission = message.map(|message| Emission {
                first,
                last,
                proved_ms: task.at_ms,
                message,
            });
            (first, emission)
        })
    }

    fn emitted(&self, (block, emission): Fetched) {
        match emission {
            Some(emission) => self.reports.emitted(emission),
            None => self.reports.lost(block),
        }
    }
}

/// The emitted message in the sequencer's folder.
async fn stored(options: &ObserverOptions, first: u64, last: u64) -> Option<Bytes> {
    let files = files(options, first, last);
    let read = move || files.iter().find_map(|path| std::fs::read(path).ok());
    let read = tokio::task::spawn_blocking(read).await;
    read.ok().flatten().map(Bytes::from)
}

/// Files in the sequencer's folder that may have a message.
fn files(options: &ObserverOptions, first: u64, last: u64) -> Vec<PathBuf> {
    let directory = options.directory.iter();
    let named = directory.flat_map(|directory| {
        let name = |extension| format!("{first:010}-{last:010}.{extension}");
        ["json", "bin"].map(|extension| directory.join(name(extension)))
    });
    named.collect()
}
