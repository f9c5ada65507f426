//! Removal of blobs that no record refers to.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use proofmill_bus::{BlobError, BlobStore, Digest, Key, Log, Op, Sweeper, until_durable};

use crate::coordinator::{CoordinatorGone, Handle};
use crate::role_counts::role_counts;

/// Interval of the search for unreferenced blobs, and the time before they are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobSweep {
    /// Time between two scans; 5 minutes by default.
    pub every: Duration,
    /// Minimum time for which a blob must have been unreferenced, on this process's own monotonic
    /// clock, before it is deleted; 10 minutes by default. It must be far longer than the 20 s
    /// between two renewals of other processes' holds, and than those processes may be cut off or
    /// stopped: one that was stopped for a minute or more checks whether the blobs it holds still
    /// exist.
    pub grace: Duration,
}

/// The reason why blobs that are due cannot be deleted now.
#[derive(Debug, thiserror::Error)]
enum SweepError {
    #[error(transparent)]
    CoordinatorGone(#[from] CoordinatorGone),
    #[error("cannot remove unreferenced blobs")]
    Blobs(#[from] BlobError),
    /// This process may no longer be the writer of the log.
    #[error("the log does not take a record: no blobs are removed")]
    Log(#[from] proofmill_bus::AppendError),
}

impl Default for BlobSweep {
    fn default() -> Self {
        Self {
            every: Duration::from_secs(300),
            grace: Duration::from_secs(600),
        }
    }
}

/// Sweeps until the coordinator is gone.
pub(crate) async fn sweep_blobs(
    coordinator: Handle,
    blobs: Arc<BlobStore>,
    log: Arc<dyn Log>,
    sweep: BlobSweep,
) {
    let mut sweeper = Sweeper::new((*blobs).clone(), sweep.grace);
    loop {
        match sweep_once(&coordinator, &blobs, &*log, &mut sweeper).await {
            Ok(()) => {}
            Err(SweepError::CoordinatorGone(_)) => return,
            Err(error) => {
                let error = proofmill_bus::with_sources(&error);
                tracing::warn!(error, "unreferenced blobs are left for now");
            }
        }
        tokio::time::sleep(sweep.every).await;
    }
}

async fn sweep_once(
    coordinator: &Handle,
    blobs: &BlobStore,
    log: &dyn Log,
    sweeper: &mut Sweeper,
) -> Result<(), SweepError> {
    let scan = sweeper.scan(&live(coordinator, blobs).await?).await?;
    let (count, bytes) = scan.stored();
    role_counts().note_blobs(&coordinator.plan().workflow, count, bytes);
    if scan.is_empty() {
        return Ok(());
    }
    let live = live(coordinator, blobs).await?;
    wait_until_durable(log).await?;
    let swept = sweeper.remove(scan, &live).await?;
    let (deleted, bytes) = (swept.deleted, swept.bytes);
    tracing::debug!(deleted, bytes, "unreferenced blobs are removed");
    Ok(())
}

/// Removes every unreferenced blob of a state directory at the end of a run, without a grace
/// period, which no other process needs.
pub(crate) async fn sweep_at_end(coordinator: &Handle, blobs: &BlobStore, log: &dyn Log) {
    let swept = async {
        let live = live(coordinator, blobs).await?;
        wait_until_durable(log).await?;
        blobs.sweep_alone(&live).await.map_err(SweepError::from)
    };
    if let Err(error) = swept.await {
        let error = proofmill_bus::with_sources(&error);
        tracing::warn!(error, "unreferenced blobs are left for the next run");
    }
}

/// Blobs that may be referred to: by records, by messages that wait to be accepted or are on their
/// way to the log, or by holders in this process. A blob given to the coordinator is held until the
/// coordinator counts it, so that it is always counted by one of the two.
async fn live(coordinator: &Handle, blobs: &BlobStore) -> Result<HashSet<Digest>, CoordinatorGone> {
    let held = blobs.held();
    let live = coordinator.live_blobs().await?;
    Ok(live.into_iter().map(Digest::from).chain(held).collect())
}

/// Waits until every removal of a record that the core has seen is durable: a crash must not bring
/// back a record whose blob is gone. A process that has lost the log without knowing it is refused
/// here.
async fn wait_until_durable(log: &dyn Log) -> Result<(), proofmill_bus::AppendError> {
    let key = Key::new("swept").expect("a valid key");
    // No such record exists, so the delete changes nothing.
    let seq = log.append(vec![Op::delete(key)]).await?;
    until_durable(&mut log.durable(), seq).await
}
