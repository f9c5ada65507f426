//! The thread that makes accepted batches durable: whatever is queued goes into one transaction
//! with one fsync, and what arrives meanwhile into the next.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::store::Store;
use super::verify::StoreError;
use crate::error::LogFailure;
use crate::log::Durable;
use crate::pending::{Accepting, State};

/// The log is idle once nothing has been appended for this long. A task's record and its result's
/// come within a fraction of a millisecond where the prover is quick: tidying up between them would
/// make the result wait for it.
const IDLE_AFTER: Duration = Duration::from_millis(5);

/// What appenders, readers and the writer share.
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
        let failure = Arc::new(LogFailure {
            place: self.dir.display().to_string(),
            reason,
            remedy: "free space or repair the disk, then start again: nothing durable is lost"
                .to_owned(),
            durable: state.durable,
        });
        tracing::error!(error = %failure, "the log has stopped");
        state.failed = Some(failure.clone());
        drop(state);
        self.watermark
            .send_modify(|durable| durable.failed = Some(failure));
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
pub(super) fn run(shared: &Shared, mut store: Store) {
    let ending = Ending(shared);
    if let Err(error) = commit_all(shared, &mut store) {
        shared.fail(error.to_string());
    }
    // The last connection to close removes the write-ahead log: before anyone is told.
    drop(store);
    drop(ending);
}

fn commit_all(shared: &Shared, store: &mut Store) -> Result<(), StoreError> {
    loop {
        let group = {
            let mut state = shared.lock();
            while !state.has_work() {
                if state.closing {
                    return store.finish();
                }
                let Some(due) = store.tidying_due_in() else {
                    let woken = shared.work.wait(state);
                    state = woken.unwrap_or_else(PoisonError::into_inner);
                    continue;
                };
                let waited = shared.work.wait_timeout(state, due.max(IDLE_AFTER));
                let (woken, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
                state = woken;
                if timeout.timed_out() && !state.has_work() {
                    drop(state);
                    store.tidy_when_idle()?;
                    state = shared.lock();
                }
            }
            state.take()
        };
        store.commit(&group)?;
        shared.lock().committed(group.last, group.bytes);
        shared
            .watermark
            .send_modify(|durable| durable.seq = group.last);
        store.tidy()?;
    }
}

/// Tells those who wait that the writer has ended, even if it panicked.
struct Ending<'a>(&'a Shared);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0
                .fail("the writer panicked, which is a defect: please report it".to_owned());
        }
        self.0.finished.send_replace(true);
    }
}
