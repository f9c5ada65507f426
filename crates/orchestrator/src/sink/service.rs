//! Handing emissions to the sinks, in order.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use proofmill_bus::{BlobStore, with_sources};
use tokio::sync::mpsc;

use crate::coordinator::{CoordinatorGone, Emission, Handle};
use crate::executor::Resolved;
use crate::payload::Encoding;
use crate::shutdown::{Level, Shutdown};

/// A message that leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emitted {
    /// First block it is about.
    pub first: u64,
    /// Last block it is about, inclusive.
    pub last: u64,
    /// How to read `bytes`.
    pub encoding: Encoding,
    /// What it carries.
    pub bytes: Bytes,
}

/// A sink could not take a message.
#[derive(Debug, Clone, thiserror::Error)]
#[error("cannot write {place}: {why}")]
pub struct SinkError {
    place: String,
    why: String,
}

/// Takes messages in chain order.
///
/// After a crash the messages from the cursor on may come again, up to 64 of them, with the same
/// content: a sink takes each once, as a directory does by its file's name.
pub trait Sink: Send {
    /// Takes one; it is durable when this returns.
    fn put<'a>(&'a mut self, emitted: &'a Emitted) -> BoxFuture<'a, Result<(), SinkError>>;
}

/// Settings of the service.
#[derive(Default)]
pub struct Options {
    /// Each message goes to all of them, in this order.
    pub sinks: Vec<Box<dyn Sink>>,
    /// Then to this stream, for who embeds the library. Dropping the receiver is fine.
    pub stream: Option<mpsc::Sender<Emitted>>,
}

/// Waits between two attempts at a sink that fails (a full disk, say).
const RETRY: Duration = Duration::from_secs(1);

/// Hands what the sequencer emits to the sinks, until `shutdown` says [`Level::Stop`].
pub async fn run(
    options: &mut Options,
    coordinator: Handle,
    blobs: Arc<BlobStore>,
    mut shutdown: Shutdown,
) -> Result<(), CoordinatorGone> {
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
        while let Err(why) = deliver(options, &emission, &blobs).await {
            tracing::error!(block = emission.task.id.block, "emission waits: {why}");
            tokio::select! {
                () = tokio::time::sleep(RETRY) => {}
                () = shutdown.reached(Level::Stop) => return Ok(()),
            }
        }
        coordinator.emitted(emission.task.id.clone()).await?;
    }
}

async fn deliver(
    options: &mut Options,
    emission: &Emission,
    blobs: &BlobStore,
) -> Result<(), String> {
    let task = &emission.task;
    let resolved = Resolved::fetch(&task.payload, blobs).await;
    let resolved = resolved.map_err(|error| with_sources(&error))?;
    let encoding = match &resolved {
        Resolved::One(encoding, _) => *encoding,
        Resolved::Group { .. } => Encoding::Json,
    };
    let bytes = resolved.to_program_input()?;
    let emitted = Emitted {
        first: task.id.block,
        last: task.last,
        encoding,
        bytes,
    };
    for sink in &mut options.sinks {
        sink.put(&emitted)
            .await
            .map_err(|error| error.to_string())?;
    }
    if let Some(stream) = &options.stream
        && stream.send(emitted).await.is_err()
    {
        options.stream = None;
    }
    Ok(())
}

// === impl SinkError ===

impl SinkError {
    /// `place` could not be written.
    pub fn new(place: &Path, why: &dyn std::error::Error) -> Self {
        Self {
            place: place.display().to_string(),
            why: why.to_string(),
        }
    }
}
