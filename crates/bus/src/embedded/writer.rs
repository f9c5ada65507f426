//! The threads that make accepted batches durable: everything queued goes into one transaction with
//! one fsync, and batches that arrive meanwhile go into the next.
//!
//! Two threads take turns: while one waits for the disk, the other writes the next group and starts
//! its sync. A group is durable when a sync that began after it was written has succeeded;
//! everything before it is durable too, since the sync covers the whole file. So groups become
//! durable in order, whichever thread's sync returns first.

use std::path::PathBuf;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::mark::SYNC_EVERY;
use super::store::Store;
use super::verify::StoreError;
use crate::pending::{Group, SharedState, State};

/// Time without an append after which the log is idle. A task's record and that of its result come
/// within a fraction of a millisecond of each other if the prover is fast: maintenance between them
/// would delay the result.
const IDLE_AFTER: Duration = Duration::from_millis(5);

/// Number of operations from which on a group is synced before the next one is written. Under load a second sync at the same
/// time makes groups smaller and more, and takes the processor's time from the appenders.
const LARGE_GROUP: usize = 16;

/// Remedy for a failed write.
const REMEDY: &str = "free space or repair the disk, then start again: nothing durable is lost";

/// State that appenders, readers and the writers share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) dir: PathBuf,
    pub(super) state: SharedState,
    pub(super) work: Condvar,
}

// === impl Shared ===

impl Shared {
    pub(super) fn new(dir: PathBuf, state: State) -> Self {
        Self {
            state: SharedState::new(dir.display().to_string(), state),
            dir,
            work: Condvar::new(),
        }
    }

    pub(super) fn close(&self) {
        self.state.lock().closing = true;
        self.work.notify_all();
    }

    /// After a failed write the system may hold pages that it will never write, so nothing is
    /// retried.
    fn fail(&self, reason: String) {
        if let Some(failure) = self.state.fail(reason, REMEDY) {
            tracing::error!(error = %failure, "the log has stopped");
            self.work.notify_all();
        }
    }

    fn has_failed(&self) -> bool {
        self.state.lock().failed.is_some()
    }
}

/// Commits until the log is closed or the disk fails.
pub(super) fn run(shared: &Shared, store: Store) {
    let ending = Ending(shared);
    let store = Mutex::new(store);
    thread::scope(|scope| {
        let second = thread::Builder::new()
            .name("proofmill-log-2".to_owned())
            .spawn_scoped(scope, || take_turns(shared, &store));
        if let Err(error) = second {
            tracing::warn!(%error, "the log has one writer thread instead of two, and is slower");
        }
        take_turns(shared, &store);
    });
    let mut store = store.into_inner().unwrap_or_else(PoisonError::into_inner);
    if !shared.has_failed()
        && let Err(error) = store.finish()
    {
        shared.fail(error.to_string());
    }
    // Dropping the last connection removes the write-ahead log; this happens before the end is
    // reported.
    if shared.has_failed() {
        store.abandon();
    } else {
        drop(store);
    }
    drop(ending);
}

fn take_turns(shared: &Shared, store: &Mutex<Store>) {
    let _panic = Panic(shared);
    if let Err(error) = commit_in_turn(shared, store) {
        shared.fail(error.to_string());
    }
}

/// The thread that holds the store waits for work and writes it; then it syncs and reports it,
/// while the other thread waits and writes.
fn commit_in_turn(shared: &Shared, store: &Mutex<Store>) -> Result<(), StoreError> {
    // The lock is poisoned only if the other thread panicked, which has reported it.
    let Ok(syncer) = store.lock().map(|store| store.syncer()) else {
        return Ok(());
    };
    let syncer = syncer?;
    loop {
        let (group, point) = {
            let Ok(mut store) = store.lock() else {
                return Ok(());
            };
            store.maintain()?;
            let Some(group) = next_group(shared, &mut store)? else {
                return Ok(());
            };
            let point = store.write(&group)?;
            if group.puts.len() + group.removed.len() >= LARGE_GROUP {
                // The other thread waits: what is queued meanwhile is the next group.
                syncer.make_durable(point)?;
                shared.state.committed(group.last, group.bytes);
                continue;
            }
            (group, point)
        };
        syncer.make_durable(point)?;
        shared.state.committed(group.last, group.bytes);
    }
}

/// Waits for a group to commit, and does maintenance meanwhile; `None` if the log is closed or has
/// failed.
fn next_group(shared: &Shared, store: &mut Store) -> Result<Option<Group>, StoreError> {
    let mut state = shared.state.lock();
    while !state.has_work() {
        if state.closing || state.failed.is_some() {
            return Ok(None);
        }
        let due = match store.maintenance_due_in() {
            None if state.is_durable() => {
                let woken = shared.work.wait(state);
                state = woken.unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            // The other thread's commit will need maintenance afterwards.
            due => due.unwrap_or(SYNC_EVERY).max(IDLE_AFTER),
        };
        let waited = shared.work.wait_timeout(state, due);
        let (woken, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        state = woken;
        if timeout.timed_out() && !state.has_work() && state.is_durable() {
            drop(state);
            store.maintain_when_idle()?;
            state = shared.state.lock();
        }
    }
    Ok(Some(state.take()))
}

/// Reports a panic of the thread that holds this guard.
struct Panic<'a>(&'a Shared);

impl Drop for Panic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0
                .fail("the writer panicked, which is a defect: please report it".to_owned());
        }
    }
}

/// Reports that the writers have ended, even after a panic.
struct Ending<'a>(&'a Shared);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.state.finish();
    }
}
