//! The JetStream log's handle.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use async_nats::jetstream::context::PublishErrorKind;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt};
use rand::Rng;
use tokio::sync::watch;

use super::connection::{Connection, RetryDeadline, with_sources};
use super::frame::{Assembly, Frame};
use super::frames::Frames;
use super::options::ConnectError;
use super::stream::LogStream;
use super::writer::{Shared, Writer};
use crate::error::{AppendError, LogFailure, ReadError};
use crate::key::Key;
use crate::log::{Durable, Entry, Log, LogUsage, Op, Seq};
use crate::pending::State;

/// Limit on bytes of keys and values accepted and not yet durable; an append that would exceed it
/// waits.
const MAX_PENDING_BYTES: usize = 64 << 20;

/// Maximum number of attempts of a new writer to get its first frame in before another of the old
/// writer's.
const FENCE_TRIES: usize = 1000;

/// A log in a JetStream stream, written by one process at a time: opening it shuts out every
/// earlier writer. [`Leases`](super::Leases) decide which process may open it.
///
/// Batches are accepted at once, as by the embedded log, and are durable when the server has
/// acknowledged their frame. While the server does not answer nothing becomes durable, and nothing
/// fails: the log continues when the server is back.
///
/// Memory in use grows with the number of live keys, not with their values.
#[derive(Debug)]
pub struct JetStreamLog {
    shared: Arc<Shared>,
    /// The records read when the log was opened, kept for the first replay so that the stream is
    /// read once.
    opened: Mutex<Option<Records>>,
}

/// Records in order.
type Records = BTreeMap<Seq, (Key, Bytes)>;

/// The state of the stream's records while it is read from its beginning.
#[derive(Default)]
struct Reading {
    records: Records,
    last: Seq,
    frames: Frames,
    assembly: Assembly,
}

// === impl Reading ===

impl Reading {
    fn take(
        &mut self,
        stream: &LogStream,
        sequence: u64,
        message: &Bytes,
    ) -> Result<(), ConnectError> {
        let taken = self.assembly.take(sequence, message);
        let taken = taken.map_err(|why| stream.damaged(sequence, why))?;
        if let Some((first, frame)) = taken {
            self.apply(first, sequence, frame);
        }
        Ok(())
    }

    fn apply(&mut self, first: u64, last: u64, frame: Frame) {
        self.frames.push(first, last, &frame);
        self.last = self.last.max(frame.last);
        for seq in frame.removed {
            self.records.remove(&seq);
        }
        self.records.extend(frame.puts);
    }
}

// === impl JetStreamLog ===

