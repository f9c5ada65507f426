//! The embedded log's handle.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt};
use tokio::sync::watch;

use super::loss::Loss;
use super::options::{OpenError, Options};
use super::store::{self, Opened, Reader, Store};
use super::verify::StoreError;
use super::writer::{self, Shared};
use crate::error::{AppendError, LogFailure, ReadError};
use crate::key::Key;
use crate::log::{Durable, Entry, Log, LogUsage, Op, Seq};
use crate::memory::MemoryLog;
use crate::pending::State;
use proofmill_files::{DirectoryLock, check_private_directory, make_private_directory};

/// Number of records that a replay reads at a time.
const REPLAY_CHUNK: i64 = 256;

/// The log in one directory of this machine, open in one process at a time.
///
/// An append checks its expectations against an index in memory and never waits for the disk,
/// unless more than [`Options::max_pending_bytes`] are not yet durable. Two threads take turns:
/// each commits whatever is queued in one transaction with one fsync, then advances the watermark.
/// Reads take microseconds from the page cache and run on the thread that awaits them.
///
/// Memory in use grows with the number of live keys (about 100 bytes and the key for each), not
/// with their values. Dropping the handle, or [`EmbeddedLog::close`], makes everything accepted
/// durable before it releases the directory.
#[derive(Debug)]
pub struct EmbeddedLog {
    shared: Arc<Shared>,
    options: Options,
    loss: Option<Loss>,
    reader: Mutex<Option<Reader>>,
    /// The lock is released only after the writer has ended.
    writer: Mutex<Option<(JoinHandle<()>, DirectoryLock)>>,
}

// === impl EmbeddedLog ===

impl EmbeddedLog {
    /// Opens the log in `dir`, which is created (mode 0700) if necessary, and verifies every live
    /// record. Blocks for about 1 ms per 1,000 of them.
    ///
    /// # Errors
    /// See [`OpenError`]; in particular, if another handle has the log open, or if it contains less
    /// than was durable ([`OpenError::Damaged`]).
    pub fn open(dir: impl AsRef<Path>, options: Options) -> Result<Self, OpenError> {
        let dir = dir.as_ref();
        let directory = |source| OpenError::Directory {
            path: dir.to_owned(),
            source,
        };
        make_private_directory(dir).map_err(directory)?;
        let lock = DirectoryLock::acquire(dir).map_err(directory)??;
        let Opened { store, live, loss } = Store::open(dir, options.accept_loss)?;
        if let Some(loss) = &loss {
            tracing::warn!(%loss, "going on without what the log has lost");
        }
        let reader = Reader::open(dir).map_err(|error| OpenError::Unusable {
            path: dir.to_owned(),
            reason: error.to_string(),
        })?;
        let state = State::new(live, store.head().seq);
        let shared = Arc::new(Shared::new(dir.to_owned(), state));
        let for_writer = shared.clone();
        let writer = thread::Builder::new()
            .name("proofmill-log".to_owned())
            .spawn(move || writer::run(&for_writer, store))
            .map_err(OpenError::Thread)?;
        Ok(Self {
            shared,
            options,
            loss,
            reader: Mutex::new(Some(reader)),
            writer: Mutex::new(Some((writer, lock))),
        })
    }

    /// The log in `dir` as it is on disk, copied into memory; appends to the copy never reach the
    /// disk. Nothing is written, not even the lock's holder, so this works on a full or read-only
    /// disk. During the read no other process can open the log for writing.
    ///
    /// # Errors
    /// As for [`EmbeddedLog::open`].
    pub fn read(dir: impl AsRef<Path>) -> Result<MemoryLog, OpenError> {
        let dir = dir.as_ref();
        let directory = |source| OpenError::Directory {
            path: dir.to_owned(),
            source,
        };
        match check_private_directory(dir) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(MemoryLog::new());
            }
            checked => checked.map_err(directory)?,
        }
        let _shared = DirectoryLock::share(dir).map_err(directory)??;
        let (last, entries) = store::read_only(dir)?;
        Ok(MemoryLog::holding(entries, last))
    }

    /// The loss found when the log was opened with [`Options::accept_loss`]; `None` if nothing was
    /// missing.
    pub fn accepted_loss(&self) -> Option<&Loss> {
        self.loss.as_ref()
    }

    /// Accepts nothing more, makes everything accepted durable, and releases the directory.
    ///
    /// # Errors
    /// The failure that kept accepted records from becoming durable.
    pub async fn close(&self) -> Result<(), Arc<LogFailure>> {
        self.begin_close();
        let ended = self.shared.state.finished().await;
        self.release();
        ended
    }

    fn begin_close(&self) {
        // The writer's connection must close last: it then removes the write-ahead log.
        self.reader
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        self.shared.close();
    }

    fn release(&self) {
        let writer = self
            .writer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some((writer, lock)) = writer {
            // A panic of the writer has been reported as a failure by the writer itself.
            let _ = writer.join();
            drop(lock);
        }
    }

    fn get_now(&self, key: &Key) -> Result<Option<Entry>, ReadError> {
        loop {
            let seq = match self.shared.state.lock().find(key) {
                None => return Ok(None),
                Some(Ok(entry)) => return Ok(Some(entry)),
                Some(Err(seq)) => seq,
            };
            let found = {
                let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
                let reader = reader.as_ref().ok_or(ReadError::Closed)?;
                reader.get(seq).map_err(|error| self.read_error(error))?
            };
            if found.is_some() {
                return Ok(found);
            }
            // The record was superseded since it was looked up, or it is lost.
            if self.shared.state.lock().live.get(key) == Some(&seq) {
                return Err(self.missing(seq));
            }
        }
    }

    fn snapshot(&self) -> Result<Snapshot, ReadError> {
        if self
            .reader
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_none()
        {
            return Err(ReadError::Closed);
        }
        let read_error = |error| self.read_error(error);
        let reader = Reader::open(&self.shared.dir).map_err(read_error)?;
        // While the lock is held the store contains everything durable, perhaps the groups being
        // committed, and nothing later; together with `recent` and `ended` that is the log at this
        // moment.
        let state = self.shared.state.lock();
        reader.pin().map_err(read_error)?;
        let entry = |(seq, (key, value)): (&Seq, &(Key, bytes::Bytes))| Entry {
            seq: *seq,
            key: key.clone(),
            value: value.clone(),
        };
        let recent: VecDeque<Entry> = state.recent.iter().map(entry).collect();
        let mut ended: Vec<Seq> = state.ended.values().copied().collect();
        ended.sort_unstable();
        Ok(Snapshot {
            reader: Some(reader),
            after: Seq(0),
            durable: state.durable,
            stored: state.live.len() - recent.len(),
            ended,
            ready: VecDeque::new(),
            recent,
        })
    }

    fn read_error(&self, error: StoreError) -> ReadError {
        let place = self.shared.state.place.clone();
        match error {
            StoreError::Corrupt { seq, reason } => ReadError::Corrupt { place, seq, reason },
            error => ReadError::Unavailable {
                place,
                reason: error.to_string(),
            },
        }
    }

    fn missing(&self, seq: Seq) -> ReadError {
        let reason = "it is live and not in the store".to_owned();
        self.read_error(StoreError::Corrupt { seq, reason })
    }
}

