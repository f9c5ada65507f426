//! The task that makes accepted batches durable: everything queued goes into one frame, and the
//! next frame is sent without waiting for the acknowledgement of the one before.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::jetstream::context::{PublishAckFuture, PublishErrorKind};
use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::connection::with_sources;
use super::frame::{Frame, Origin};
use super::frames::Frames;
use super::stream::LogStream;
use crate::log::Seq;
use crate::pending::{Group, SharedState, State};

/// Maximum number of unacknowledged messages. It is small so that batches that wait share the next
/// frame.
const IN_FLIGHT: usize = 4;

/// Minimum number of unneeded messages at the beginning of the stream for which a purge is
/// requested.
const PURGE_FROM: u64 = 256;

/// State that appenders, readers and the writer share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) stream: LogStream,
    pub(super) state: SharedState,
    frames: Mutex<Frames>,
    pub(super) work: Notify,
    /// Number of replays in progress; nothing is purged during one.
    pub(super) readers: AtomicUsize,
}

type Ack = <PublishAckFuture as IntoFuture>::IntoFuture;

/// A message not yet acknowledged.
struct Sent {
    payload: Bytes,
    /// The stream sequence that the message must get.
    sequence: u64,
    ack: Ack,
    /// The last position that becomes durable with the message, and the bytes of its group; `None`
    /// unless the message is the last one of a frame.
    commits: Option<(Seq, usize)>,
}

/// The writer's side of the stream.
pub(super) struct Writer {
    pub(super) shared: Arc<Shared>,
    /// Random id that distinguishes this writer's messages from all others.
    pub(super) id: u64,
    /// The number of the next message.
    pub(super) number: u64,
    /// The stream sequence of the last message sent.
    pub(super) sequence: u64,
    /// Stream sequence before which everything has been purged.
    pub(super) purged: u64,
}

// === impl Shared ===

impl Shared {
    pub(super) fn new(stream: LogStream, state: State, frames: Frames) -> Self {
        let options = stream.connection.options();
        let place = format!("{} on {}", stream.name(), options.shown());
        Self {
            stream,
            state: SharedState::new(place, state),
            frames: Mutex::new(frames),
            work: Notify::new(),
            readers: AtomicUsize::new(0),
        }
    }

    pub(super) fn frames(&self) -> MutexGuard<'_, Frames> {
        // No code panics half-way through a change under this lock.
        self.frames.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn close(&self) {
        self.state.lock().closing = true;
        self.work.notify_one();
    }

    fn fail(&self, reason: String, remedy: &str) {
        if let Some(failure) = self.state.fail(reason, remedy) {
            tracing::warn!(error = %failure, "the log has stopped");
        }
    }
}

/// The reason why the writer stops.
enum Stop {
    /// Another process writes the log now.
    Superseded,
    /// The stream lacks messages that it has acknowledged.
    Lost(String),
}

// === impl Writer ===

impl Writer {
    /// Writes until the log is closed, or another process writes it.
    pub(super) async fn run(mut self) {
        let shared = self.shared.clone();
        let ending = Ending(&shared);
        match self.write().await {
            Ok(()) => {}
            Err(Stop::Superseded) => shared.fail(
                "another process writes it now".into(),
                "this process must stop; nothing that was acknowledged is lost",
            ),
            Err(Stop::Lost(why)) => shared.fail(
                why,
                "the server has lost what it acknowledged: look at its disks, and set \
                 `sync_interval: always` or 3 replicas",
            ),
        }
        drop(ending);
    }

    async fn write(&mut self) -> Result<(), Stop> {
        let shared = self.shared.clone();
        let mut sent: VecDeque<Sent> = VecDeque::new();
        loop {
            while sent.len() < IN_FLIGHT {
                let group = {
                    let mut state = shared.state.lock();
                    if !state.has_work() {
                        break;
                    }
                    state.take()
                };
                self.send(group, &mut sent).await;
            }
            let Some(mut first) = sent.pop_front() else {
                let closing = {
                    let state = shared.state.lock();
                    state.closing && !state.has_work()
                };
                if closing {
                    return Ok(());
                }
                shared.work.notified().await;
                continue;
            };
            // Groups that are queued meanwhile are sent while this acknowledgement is awaited.
            let outcome = loop {
                tokio::select! {
                    biased;
                    outcome = &mut first.ack => break outcome,
                    () = shared.work.notified(), if sent.len() + 1 < IN_FLIGHT => {
                        let group = {
                            let mut state = shared.state.lock();
                            if !state.has_work() {
                                continue;
                            }
                            state.take()
                        };
                        self.send(group, &mut sent).await;
                    }
                }
            };
            match outcome {
                Ok(ack) if ack.sequence == first.sequence => {}
                Ok(ack) => {
                    return Err(Stop::Lost(format!(
                        "message {} was stored as {}",
                        first.sequence, ack.sequence
                    )));
                }
                Err(error) => {
                    tracing::debug!(error = %with_sources(&error), "a frame is sent again");
                    self.resend_until_stored(&first.payload, first.sequence)
                        .await?;
                }
            }
            if let Some((seq, bytes)) = first.commits {
                shared.state.committed(seq, bytes);
                self.prune(first.sequence);
            }
        }
    }