impl JetStreamLog {
    /// Opens the log `name`, which is created if necessary, and shuts out every earlier writer.
    /// `name` consists of ASCII letters, digits, `_` and `-`.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub fn open<'a>(
        connection: &'a Connection,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Self, ConnectError>> {
        // Boxed, so that it is compiled in this crate and not again in every caller's.
        Box::pin(async move {
            let opened = Self::open_allowed(connection, name);
            connection.or_refusal(opened).await?
        })
    }

    async fn open_allowed(connection: &Connection, name: &str) -> Result<Self, ConnectError> {
        let stream = LogStream::open(connection, name).await?;
        let id: u64 = rand::rng().random();
        let mut reading = Reading::default();
        let mut read_to = 0;
        let deadline = RetryDeadline::new();
        for _ in 0..FENCE_TRIES {
            let (first, last) = stream.bounds().await?;
            stream
                .read(first.max(read_to + 1), last, |sequence, message| {
                    reading.take(&stream, sequence, message)
                })
                .await?;
            read_to = last;
            let fenced = match Self::fence(&stream, id, last, reading.last).await {
                Ok(fenced) => fenced,
                // The frame may have been stored nevertheless; then the next pass reads it like any
                // other writer's.
                Err(why) if deadline.pause(&why).await => None,
                Err(why) => return Err(stream.unusable(why)),
            };
            if let Some(message) = fenced {
                reading.take(&stream, last + 1, &message)?;
                let live = reading
                    .records
                    .iter()
                    .map(|(seq, (key, _))| (key.clone(), *seq))
                    .collect();
                let state = State::new(live, reading.last);
                let shared = Arc::new(Shared::new(stream, state, reading.frames));
                let writer = Writer {
                    shared: shared.clone(),
                    id,
                    number: 1,
                    sequence: last + 1,
                    purged: first,
                };
                tokio::spawn(writer.run());
                return Ok(Self {
                    shared,
                    opened: Mutex::new(Some(reading.records)),
                });
            }
        }
        Err(stream.unusable("another process writes to it without pause".into()))
    }

    /// Writes an empty frame after message `last`, and returns it. `None` if another process wrote
    /// first.
    async fn fence(
        stream: &LogStream,
        id: u64,
        last: u64,
        last_record: Seq,
    ) -> Result<Option<Bytes>, String> {
        let frame = Frame {
            last: last_record,
            ..Frame::default()
        };
        let limit = stream.connection.max_message();
        let message = frame.encode(id, 0, limit).remove(0);
        let ack = match stream.publish(&message, last + 1).await {
            Ok(ack) => ack.await,
            Err(error) => Err(error),
        };
        match ack {
            Ok(_) => Ok(Some(message)),
            Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => Ok(None),
            Err(error) => Err(with_sources(&error)),
        }
    }

    /// Accepts nothing more, and returns when everything accepted is durable or the log has failed.
    ///
    /// # Errors
    /// The failure that kept accepted records from becoming durable.
    pub async fn close(&self) -> Result<(), Arc<LogFailure>> {
        self.shared.close();
        self.shared.state.finished().await
    }

    async fn find(&self, key: &Key) -> Result<Option<Entry>, ReadError> {
        loop {
            let found = {
                let state = self.shared.state.lock();
                if state.closing {
                    return Err(ReadError::Closed);
                }
                state.find(key)
            };
            let seq = match found {
                None => return Ok(None),
                Some(Ok(entry)) => return Ok(Some(entry)),
                Some(Err(seq)) => seq,
            };
            let place = self.shared.frames().frame_of(seq);
            let found = match place {
                Some((first, last)) => self.shared.stream.frame(first, last).await,
                None => Err("no frame holds it".into()),
            };
            match found.map(|mut frame| frame.puts.remove(&seq)) {
                Ok(Some((key, value))) => return Ok(Some(Entry { seq, key, value })),
                // The record was superseded or moved since it was looked up.
                _ if self.shared.state.lock().live.get(key) != Some(&seq)
                    || self.shared.frames().frame_of(seq) != place => {}
                Ok(None) => return Err(self.corrupt(seq, "its frame does not hold it".into())),
                Err(why) => return Err(self.unavailable(why)),
            }
        }
    }

    async fn snapshot(&self) -> Result<Vec<Entry>, ReadError> {
        let opened = self
            .opened
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let reading = ReaderGuard::new(&self.shared);
        let (live, recent) = {
            let state = self.shared.state.lock();
            if state.closing {
                return Err(ReadError::Closed);
            }
            if let Some(records) = opened.filter(|_| state.is_as_opened()) {
                return Ok(entries(records));
            }
            let live: HashMap<Seq, Key> = state
                .live
                .iter()
                .map(|(key, seq)| (*seq, key.clone()))
                .collect();
            (live, state.recent.clone())
        };
        let stream = &self.shared.stream;
        let (mut assembly, mut records) = (Assembly::default(), BTreeMap::new());
        // Removals are ignored: a record that is live in this snapshot may be removed during the
        // read.
        let mut keep = |sequence, message: &Bytes| {
            let taken = assembly.take(sequence, message);
            let taken = taken.map_err(|why| stream.damaged(sequence, why))?;
            if let Some((_, frame)) = taken {
                let wanted = frame.puts.into_iter();
                records.extend(wanted.filter(|(seq, _)| live.contains_key(seq)));
            }
            Ok(())
        };
        let bounds = stream.bounds().await;
        let read = match bounds {
            Ok((first, last)) => stream.read(first, last, &mut keep).await,
            Err(error) => Err(error),
        };
        read.map_err(|error| self.unavailable(error.to_string()))?;
        drop(reading);
        records.extend(recent);
        if let Some(seq) = live.keys().find(|seq| !records.contains_key(seq)) {
            return Err(self.corrupt(*seq, "it is live and not in the stream".into()));
        }
        Ok(entries(records))
    }

    fn corrupt(&self, seq: Seq, reason: String) -> ReadError {
        ReadError::Corrupt {
            place: self.shared.state.place.clone(),
            seq,
            reason,
        }
    }

    fn unavailable(&self, reason: String) -> ReadError {
        ReadError::Unavailable {
            place: self.shared.state.place.clone(),
            reason,
        }
    }
}

impl Log for JetStreamLog {
    fn append(&self, ops: Vec<Op>) -> BoxFuture<'_, Result<Seq, AppendError>> {
        let shared = &*self.shared;
        let wake = move || shared.work.notify_one();
        shared.state.append(ops, MAX_PENDING_BYTES, wake).boxed()
    }

    fn durable(&self) -> watch::Receiver<Durable> {
        self.shared.state.durable()
    }

    fn replay(&self) -> BoxStream<'_, Result<Entry, ReadError>> {
        let entries = self.snapshot().map(|snapshot| match snapshot {
            Ok(entries) => stream::iter(entries.into_iter().map(Ok)).boxed(),
            Err(error) => stream::iter([Err(error)]).boxed(),
        });
        entries.into_stream().flatten().boxed()
    }

    fn usage(&self) -> BoxFuture<'_, Option<LogUsage>> {
        async { self.shared.stream.usage().await }.boxed()
    }

    fn get(&self, key: &Key) -> BoxFuture<'_, Result<Option<Entry>, ReadError>> {
        let key = key.clone();
        async move { self.find(&key).await }.boxed()
    }
}

impl Drop for JetStreamLog {
    fn drop(&mut self) {
        self.shared.close();
    }
}

fn entries(records: Records) -> Vec<Entry> {
    let records = records.into_iter();
    records
        .map(|(seq, (key, value))| Entry { seq, key, value })
        .collect()
}

/// Keeps the stream from being purged while it is read.
struct ReaderGuard<'a>(&'a Shared);

impl<'a> ReaderGuard<'a> {
    fn new(shared: &'a Shared) -> Self {
        shared.readers.fetch_add(1, Ordering::SeqCst);
        Self(shared)
    }
}

impl Drop for ReaderGuard<'_> {
    fn drop(&mut self) {
        self.0.readers.fetch_sub(1, Ordering::SeqCst);
    }
}
