//! The state that requests are answered from, and its renewal when the directory has a new epoch.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::http::StatusCode;
use proofmill_directory::store::{KeyDirectory, StoreError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::MissedTickBehavior;

use crate::refused::Refused;

/// Interval at which the server looks for a new epoch.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);

/// Most records in memory at a time: one may have 256 MiB, and twice as much as JSON.
const RECORDS_MAX: usize = 4;

/// Longest wait of a request for the place of a record.
const RECORD_WAIT_MAX: Duration = Duration::from_secs(10);

/// A directory that is being served.
pub(super) struct ServedDirectory {
    current: RwLock<Arc<KeyDirectory>>,
    records: Arc<Semaphore>,
}

// === impl ServedDirectory ===

impl ServedDirectory {
    pub(super) fn new(directory: KeyDirectory) -> Self {
        Self {
            current: RwLock::new(Arc::new(directory)),
            records: Arc::new(Semaphore::new(RECORDS_MAX)),
        }
    }

    /// The state after the last epoch. A request is answered from one state, even if an epoch is added meanwhile.
    pub(super) fn current(&self) -> Arc<KeyDirectory> {
        // No code panics while the lock is held.
        let current = self.current.read();
        Arc::clone(&current.unwrap_or_else(PoisonError::into_inner))
    }

    fn replace(&self, next: KeyDirectory) {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(next);
    }

    /// A place for a record in memory, to be kept until the record is sent.
    pub(super) async fn record_place(&self) -> Result<OwnedSemaphorePermit, Refused> {
        let place = Arc::clone(&self.records).acquire_owned();
        match tokio::time::timeout(RECORD_WAIT_MAX, place).await {
            Ok(Ok(place)) => Ok(place),
            // The semaphore is never closed.
            _ => Err(Refused::new(
                StatusCode::SERVICE_UNAVAILABLE,
                format!("{RECORDS_MAX} records are being sent, the most at a time: try again"),
            )),
        }
    }

    /// Takes over new epochs until the future is dropped. A directory that cannot be read is served as it was.
    pub(super) async fn follow(&self) {
        let mut ticks = tokio::time::interval(REFRESH_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last_error = String::new();
        loop {
            ticks.tick().await;
            let current = self.current();
            let found = tokio::task::spawn_blocking(move || next_state(&current)).await;
            let error = match found {
                Ok(Ok(None)) => {
                    last_error.clear();
                    continue;
                }
                Ok(Ok(Some(next))) => {
                    tracing::info!(epoch = next.epoch(), "the directory has a new epoch");
                    self.replace(next);
                    last_error.clear();
                    continue;
                }
                Ok(Err(error)) => error.to_string(),
                Err(error) => error.to_string(),
            };
            // The same error each second would hide everything else in the log.
            if error != last_error {
                tracing::warn!(error, "new epochs cannot be read: the last state is served");
                last_error = error;
            }
        }
    }
}

fn next_state(current: &KeyDirectory) -> Result<Option<KeyDirectory>, StoreError> {
    match current.is_followed()? {
        true => current.refreshed(),
        false => Ok(None),
    }
}
