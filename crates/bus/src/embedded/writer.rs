//! The threads that make accepted batches durable: whatever is queued goes into one transaction
//! with one fsync, and what arrives meanwhile into the next.
//!
//! There are two, which take turns: while one waits for the disk, the other writes the next group and
//! has the disk begin with it. A group is durable when a sync that began after it was written has
//! succeeded; by then everything before it is too, for the sync waits for the whole file. So groups
//! become durable in order, whichever thread is told first.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::sync::watch;

use super::mark::SYNC_EVERY;
use super::store::Store;
use super::verify::StoreError;
use crate::error::LogFailure;
use crate::log::Durable;
use crate::pending::{Accepting, Group, State};

/// The log is idle once nothing has been appended for this long. A task's record and its result's
/// come within a fraction of a millisecond where the prover is quick: tidying up between them would
/// make the result wait for it.
const IDLE_AFTER: Duration = Duration::from_millis(5);

/// State that appenders, readers and the writers share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) dir: PathBuf,
    state: Mutex<State>,
    pub(super) work: Condvar,
    pub(super) watermark: watch::Sender<Durable>,
    pub(super) finished: watch::Sender<bool>,
}

// === impl Shared ===

impl Shared {
    pub(super) fn new(dir: PathBuf, state: State) -> Self {
        let durable = Durable {
            seq: state.durable,
            failed: None,
        };
        Self {
            dir,
            state: Mutex::new(state),
            work: Condvar::new(),
            watermark: watch::Sender::new(durable),
            finished: watch::Sender::new(false),
        }
    }

    pub(super) fn close(&self) {
        self.lock().closing = true;
        self.work.notify_all();
    }

    /// After a failed write the system may hold pages it will never write: nothing is retried.
    fn fail(&self, reason: String) {
        let mut state = self.lock();
        if state.failed.is_some() {
            return;
        }
        let failure = Arc::new(LogFailure {
            place: self.dir.display().to_string(),
            reason,
            remedy: "free space or repair the disk, then start again: nothing durable is lost"
                .to_owned(),
            durable: state.durable,
        });
        tracing::error!(error = %failure, "the log has stopped");
        state.failed = Some(failure.clone());
        let seq = state.durable;
        drop(state);
        self.watermark.send_modify(|durable| {
            durable.seq = seq;
            durable.failed = Some(failure);
        });
        self.work.notify_all();
    }

    fn has_failed(&self) -> bool {
        self.lock().failed.is_some()
    }

    /// Tells that `group` is on stable storage, unless the log has stopped meanwhile.
    fn committed(&self, group: &Group) {
        let mut state = self.lock();
        if state.failed.is_some() {
            return;
        }
        state.committed(group.last, group.bytes);
        drop(state);
        // Told also if a later group was told before: there is room again for what waits for it.
        self.watermark.send_modify(|durable| {
            if durable.failed.is_none() {
                durable.seq = durable.seq.max(group.last);
            }
        });
    }
}

impl Accepting for Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing under this lock panics half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watermark(&self) -> &watch::Sender<Durable> {
        &self.watermark
    }

    fn wake(&self) {
        self.work.notify_one();
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
    // The last connection to close removes the write-ahead log: before anyone is told.
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

/// The thread that holds the store waits for work, and writes it; then it makes it durable and tells,
/// while the other waits and writes.
fn commit_in_turn(shared: &Shared, store: &Mutex<Store>) -> Result<(), StoreError> {
    // A store that cannot be locked: the other thread panicked, and has reported it.
    let Ok(stable) = store.lock().map(|store| store.stable()) else {
        return Ok(());
    };
    let stable = stable?;
    loop {
        let (group, promise) = {
            let Ok(mut store) = store.lock() else {
                return Ok(());
            };
            store.tidy()?;
            let Some(group) = next_group(shared, &mut store)? else {
                return Ok(());
            };
            let promise = store.write(&group)?;
            (group, promise)
        };
        stable.promise(promise)?;
        shared.committed(&group);
    }
}

/// Waits for a group to commit, and tidies up meanwhile; `None` if there will be none.
fn next_group(shared: &Shared, store: &mut Store) -> Result<Option<Group>, StoreError> {
    let mut state = shared.lock();
    while !state.has_work() {
        if state.closing || state.failed.is_some() {
            return Ok(None);
        }
        let due = match store.tidying_due_in() {
            None if state.is_durable() => {
                let woken = shared.work.wait(state);
                state = woken.unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            // What the other is making durable will have to be tidied up after.
            due => due.unwrap_or(SYNC_EVERY).max(IDLE_AFTER),
        };
        let waited = shared.work.wait_timeout(state, due);
        let (woken, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        state = woken;
        if timeout.timed_out() && !state.has_work() && state.is_durable() {
            drop(state);
            store.tidy_when_idle()?;
            state = shared.lock();
        }
    }
    Ok(Some(state.take()))
}

/// Reports a panic of the thread that holds it.
struct Panic<'a>(&'a Shared);

impl Drop for Panic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0
                .fail("the writer panicked, which is a defect: please report it".to_owned());
        }
    }
}

/// Tells those who wait that the writers have ended, even if one panicked.
struct Ending<'a>(&'a Shared);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.finished.send_replace(true);
    }
}