    /// Sends a group as a frame, together with live records of an old frame that is to be purged.
    async fn send(&mut self, group: Group, sent: &mut VecDeque<Sent>) {
        let shared = self.shared.clone();
        let mut frame = Frame {
            last: group.last,
            puts: group.puts,
            removed: group.removed,
        };
        let to_compact = shared.frames().frame_to_compact();
        if let Some((first, last)) = to_compact {
            match shared.stream.frame(first, last).await {
                Ok(old) => {
                    let frames = shared.frames();
                    for (seq, record) in old.puts {
                        if frames.lives_in(seq, last) && !frame.removed.contains(&seq) {
                            frame.puts.insert(seq, record);
                        }
                    }
                }
                Err(why) => tracing::warn!(why, "old records are left where they are for now"),
            }
        }
        let limit = shared.stream.connection.max_message();
        let messages = frame.encode(self.id, self.number, limit);
        self.number += messages.len() as u64;
        let first = self.sequence + 1;
        let last = self.sequence + messages.len() as u64;
        shared.frames().push(first, last, &frame);
        for (payload, sequence) in messages.into_iter().zip(first..) {
            let commits = (sequence == last).then_some((group.last, group.bytes));
            let ack = self.publish(&payload, sequence).await;
            sent.push_back(Sent {
                payload,
                sequence,
                ack,
                commits,
            });
        }
        self.sequence = last;
    }

    /// Publishes a message that must get the given stream sequence.
    async fn publish(&self, payload: &Bytes, sequence: u64) -> Ack {
        let stream = &self.shared.stream;
        let mut pause = Duration::from_millis(10);
        loop {
            match stream.publish(payload, sequence).await {
                Ok(ack) => return ack.into_future(),
                Err(error) => {
                    // The client's own buffer is full, or it is reconnecting.
                    tracing::debug!(error = %with_sources(&error), "a frame has to wait");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(Duration::from_secs(1));
                }
            }
        }
    }

    /// Sends a message repeatedly until it is stored, or another writer's message is found in its
    /// place.
    async fn resend_until_stored(&self, payload: &Bytes, sequence: u64) -> Result<(), Stop> {
        let mut pause = Duration::from_millis(10);
        let mut warned = Instant::now();
        loop {
            let ack = self.publish(payload, sequence).await;
            match ack.await {
                Ok(ack) if ack.sequence == sequence => return Ok(()),
                Ok(ack) => {
                    return Err(Stop::Lost(format!(
                        "message {sequence} was stored as {}",
                        ack.sequence
                    )));
                }
                Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => {
                    // An earlier attempt was stored and its answer lost, or another process writes.
                    if let Some(found) = self.check_stored(payload, sequence).await {
                        return found;
                    }
                }
                Err(error) => {
                    if warned.elapsed() > Duration::from_secs(5) {
                        warned = Instant::now();
                        let error = with_sources(&error);
                        tracing::warn!(error, "the bus does not store; trying on");
                    }
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(500));
        }
    }

    /// Whether the message is in the stream; `None` if that cannot be determined now.
    async fn check_stored(&self, payload: &Bytes, sequence: u64) -> Option<Result<(), Stop>> {
        let stream = &self.shared.stream;
        match stream.message(sequence).await {
            Ok(Some(found)) if Origin::of(&found) == Origin::of(payload) => Some(Ok(())),
            Ok(Some(_)) => Some(Err(Stop::Superseded)),
            Ok(None) => {
                let (first, last) = stream.bounds().await.ok()?;
                if first > sequence {
                    // Another writer, whose state is newer, has purged it.
                    return Some(Err(Stop::Superseded));
                }
                (last + 1 < sequence).then(|| {
                    Err(Stop::Lost(format!(
                        "the stream ends at message {last}, and {} had been acknowledged",
                        sequence - 1
                    )))
                })
            }
            Err(_) => None,
        }
    }

    /// Purges unneeded messages at the beginning of the stream, once there are enough of them.
    fn prune(&mut self, durable: u64) {
        if self.shared.readers.load(Ordering::SeqCst) > 0 {
            return;
        }
        let Some(needed) = self.shared.frames().prune(durable) else {
            return;
        };
        if needed < self.purged + PURGE_FROM {
            return;
        }
        self.purged = needed;
        let stream = self.shared.stream.clone();
        tokio::spawn(async move {
            if let Err(why) = stream.purge_before(needed).await {
                // A later purge will include these messages.
                tracing::debug!(why, "not purged");
            }
        });
    }
}

/// Reports that the writer has ended, even after a panic.
struct Ending<'a>(&'a Shared);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let reason = "the writer panicked, which is a defect: please report it";
            self.0.fail(reason.into(), "start again");
        }
        self.0.state.finish();
    }
}
