//! Tasks beside the commands of a host: signs of life, and asynchronous events.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::host::error::HostError;
use crate::host::initiator::{CommandData, Response};
use crate::host::queue::{Link, Queue};
use crate::nvme::opcode::{admin, log};
use crate::nvme::zkpu::{Event, JobTable};
use crate::nvme::{Command, Status};

/// The job table as the last event showed it.
#[derive(Debug, Default)]
pub(super) struct Ends {
    state: Mutex<Seen>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Seen {
    table: Option<JobTable>,
    failure: Option<HostError>,
    events: u64,
}

/// The thread that watches; dropping this ends it.
#[derive(Debug)]
pub(super) struct Watch {
    notes: Sender<Note>,
}

enum Note {
    /// An event request has ended.
    Event(Result<Response, HostError>),
    /// The driver is gone.
    Stop,
}

/// Bytes of the job table that are read: its header and 16 entries.
const TABLE_BYTES: u32 = JobTable::bytes(16) as u32;

// === impl Ends ===

impl Ends {
    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until an event shows what `seen` looks for.
    pub(super) fn wait<T>(
        &self,
        name: &'static str,
        timeout: Duration,
        mut seen: impl FnMut(&JobTable) -> Option<T>,
    ) -> Result<T, HostError> {
        let deadline = Instant::now() + timeout;
        let mut state = self.lock();
        loop {
            if let Some(found) = state.table.as_ref().and_then(&mut seen) {
                return Ok(found);
            }
            if let Some(failure) = &state.failure {
                return Err(failure.clone());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(HostError::TimedOut {
                    command: name,
                    after: timeout,
                });
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Events of ended jobs that were seen.
    pub(super) fn events(&self) -> u64 {
        self.lock().events
    }

    fn set(&self, table: Result<JobTable, HostError>) {
        let mut state = self.lock();
        match table {
            Ok(table) => {
                state.table = Some(table);
                state.events += 1;
            }
            Err(error) => state.failure = Some(error),
        }
        drop(state);
        self.changed.notify_all();
    }
}

// === impl Watch ===

impl Watch {
    /// Starts to watch a device by its admin queue. If it gives no sign of life, the link of the I/O queue ends, too: commands
    /// there may wait for as long as a job takes.
    pub(super) fn start(
        queue: Arc<dyn Queue>,
        io: Arc<dyn Link>,
        ends: Arc<Ends>,
        keep_alive: Duration,
        timeout: Duration,
    ) -> Result<Self, HostError> {
        let (notes, received) = channel();
        let sender = notes.clone();
        request_event(&*queue, sender.clone())?;
        let watched = std::thread::Builder::new()
            .name("zkpu-watch".into())
            .spawn(move || {
                let watched = watch(
                    &*queue,
                    &ends,
                    (&sender, &received),
                    keep_alive / 2,
                    timeout,
                );
                if let Err(error) = watched {
                    queue.link().end(error.clone());
                    if matches!(error, HostError::TimedOut { .. }) {
                        io.end(error.clone());
                    }
                    ends.set(Err(error));
                }
            });
        watched
            .map_err(|error| HostError::Unusable(format!("a thread does not start: {error}")))?;
        Ok(Self { notes })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // The thread may have ended.
        let _ = self.notes.send(Note::Stop);
    }
}

fn request_event(queue: &dyn Queue, notes: Sender<Note>) -> Result<(), HostError> {
    let command = Command::new(admin::EVENT_REQUEST, 0);
    // The watcher may be gone.
    let callback = Box::new(move |response| drop(notes.send(Note::Event(response))));
    queue.submit(command, CommandData::None, callback)
}

fn watch(
    queue: &dyn Queue,
    ends: &Ends,
    (notes, received): (&Sender<Note>, &Receiver<Note>),
    interval: Duration,
    timeout: Duration,
) -> Result<(), HostError> {
    let mut next = Instant::now() + interval;
    loop {
        match received.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(Note::Event(response)) => {
                let response = response?;
                // An abort, or a reset, ends the requests: nothing more is to be watched.
                if response.completion.status.is(Status::ABORT_REQUESTED) {
                    return Ok(());
                }
                if Event::decode(response.completion.result[0]) == Event::Fault {
                    return Err(HostError::Unusable(
                        "the device reports a fault of its core".into(),
                    ));
                }
                ends.set(Ok(job_table(queue, false, timeout)?));
                request_event(queue, notes.clone())?;
            }
            Ok(Note::Stop) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => {
                let command = Command::new(admin::KEEP_ALIVE, 0);
                queue.call("keep alive", command, CommandData::None, timeout)?;
                next = Instant::now() + interval;
            }
        }
    }
}

/// Reads log page C1h; the event is armed again unless it is retained.
pub(super) fn job_table(
    queue: &dyn Queue,
    retain: bool,
    timeout: Duration,
) -> Result<JobTable, HostError> {
    let selector = u32::from(log::JOBS) | u32::from(retain) << 15 | (TABLE_BYTES / 4 - 1) << 16;
    let command = Command::new(admin::GET_LOG_PAGE, 0).with_dwords(&[selector]);
    let response = queue.call(
        "get the job table",
        command,
        CommandData::ToHost(TABLE_BYTES),
        timeout,
    )?;
    JobTable::decode(&response.data)
        .ok_or_else(|| HostError::Protocol("a job table that cannot be read".into()))
}
