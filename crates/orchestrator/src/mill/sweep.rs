//! Removing the blobs that no record names any more.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use proofmill_bus::{BlobError, BlobStore, Digest, Key, Log, Op, Sweeper, until_durable};

use crate::coordinator::{CoordinatorGone, Handle};

/// When unreferenced blobs are looked for, and how long they are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobSweep {
    /// Time between two looks. Default 5 minutes.
    pub every: Duration,
    /// Least time for which a blob must have been seen to be unreferenced, by this process's own
    /// monotonic clock, before it is deleted. Default 10 minutes. It must be far longer than the 20 s
    /// between two renewals of what other processes hold, and than they may be cut off or stopped:
    /// one that was stopped for a minute or more looks whether what it holds is still there.
    pub grace: Duration,
}

/// Reason for which blobs that are due cannot be deleted now.
#[derive(Debug, thiserror::Error)]
enum SweepError {
    #[error(transparent)]
    Gone(#[from] CoordinatorGone),
    #[error("cannot remove unreferenced blobs")]
    Blobs(#[from] BlobError),
    /// This process does not write the log any more, perhaps.
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

/// Sweeps until the coordinator has gone.
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
            Err(SweepError::Gone(_)) => return,
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
    let look = sweeper.look(&live(coordinator, blobs).await?).await?;
    if look.is_empty() {
        return Ok(());
    }
    let live = live(coordinator, blobs).await?;
    settle(log).await?;
    let swept = sweeper.remove(look, &live).await?;
    let (deleted, bytes) = (swept.deleted, swept.bytes);
    tracing::debug!(deleted, bytes, "unreferenced blobs are removed");
    Ok(())
}

/// Removes every unreferenced blob of a state directory at the end of a run, when nobody but this
/// process can know of any: a run that ends at once leaves none behind.
pub(crate) async fn sweep_at_end(coordinator: &Handle, blobs: &BlobStore, log: &dyn Log) {
    let swept = async {
        let live = live(coordinator, blobs).await?;
        settle(log).await?;
        blobs.sweep_alone(&live).await.map_err(SweepError::from)
    };
    if let Err(error) = swept.await {
        let error = proofmill_bus::with_sources(&error);
        tracing::warn!(error, "unreferenced blobs are left for the next run");
    }
}

/// Blobs that may be named: by records, by messages that wait at a door or are on their way to the
/// log, or by holders in this process. A blob that is handed to the coordinator is held until the
/// coordinator has it, so that it is always counted by one of the two.
async fn live(coordinator: &Handle, blobs: &BlobStore) -> Result<HashSet<Digest>, CoordinatorGone> {
    let held = blobs.held();
    let live = coordinator.live_blobs().await?;
    Ok(live.into_iter().map(Digest::from).chain(held).collect())
}

/// Waits until the end of every record that the core has seen end is durable: a crash must not bring
/// back one whose blob is gone. Whoever does not write the log any more, and does not know it yet, is
/// refused here.
async fn settle(log: &dyn Log) -> Result<(), proofmill_bus::AppendError> {
    let key = Key::new("swept").expect("a valid key");
    // There is no such record.
    let seq = log.append(vec![Op::delete(key)]).await?;
    until_durable(&mut log.durable(), seq).await
}
