//! The service that delivers emissions to the sinks, in order.

use std::collections::VecDeque;
use std::fmt::Display;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use proofmill_bus::{BlobStore, with_sources};
use proofmill_trace::TraceContext;
use proofmill_workflow::Sequencer;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::check::{CheckedBatch, Checks, EmissionRefused, Remainder};
use crate::clock::wall_ms;
use crate::conversation::SinkCommand;
use crate::coordinator::CoordinatorGone;
use crate::executor::Resolved;
use crate::id::Part;
use crate::payload::Encoding;
use crate::plan::Backoff;
use crate::port::SinkPort;
use crate::record::TaskRecord;
use crate::role_counts::role_counts;
use crate::shutdown::{Level, Shutdown};
use crate::traces::delivery_span;

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
    /// Context of the emission's span, for the receiver; `None` if the block has none.
    pub trace: Option<TraceContext>,
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
    /// Begins what does not wait for a message, without blocking. Called when the service starts, before the first message, and again
    /// each time it starts with the same sink. Nothing by default.
    fn begin(&mut self) {}

    /// Stores a message; it is durable when this returns.
    fn put<'a>(&'a mut self, emitted: &'a Emitted) -> BoxFuture<'a, Result<(), SinkError>>;

    /// Stores messages, in order; all are durable when this returns. They are [`batch_max`](Sink::batch_max) at most. After an error
    /// any of the first may be stored, and all come again.
    fn put_all<'a>(&'a mut self, emitted: &'a [Emitted]) -> BoxFuture<'a, Result<(), SinkError>> {
        Box::pin(async move {
            for one in emitted {
                self.put(one).await?;
            }
            Ok(())
        })
    }

    /// Maximum number of messages that the sink stores together; 1 by default.
    fn batch_max(&self) -> usize {
        1
    }

    /// Longest time that a message waits for others, up to [`batch_max`](Sink::batch_max), to be stored with it; none by default.
    /// All sinks of a sequencer wait with it, for the shortest such time and the smallest such batch.
    fn batch_wait(&self) -> Duration {
        Duration::ZERO
    }

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

/// A message that is to be emitted.
struct Waiting {
    task: Arc<TaskRecord>,
    /// When it came, or somewhat before.
    since: Instant,
}

