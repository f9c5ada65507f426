//! Handing emissions to the sinks, in order.

use std::fmt::Display;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use proofmill_bus::{BlobStore, with_sources};
use proofmill_workflow::Sequencer;
use tokio::sync::mpsc;

use crate::coordinator::{CoordinatorGone, Emission, Handle};
use crate::executor::Resolved;
use crate::id::Part;
use crate::payload::Encoding;
use crate::plan::Backoff;
use crate::shutdown::{Level, Shutdown};

/// A message that leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emitted {
    /// The workflow that it leaves.
    pub workflow: Arc<str>,
    /// First block it is about.
    pub first: u64,
    /// Last block it is about, inclusive.
    pub last: u64,
    /// Which part of the block.
    pub part: Part,
    /// How to read `bytes`.
    pub encoding: Encoding,
    /// What it carries.
    pub bytes: Bytes,
}

/// A sink has not taken a message.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{place}: {why}")]
pub struct SinkError {
    place: String,
    why: String,
    refused: bool,
}

/// Takes messages in chain order.
///
/// After a crash the messages from the cursor on may come again, up to 64 of them, and after an attempt
/// that seemed to fail the last, with the same content and [key](Emitted::key): a sink takes each once,
/// as a directory does by its file's name. A put that is dropped has failed.
pub trait Sink: Send {
    /// Takes one; it is durable when this returns.
    fn put<'a>(&'a mut self, emitted: &'a Emitted) -> BoxFuture<'a, Result<(), SinkError>>;

    /// Waits between attempts at a message that it does not take. What it [refuses] is tried again
    /// after the longest wait.
    ///
    /// [refuses]: SinkError::refused
    fn backoff(&self) -> Backoff {
        EACH_SECOND
    }
}

/// Settings of the service.
#[derive(Default)]
pub struct Options {
    /// Each message goes to all of them, in this order.
    pub sinks: Vec<Box<dyn Sink>>,
    /// Then to this stream, for who embeds the library. Dropping the receiver is fine.
    pub stream: Option<mpsc::Sender<Emitted>>,
}

/// For what costs little to try again.
const EACH_SECOND: Backoff = Backoff {
    initial: Duration::from_secs(1),
    max: Duration::from_secs(1),
    factor: 1.0,
    jitter: 0.0,
};

/// Hands what the sequencer emits to the sinks, until `shutdown` says [`Level::Stop`].
pub fn run(
    options: &mut Options,
    coordinator: Handle,
    blobs: Arc<BlobStore>,
    mut shutdown: Shutdown,
) -> BoxFuture<'_, Result<(), CoordinatorGone>> {
    // Boxed: compiled here, and not again in every program that calls it.
    Box::pin(async move {
        let (sender, mut emissions) = mpsc::unbounded_channel();
        coordinator.attach_sink(sender).await?;
        loop {
            let emission = tokio::select! {
                emission = emissions.recv() => emission,
                () = shutdown.reached(Level::Stop) => return Ok(()),
            };
            let Some(emission) = emission else {
                return Err(CoordinatorGone);
            };
            tokio::select! {
                () = deliver(options, &coordinator.plan().workflow, &emission, &blobs) => {}
                () = shutdown.reached(Level::Stop) => return Ok(()),
            }
            coordinator.emitted(emission.task.id.clone()).await?;
        }
    })
}

/// Hands a message to every sink, each until it takes it.
async fn deliver(
    options: &mut Options,
    workflow: &Arc<str>,
    emission: &Emission,
    blobs: &BlobStore,
) {
    let mut attempt = 0;
    let emitted = loop {
        attempt += 1;
        match resolve(workflow, emission, blobs).await {
            Ok(emitted) => break emitted,
            Err(error) => wait(&EACH_SECOND, attempt, emission.task.id.block, &error).await,
        }
    };
    for sink in &mut options.sinks {
        let mut attempt = 0;
        while let Err(error) = sink.put(&emitted).await {
            attempt += 1;
            wait(&sink.backoff(), attempt, emitted.first, &error).await;
        }
    }
    if let Some(stream) = &options.stream
        && stream.send(emitted).await.is_err()
    {
        options.stream = None;
    }
}

async fn resolve(
    workflow: &Arc<str>,
    emission: &Emission,
    blobs: &BlobStore,
) -> Result<Emitted, SinkError> {
    let task = &emission.task;
    let failed = |why: String| SinkError::new(format_args!("payload of {}", task.id), why);
    let resolved = Resolved::fetch(&task.payload, blobs).await;
    let resolved = resolved.map_err(|error| failed(with_sources(&error)))?;
    let encoding = match &resolved {
        Resolved::One(encoding, _) => *encoding,
        Resolved::Group { .. } => Encoding::Json,
    };
    Ok(Emitted {
        workflow: workflow.clone(),
        first: task.id.block,
        last: task.last,
        part: task.id.part.clone(),
        encoding,
        bytes: resolved.to_program_input().map_err(failed)?,
    })
}

/// Says that attempt number `attempt` (from 1) at a message failed, and waits for the next.
async fn wait(backoff: &Backoff, attempt: u32, block: u64, error: &SinkError) {
    let wait = match error.refused {
        true => backoff.max,
        false => backoff.delay(attempt, RandomState::new().hash_one(attempt)),
    };
    let again = format!("tried again in {wait:?}; later blocks wait");
    if error.refused {
        tracing::error!(
            block,
            attempt,
            "emission refused: {error}; mend it, {again}"
        );
    } else {
        tracing::error!(block, attempt, "emission not taken: {error}; {again}");
    }
    tokio::time::sleep(wait).await;
}

// === impl Emitted ===

impl Emitted {
    /// What tells it from every other emission, and is the same whenever it comes again:
    /// `WORKFLOW/sequencer/BLOCK/PART`.
    pub fn key(&self) -> String {
        let (workflow, first, part) = (&self.workflow, self.first, &self.part);
        format!("{workflow}/{}/{first}/{part}", Sequencer::NAME)
    }

    /// What it is about, by name, as receivers see it.
    pub(super) fn described(&self) -> [(&'static str, String); 4] {
        [
            ("workflow", self.workflow.to_string()),
            ("block", self.first.to_string()),
            ("last_block", self.last.to_string()),
            ("part", self.part.to_string()),
        ]
    }
}

// === impl SinkError ===

impl SinkError {
    /// Not now: trying again may help.
    pub fn new(place: impl Display, why: impl Display) -> Self {
        Self {
            place: place.to_string(),
            why: why.to_string(),
            refused: false,
        }
    }

    /// Not like this: only a person can mend it.
    pub fn refused(place: impl Display, why: impl Display) -> Self {
        Self {
            refused: true,
            ..Self::new(place, why)
        }
    }
}