/// Bytes of the files in a log's directory, and those left for this user on its file system.
fn usage(dir: &Path) -> Option<LogUsage> {
    let files = std::fs::read_dir(dir).ok()?.flatten();
    let sizes = files.filter_map(|file| file.metadata().ok());
    let bytes = sizes.filter(|it| it.is_file()).map(|it| it.len()).sum();
    let system = rustix::fs::statvfs(dir).ok()?;
    let free = system.f_bavail.saturating_mul(system.f_frsize);
    Some(LogUsage {
        bytes,
        limit: Some(free.saturating_add(bytes)),
    })
}

impl Log for EmbeddedLog {
    fn append(&self, ops: Vec<Op>) -> BoxFuture<'_, Result<Seq, AppendError>> {
        let shared = &*self.shared;
        let wake = move || shared.work.notify_one();
        shared
            .state
            .append(ops, self.options.max_pending_bytes, wake)
            .boxed()
    }

    fn durable(&self) -> watch::Receiver<Durable> {
        self.shared.state.durable()
    }

    fn replay(&self) -> BoxStream<'_, Result<Entry, ReadError>> {
        let snapshot = match self.snapshot() {
            Ok(snapshot) => snapshot,
            Err(error) => return stream::once(async { Err(error) }).boxed(),
        };
        stream::unfold(Some(snapshot), move |snapshot| async move {
            let mut snapshot = snapshot?;
            match snapshot.next(self) {
                Ok(entry) => entry.map(|entry| (Ok(entry), Some(snapshot))),
                Err(error) => Some((Err(error), None)),
            }
        })
        .boxed()
    }

    fn usage(&self) -> BoxFuture<'_, Option<LogUsage>> {
        let dir = self.shared.dir.clone();
        let asked = tokio::task::spawn_blocking(move || usage(&dir));
        async { asked.await.ok()? }.boxed()
    }

    fn get(&self, key: &Key) -> BoxFuture<'_, Result<Option<Entry>, ReadError>> {
        let key = key.clone();
        async move { self.get_now(&key) }.boxed()
    }
}

impl Drop for EmbeddedLog {
    fn drop(&mut self) {
        self.begin_close();
        self.release();
    }
}

/// The live records at one moment.
#[derive(Debug)]
struct Snapshot {
    /// `None` once the store is read to its end.
    reader: Option<Reader>,
    after: Seq,
    durable: Seq,
    /// Number of live records not yet read from the store.
    stored: usize,
    /// Records in the store that are no longer live, sorted.
    ended: Vec<Seq>,
    ready: VecDeque<Entry>,
    recent: VecDeque<Entry>,
}

// === impl Snapshot ===

impl Snapshot {
    fn next(&mut self, log: &EmbeddedLog) -> Result<Option<Entry>, ReadError> {
        while self.ready.is_empty()
            && let Some(reader) = &self.reader
        {
            let chunk = reader.range(self.after, self.durable, REPLAY_CHUNK);
            let mut chunk = chunk.map_err(|error| log.read_error(error))?;
            match chunk.last() {
                Some(last) => self.after = last.seq,
                None if self.stored == 0 => self.reader = None,
                None => return Err(log.missing(self.durable)),
            }
            chunk.retain(|entry| self.ended.binary_search(&entry.seq).is_err());
            self.stored = self
                .stored
                .checked_sub(chunk.len())
                .ok_or_else(|| log.missing(self.durable))?;
            self.ready.extend(chunk);
        }
        Ok(self.ready.pop_front().or_else(|| self.recent.pop_front()))
    }
}
