//! The service that delivers emissions to the sinks, in order.

use std::collections::VecDeque;
use std::fmt::Display;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use proofmill_bus::{BlobStore, with_sources};
use proofmill_workflow::Sequencer;
use tokio::sync::mpsc;

use super::check::{CheckedBatch, Checks, EmissionRefused, Remainder};
use crate::conversation::SinkCommand;
use crate::coordinator::CoordinatorGone;
use crate::executor::Resolved;
use crate::id::Part;
use crate::payload::Encoding;
use crate::plan::Backoff;
use crate::port::SinkPort;
use crate::record::TaskRecord;
use crate::shutdown::{Level, Shutdown};

/// A message that is emitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emitted {
    /// The name of the workflow.
    pub workflow: Arc<str>,
    /// First block that the message is about.
    pub first: u64,
    /// Last block that the message is about, inclusive.
    pub last: u64,
    /// The part of the block that the message is about.
    pub part: Part,
    /// Encoding of `bytes`.
    pub encoding: Encoding,
    /// The payload.
    pub bytes: Bytes,
}

/// The reason why a sink has not accepted a message.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{place}: {why}")]
pub struct SinkError {
    place: String,
    why: String,
    refused: bool,
}

/// A destination that accepts messages in chain order.
///
/// After a crash up to 64 messages, from the cursor on, may come again, and after an attempt that
/// seemed to fail the last one, with the same content and [key](Emitted::key). A sink must store
/// each message once, as a directory does by its file's name. A put whose future is dropped has
/// failed.
pub trait Sink: Send {
    /// Stores a message; it is durable when this returns.
    fn put<'a>(&'a mut self, emitted: &'a Emitted) -> BoxFuture<'a, Result<(), SinkError>>;

    /// Description of the place where the sink stores this message, such as a file or an address,
    /// for people who ask where a block went. Contains no secrets.
    fn place(&self, _emitted: &Emitted) -> String {
        "a sink of the program itself".to_owned()
    }

    /// Waits between attempts to store a message. A message that the sink [refuses] is tried again
    /// after the longest wait. One second each by default.
    ///
    /// [refuses]: SinkError::refused
    fn backoff(&self) -> Backoff {
        RETRY_BACKOFF
    }
}

