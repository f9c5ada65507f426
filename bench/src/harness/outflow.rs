//! What leaves a mill in chain order, counted while the experiment does other things.

use std::time::{Duration, Instant};

use proofmill_orchestrator::sink::Emitted;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::tally::Tally;

/// Counts what is emitted, from its start to its end.
pub(crate) struct Outflow(watch::Receiver<Counts>);

/// What was emitted so far.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// By block.
    pub(crate) tally: Tally,
    /// How many had not the payload that they should have.
    pub(crate) wrong: usize,
    /// When the last came.
    last: Option<Instant>,
}

// === impl Outflow ===

impl Outflow {
    /// Counts what comes by `emitted`, which is as it should be if `is_right`.
    pub(crate) fn count(
        mut emitted: mpsc::Receiver<Emitted>,
        is_right: impl Fn(&Emitted) -> bool + Send + 'static,
    ) -> Self {
        let (counts, counted) = watch::channel(Counts::default());
        tokio::spawn(async move {
            while let Some(block) = emitted.recv().await {
                counts.send_modify(|counts| {
                    counts.tally.came(block.first);
                    counts.last = Some(Instant::now());
                    counts.wrong += usize::from(!is_right(&block));
                });
            }
        });
        Self(counted)
    }

    /// Waits until so many different blocks have come; whether they have, within `patience`.
    pub(crate) async fn reaches(&self, blocks: u64, patience: Duration) -> bool {
        let mut counted = self.0.clone();
        let reached = counted.wait_for(|counts| counts.tally.distinct() >= blocks);
        matches!(timeout(patience, reached).await, Ok(Ok(_)))
    }

    /// Waits until one more has come, and says when; `None` if none does within `patience`.
    pub(crate) async fn next(&self, patience: Duration) -> Option<Instant> {
        let blocks = self.0.borrow().tally.distinct();
        let came = self.reaches(blocks + 1, patience).await;
        came.then(Instant::now)
    }

    /// The longest pause between two blocks in the next `time`; one that has begun before, or is not
    /// over then, counts as far as it goes.
    pub(crate) async fn pause_within(&self, time: Duration) -> Duration {
        let end = Instant::now() + time;
        let last = |now| self.so_far().last.unwrap_or(now);
        let (mut pause, mut before) = (Duration::ZERO, last(Instant::now()));
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            let came = self.next(left).await;
            let now = came.map_or_else(Instant::now, last);
            pause = pause.max(now.saturating_duration_since(before));
            before = last(before);
        }
        pause
    }

    /// What was counted so far.
    pub(crate) fn so_far(&self) -> watch::Ref<'_, Counts> {
        self.0.borrow()
    }
}
