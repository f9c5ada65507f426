//! The pause of a dispatcher whose machine has failed, and the probe that ends it.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use proofmill_bus::BlobStore;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

use crate::conversation::PAUSE_REASON_MAX;
use crate::executor::{Executor, failure_of_reading};
use crate::id::WorkerId;
use crate::plan::StageIx;
use crate::text::beginning_of;
use proofmill_process::{MachineFailure, MissingResource};

/// Time from a failure of the machine to the first probe; doubled by each further failure until a task is
/// completed.
const FIRST_DELAY: Duration = Duration::from_millis(500);

/// Longest time between two probes.
const LAST_DELAY: Duration = Duration::from_secs(30);

/// Maximum duration of a probe, since a network file system may hang.
const PROBE_LIMIT: Duration = Duration::from_secs(30);

/// Parts of a machine that the tasks of one dispatcher need: its executors and the blob store.
#[derive(Clone)]
pub(super) struct Machine {
    pub(super) executors: Arc<BTreeMap<StageIx, Arc<dyn Executor>>>,
    pub(super) blobs: Arc<BlobStore>,
}

/// State of the dispatcher's pause.
pub(super) struct Pause {
    worker: WorkerId,
    delay: Duration,
    current: Option<Current>,
}

struct Current {
    reason: String,
    since: Instant,
    next_probe: Instant,
    /// Probe under way. Kept here, since the future of [`Pause::probed`] may be dropped and created again.
    probe: Option<JoinHandle<Result<(), MachineFailure>>>,
}

// === impl Machine ===

impl Machine {
    /// Tests the resources that failed lately, and all others that a task needs.
    async fn probe(self) -> Result<(), MachineFailure> {
        for executor in self.executors.values() {
            executor.probe().await?;
        }
        match self.blobs.probe().await {
            Ok(()) => Ok(()),
            // The other errors of a probe say nothing about the machine, so the store is usable.
            Err(error) => failure_of_reading(&error).map_or(Ok(()), Err),
        }
    }
}

// === impl Pause ===

impl Pause {
    pub(super) fn new(worker: WorkerId) -> Self {
        Self {
            worker,
            delay: FIRST_DELAY,
            current: None,
        }
    }

    /// Reason for the pause; `None` if the dispatcher is not paused.
    pub(super) fn reason(&self) -> Option<String> {
        Some(self.current.as_ref()?.reason.clone())
    }

    pub(super) fn is_on(&self) -> bool {
        self.current.is_some()
    }

    /// Begins the pause after a failure of the machine. Returns whether the dispatcher was not paused before.
    pub(super) fn begin(&mut self, failure: &MachineFailure) -> bool {
        if let Some(current) = &mut self.current {
            current.reason = bounded(failure);
            return false;
        }
        let (worker, delay) = (&self.worker, self.delay);
        tracing::warn!(
            %worker, %failure, ?delay,
            "paused: this machine has failed; tasks are handed back untried, and it is tried again"
        );
        let now = Instant::now();
        self.current = Some(Current {
            reason: bounded(failure),
            since: now,
            next_probe: now + self.delay,
            probe: None,
        });
        self.delay = (self.delay * 2).min(LAST_DELAY);
        true
    }

    /// Notes a completed task: the next failure is not a consequence of the last.
    pub(super) fn note_completion(&mut self) {
        if self.current.is_none() {
            self.delay = FIRST_DELAY;
        }
    }

    /// Waits for the end of a probe. Returns whether the pause has ended with it. Pending while there is no
    /// pause. The future may be dropped and created again.
    pub(super) async fn probed(&mut self, machine: &Machine) -> bool {
        let Some(current) = &mut self.current else {
            return pending().await;
        };
        if current.probe.is_none() {
            sleep_until(current.next_probe).await;
        }
        let probe = current.probe.get_or_insert_with(|| {
            let probe = machine.clone().probe();
            tokio::spawn(async move {
                let late = || MachineFailure {
                    missing: MissingResource::Scratch,
                    detail: format!("a probe took longer than {PROBE_LIMIT:?}"),
                };
                timeout(PROBE_LIMIT, probe)
                    .await
                    .unwrap_or_else(|_| Err(late()))
            })
        });
        let found = probe.await;
        current.probe = None;
        let failure = match found {
            Ok(Ok(())) => {
                let (worker, paused_for) = (&self.worker, current.since.elapsed());
                tracing::info!(%worker, ?paused_for, "resumed: this machine works again");
                self.current = None;
                return true;
            }
            Ok(Err(failure)) => failure,
            Err(error) => MachineFailure {
                missing: MissingResource::Processes,
                detail: format!("a probe ended by itself: {error}"),
            },
        };
        tracing::debug!(worker = %self.worker, %failure, "still paused");
        current.reason = bounded(&failure);
        current.next_probe = Instant::now() + self.delay;
        self.delay = (self.delay * 2).min(LAST_DELAY);
        false
    }
}

/// Text of a machine failure for heartbeats, cut to [`PAUSE_REASON_MAX`] bytes.
fn bounded(failure: &MachineFailure) -> String {
    beginning_of(&failure.to_string(), PAUSE_REASON_MAX).to_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use futures_util::future::BoxFuture;

    use super::*;
    use crate::executor::{Execution, Product, Unfinished};

    struct Switch(AtomicBool);

    fn full() -> MachineFailure {
        MachineFailure {
            missing: MissingResource::DiskSpace,
            detail: "x".repeat(10 * PAUSE_REASON_MAX),
        }
    }

    impl Executor for Switch {
        fn execute(&self, _: Vec<Execution>) -> BoxFuture<'_, Vec<Result<Product, Unfinished>>> {
            Box::pin(std::future::ready(Vec::new()))
        }

        fn probe(&self) -> BoxFuture<'_, Result<(), MachineFailure>> {
            let works = self.0.load(Ordering::SeqCst);
            Box::pin(std::future::ready(works.then_some(()).ok_or_else(full)))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn probes_grow_rarer_until_one_succeeds_and_products_make_them_frequent_again() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let switch = Arc::new(Switch(AtomicBool::new(false)));
        let executor: Arc<dyn Executor> = switch.clone();
        let machine = Machine {
            executors: Arc::new([(StageIx(0), executor)].into()),
            blobs: Arc::new(BlobStore::open(dir.path()).expect("a store")),
        };
        let mut pause = Pause::new("w".into());
        assert!(!pause.is_on() && pause.reason().is_none());
        assert!(pause.begin(&full()) && !pause.begin(&full()));
        assert!(pause.reason().expect("it is paused").len() <= PAUSE_REASON_MAX);
        let mut waits = Vec::new();
        for _ in 0..9 {
            let began = Instant::now();
            // The future is dropped and created again, as in a `select!`.
            let early = timeout(Duration::from_millis(100), pause.probed(&machine)).await;
            assert!(early.is_err());
            assert!(!pause.probed(&machine).await);
            waits.push((began.elapsed().as_secs_f64() * 2.0).round() as u64);
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        switch.0.store(true, Ordering::SeqCst);
        assert!(pause.probed(&machine).await && !pause.is_on());
        // If the machine fails again at once, the delay is as long as before.
        pause.begin(&full());
        let began = Instant::now();
        assert!(pause.probed(&machine).await);
        assert_eq!(began.elapsed().as_secs(), 30);
        pause.note_completion();
        pause.begin(&full());
        let began = Instant::now();
        assert!(pause.probed(&machine).await);
        assert!(began.elapsed() < Duration::from_secs(1));
    }
}