/// The reason why emission has stopped.
#[derive(Debug, thiserror::Error)]
pub enum SinkStopped {
    /// The coordinator has stopped.
    #[error(transparent)]
    CoordinatorGone(#[from] CoordinatorGone),
    /// A message was refused by a check.
    #[error(transparent)]
    Refused(#[from] EmissionRefused),
}

/// Options of the service.
#[derive(Default)]
pub struct Options {
    /// Checks of each message before it is emitted; `None` for no checks.
    pub checks: Option<Arc<Mutex<Checks>>>,
    /// The sinks; each message goes to all of them, in this order.
    pub sinks: Vec<Box<dyn Sink>>,
    /// Channel that receives each message after the sinks, for programs that embed the library.
    /// Dropping the receiver is no error.
    pub stream: Option<mpsc::Sender<Emitted>>,
}

/// Waits between attempts that cost little.
const RETRY_BACKOFF: Backoff = Backoff {
    initial: Duration::from_secs(1),
    max: Duration::from_secs(1),
    factor: 1.0,
    jitter: 0.0,
};

/// Maximum number of messages checked together: the number that the core hands out at once.
const BATCH_MAX: usize = 64;

/// Maximum bytes of messages checked together, unless the first alone has more.
const BATCH_BYTES: u64 = 16 << 20;

/// A message with the content of its blobs.
type ResolvedTask = (Arc<TaskRecord>, Resolved);

/// Delivers the sequencer's emissions to the sinks, until `shutdown` reaches [`Level::Stop`].
///
/// # Errors
/// [`SinkStopped::Refused`] if a message is wrong: neither it nor a later one has been emitted.
pub fn run(
    options: &mut Options,
    coordinator: SinkPort,
    blobs: Arc<BlobStore>,
    mut shutdown: Shutdown,
) -> BoxFuture<'_, Result<(), SinkStopped>> {
    // Boxed, so that it is compiled in this crate and not again in every caller's.
    Box::pin(async move {
        let (sender, mut commands) = mpsc::unbounded_channel();
        coordinator.attach(sender).await?;
        let workflow = coordinator.plan().workflow.clone();
        let mut waiting: VecDeque<Arc<TaskRecord>> = VecDeque::new();
        loop {
            if waiting.is_empty() {
                let command = tokio::select! {
                    command = commands.recv() => command,
                    () = shutdown.reached(Level::Stop) => return Ok(()),
                };
                let SinkCommand::Emit(task) = command.ok_or(CoordinatorGone)?;
                waiting.push_back(task);
            }
            if options.checks.is_some() {
                while let Ok(SinkCommand::Emit(task)) = commands.try_recv() {
                    waiting.push_back(task);
                }
            }
            let (ready, remainder) = tokio::select! {
                checked = next_batch(options.checks.clone(), &mut waiting, &blobs) => checked,
                () = shutdown.reached(Level::Stop) => return Ok(()),
            };
            for (task, resolved) in ready {
                let places = tokio::select! {
                    places = deliver(options, &workflow, &task, resolved) => places,
                    () = shutdown.reached(Level::Stop) => return Ok(()),
                };
                coordinator.emitted(task.id.clone(), places).await?;
            }
            match remainder {
                Remainder::Empty => {}
                Remainder::Refused(refused) => return Err(refused.into()),
                Remainder::Retry(why) => {
                    let block = waiting.front().map(|task| task.id.block);
                    tracing::error!(
                        block,
                        "what is to be emitted cannot be checked now: {why}; tried again in {:?}, \
                         later blocks wait",
                        RETRY_BACKOFF.initial
                    );
                    tokio::select! {
                        () = tokio::time::sleep(RETRY_BACKOFF.initial) => {}
                        () = shutdown.reached(Level::Stop) => return Ok(()),
                    }
                }
            }
        }
    })
}

/// Removes from `waiting` the messages that may be emitted now, after the checks if there are any.
/// Also returns the reason why the next may not, if so.
async fn next_batch(
    checks: Option<Arc<Mutex<Checks>>>,
    waiting: &mut VecDeque<Arc<TaskRecord>>,
    blobs: &BlobStore,
) -> (Vec<ResolvedTask>, Remainder) {
    let count = match &checks {
        Some(_) => size_of_batch(waiting),
        None => 1,
    };
    let mut batch = Vec::with_capacity(count);
    for task in waiting.iter().take(count) {
        let resolved = resolve(task, blobs).await;
        batch.push((task.clone(), resolved));
    }
    let Some(checks) = checks else {
        waiting.drain(..batch.len());
        return (batch, Remainder::Empty);
    };
    let checked = tokio::task::spawn_blocking(move || {
        // A check that panicked has recorded nothing.
        let mut checks = checks.lock().unwrap_or_else(PoisonError::into_inner);
        let checked = checks.examine(&batch);
        (batch, checked)
    });
    match checked.await {
        Ok((
            mut batch,
            CheckedBatch {
                emittable,
                remainder,
            },
        )) => {
            batch.truncate(emittable);
            waiting.drain(..emittable);
            (batch, remainder)
        }
        Err(error) => (
            Vec::new(),
            Remainder::Retry(format!("the check ended: {error}")),
        ),
    }
}

/// Number of messages, from the first, to check together.
fn size_of_batch(waiting: &VecDeque<Arc<TaskRecord>>) -> usize {
    let mut bytes = 0u64;
    let fits = |task: &&Arc<TaskRecord>| {
        bytes = bytes.saturating_add(task.payload.len());
        bytes <= BATCH_BYTES
    };
    let fitting = waiting.iter().take(BATCH_MAX).take_while(fits).count();
    fitting.max(1).min(waiting.len())
}

/// Delivers a message to every sink, retrying each until it accepts the message. Returns the
/// places.
async fn deliver(
    options: &mut Options,
    workflow: &Arc<str>,
    task: &TaskRecord,
    resolved: Resolved,
) -> Vec<String> {
    let mut attempt = 0;
    let emitted = loop {
        attempt += 1;
        match emitted(workflow, task, &resolved) {
            Ok(emitted) => break emitted,
            Err(error) => wait(&RETRY_BACKOFF, attempt, task.id.block, &error).await,
        }
    };
    let mut places = Vec::with_capacity(options.sinks.len());
    for sink in &mut options.sinks {
        let mut attempt = 0;
        while let Err(error) = sink.put(&emitted).await {
            attempt += 1;
            wait(&sink.backoff(), attempt, emitted.first, &error).await;
        }
        places.push(sink.place(&emitted));
    }
    if let Some(stream) = &options.stream
        && stream.send(emitted).await.is_err()
    {
        options.stream = None;
    }
    places
}

/// Fetches the blobs of a message, retrying until all are fetched.
async fn resolve(task: &TaskRecord, blobs: &BlobStore) -> Resolved {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let error = match Resolved::fetch(&task.payload, blobs).await {
            Ok(resolved) => return resolved,
            Err(error) => payload_fails(task, with_sources(&error)),
        };
        wait(&RETRY_BACKOFF, attempt, task.id.block, &error).await;
    }
}

fn payload_fails(task: &TaskRecord, why: String) -> SinkError {
    SinkError::new(format_args!("payload of {}", task.id), why)
}

fn emitted(
    workflow: &Arc<str>,
    task: &TaskRecord,
    resolved: &Resolved,
) -> Result<Emitted, SinkError> {
    let encoding = match resolved {
        Resolved::One(encoding, _) => *encoding,
        Resolved::Group { .. } => Encoding::Json,
    };
    let bytes = resolved.to_program_input();
    Ok(Emitted {
        workflow: workflow.clone(),
        first: task.id.block,
        last: task.last,
        part: task.id.part.clone(),
        encoding,
        bytes: bytes.map_err(|why| payload_fails(task, why))?,
    })
}

/// Logs that attempt number `attempt` (from 1) at a message failed, and waits before the next.
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
    /// The key of the emission, unique and the same each time it comes:
    /// `WORKFLOW/sequencer/BLOCK/PART`.
    pub fn key(&self) -> String {
        let (workflow, first, part) = (&self.workflow, self.first, &self.part);
        format!("{workflow}/{}/{first}/{part}", Sequencer::NAME)
    }

    /// Names and values that describe the emission to receivers.
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
    /// A temporary error: trying again may help.
    pub fn new(place: impl Display, why: impl Display) -> Self {
        Self {
            place: place.to_string(),
            why: why.to_string(),
            refused: false,
        }
    }

    /// A permanent error: trying again helps only after a person has fixed the cause.
    pub fn refused(place: impl Display, why: impl Display) -> Self {
        Self {
            refused: true,
            ..Self::new(place, why)
        }
    }
}