/// The batch that sinks wait for.
#[derive(Clone, Copy)]
struct Gathering {
    /// Messages of a full batch.
    count: usize,
    /// Longest time that a message waits.
    patience: Duration,
}

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
        for sink in &mut options.sinks {
            sink.begin();
        }
        let workflow = coordinator.plan().workflow.clone();
        let mut waiting: VecDeque<Waiting> = VecDeque::new();
        let group_max = options.sinks.iter().map(|sink| sink.batch_max());
        let group_max = group_max.max().unwrap_or(1).clamp(1, BATCH_MAX);
        let takes_several = options.checks.is_some() || group_max > 1;
        let gathering = Gathering::of(&options.sinks);
        let mut looked = Instant::now();
        loop {
            // What has come while others were delivered.
            if takes_several {
                take_all(&mut commands, &mut waiting, looked);
            }
            if waiting.is_empty() {
                let command = tokio::select! {
                    command = commands.recv() => command,
                    () = shutdown.reached(Level::Stop) => return Ok(()),
                };
                let SinkCommand::Emit(task) = command.ok_or(CoordinatorGone)?;
                let since = Instant::now();
                waiting.push_back(Waiting { task, since });
                if takes_several {
                    take_all(&mut commands, &mut waiting, since);
                }
            }
            if let (Some(gathering), Some(first)) = (gathering, waiting.front()) {
                let deadline = first.since + gathering.patience;
                tokio::select! {
                    () = gathering.gather(&mut commands, &mut waiting) => {}
                    () = tokio::time::sleep_until(deadline) => {}
                    // Nothing comes that they could wait for.
                    () = shutdown.reached(Level::Drain) => {}
                }
            }
            let (ready, remainder) = tokio::select! {
                checked = next_batch(options.checks.clone(), &mut waiting, &blobs, group_max) => checked,
                () = shutdown.reached(Level::Stop) => return Ok(()),
            };
            looked = Instant::now();
            for group in ready.chunks(group_max) {
                let places = tokio::select! {
                    places = deliver(options, &workflow, group) => places,
                    () = shutdown.reached(Level::Stop) => return Ok(()),
                };
                for ((task, _), places) in group.iter().zip(places) {
                    coordinator.emitted(task.id.clone(), places).await?;
                }
            }
            match remainder {
                Remainder::Empty => {}
                Remainder::Refused(refused) => return Err(refused.into()),
                Remainder::Retry(why) => {
                    let block = waiting.front().map(|first| first.task.id.block);
                    let trace_id = waiting
                        .front()
                        .map(|first| first.task.trace.trace.to_string());
                    tracing::error!(
                        block,
                        trace_id,
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

/// Takes the messages that have come; `since` is the time before which none of them has.
fn take_all(
    commands: &mut mpsc::UnboundedReceiver<SinkCommand>,
    waiting: &mut VecDeque<Waiting>,
    since: Instant,
) {
    while let Ok(SinkCommand::Emit(task)) = commands.try_recv() {
        waiting.push_back(Waiting { task, since });
    }
}

/// Removes from `waiting` the messages that may be emitted now, after the checks if there are any; without checks as many as a
/// sink takes together, `group_max`. Also returns the reason why the next may not, if so.
async fn next_batch(
    checks: Option<Arc<Mutex<Checks>>>,
    waiting: &mut VecDeque<Waiting>,
    blobs: &BlobStore,
    group_max: usize,
) -> (Vec<ResolvedTask>, Remainder) {
    let count = match &checks {
        Some(_) => size_of_batch(waiting),
        None => size_of_batch(waiting).min(group_max),
    };
    let mut batch = Vec::with_capacity(count);
    for Waiting { task, .. } in waiting.iter().take(count) {
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
fn size_of_batch(waiting: &VecDeque<Waiting>) -> usize {
    let mut bytes = 0u64;
    let fits = |waiting: &&Waiting| {
        bytes = bytes.saturating_add(waiting.task.payload.len());
        bytes <= BATCH_BYTES
    };
    let fitting = waiting.iter().take(BATCH_MAX).take_while(fits).count();
    fitting.max(1).min(waiting.len())
}

/// Delivers messages to every sink, retrying each until it accepts them. Returns the places of each message.
async fn deliver(
    options: &mut Options,
    workflow: &Arc<str>,
    group: &[ResolvedTask],
) -> Vec<Vec<String>> {
    let mut all = Vec::with_capacity(group.len());
    for (task, resolved) in group {
        let mut attempt = 0;
        all.push(loop {
            attempt += 1;
            match emitted(workflow, task, resolved) {
                Ok(emitted) => break emitted,
                Err(error) => wait(&RETRY_BACKOFF, attempt, task, &error).await,
            }
        });
    }
    let mut places = vec![Vec::with_capacity(options.sinks.len()); all.len()];
    for (index, sink) in options.sinks.iter_mut().enumerate() {
        let counts = role_counts().sink(workflow, index + 1);
        let mut count = sink.batch_max().max(1);
        let (mut from, mut attempt, mut begun_ms) = (0, 0, wall_ms());
        while from < all.len() {
            let end = (from + count).min(all.len());
            if let Err(error) = sink.put_all(&all[from..end]).await {
                attempt += 1;
                counts.note_failure();
                if error.refused && end - from > 1 {
                    // Those before the one that is refused are stored by themselves.
                    count = 1;
                    continue;
                }
                wait(&sink.backoff(), attempt, &group[from].0, &error).await;
                continue;
            }
            for at in from..end {
                counts.note_stored();
                let place = sink.place(&all[at]);
                let task = &group[at].0;
                delivery_span(workflow, task, &place, (begun_ms, wall_ms()), attempt + 1);
                places[at].push(place);
            }
            (from, attempt, begun_ms) = (end, 0, wall_ms());
        }
    }
    for emitted in all {
        if let Some(stream) = &options.stream
            && stream.send(emitted).await.is_err()
        {
            options.stream = None;
        }
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
        wait(&RETRY_BACKOFF, attempt, task, &error).await;
    }
}

/// A message of the sequencer's task, with the content of its blobs.
///
/// # Errors
/// They cannot be fetched now, or are not what the record says.
pub async fn message_of(
    workflow: &Arc<str>,
    task: &TaskRecord,
    blobs: &BlobStore,
) -> Result<Emitted, SinkError> {
    let resolved = Resolved::fetch(&task.payload, blobs).await;
    let resolved = resolved.map_err(|error| payload_fails(task, with_sources(&error)))?;
    emitted(workflow, task, &resolved)
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
        trace: task.trace.of_delivery(&task.id),
    })
}

/// Logs that attempt number `attempt` (from 1) at a message failed, and waits before the next.
async fn wait(backoff: &Backoff, attempt: u32, task: &TaskRecord, error: &SinkError) {
    let (block, trace_id) = (task.id.block, task.trace.trace);
    let wait = match error.refused {
        true => backoff.max,
        false => backoff.delay(attempt, RandomState::new().hash_one(attempt)),
    };
    let again = format!("tried again in {wait:?}; later blocks wait");
    if error.refused {
        tracing::error!(
            block,
            %trace_id,
            attempt,
            "emission refused: {error}; mend it, {again}"
        );
    } else {
        tracing::error!(block, %trace_id, attempt, "emission not taken: {error}; {again}");
    }
    tokio::time::sleep(wait).await;
}

// === impl Gathering ===

impl Gathering {
    /// The smallest batch, and the shortest wait, of the sinks that wait; `None` if none does.
    fn of(sinks: &[Box<dyn Sink>]) -> Option<Self> {
        let waiting = || sinks.iter().filter(|sink| !sink.batch_wait().is_zero());
        Some(Self {
            count: waiting().map(|sink| sink.batch_max()).min()?,
            patience: waiting().map(|sink| sink.batch_wait()).min()?,
        })
    }

    /// Receives messages until there is a full batch, one that is as large as messages are delivered together, or no more can come.
    async fn gather(
        self,
        commands: &mut mpsc::UnboundedReceiver<SinkCommand>,
        waiting: &mut VecDeque<Waiting>,
    ) {
        while waiting.len() < self.count && size_of_batch(waiting) == waiting.len() {
            let Some(SinkCommand::Emit(task)) = commands.recv().await else {
                return;
            };
            let since = Instant::now();
            waiting.push_back(Waiting { task, since });
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A sink with a size of batches and a wait, in seconds.
    struct Patient(usize, u64);

    impl Sink for Patient {
        fn put<'a>(&'a mut self, _: &'a Emitted) -> BoxFuture<'a, Result<(), SinkError>> {
            Box::pin(async { Ok(()) })
        }

        fn batch_max(&self) -> usize {
            self.0
        }

        fn batch_wait(&self) -> Duration {
            Duration::from_secs(self.1)
        }
    }

    #[test]
    fn sinks_that_do_not_wait_decide_nothing() {
        let gathering = |sinks: &[(usize, u64)]| {
            let boxed = |&(batch, wait): &(usize, u64)| Box::new(Patient(batch, wait)) as _;
            let sinks: Vec<Box<dyn Sink>> = sinks.iter().map(boxed).collect();
            Gathering::of(&sinks).map(|it| (it.count, it.patience.as_secs()))
        };
        assert_eq!(gathering(&[]), None);
        assert_eq!(gathering(&[(1, 0), (64, 0)]), None);
        assert_eq!(gathering(&[(64, 0), (8, 600)]), Some((8, 600)));
        assert_eq!(gathering(&[(16, 60), (8, 600)]), Some((8, 60)));
    }
}
