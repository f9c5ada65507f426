//! Counting of a mill's emissions in the background of an experiment.

use std::time::{Duration, Instant};

use proofmill_orchestrator::sink::Emitted;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::tally::Tally;

/// Counts of the emitted blocks, updated until the mill ends.
pub(crate) struct EmissionCounter(watch::Receiver<Counts>);

/// Counts of the blocks emitted so far.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Number of times that each block was emitted.
    pub(crate) tally: Tally,
    /// Number of blocks with a wrong payload.
    pub(crate) wrong: usize,
    /// Time of the last emission.
    last: Option<Instant>,
}

// === impl EmissionCounter ===

impl EmissionCounter {
    /// Counts the emissions from `emitted`; `is_right` checks a payload.
    pub(crate) fn count(
        mut emitted: mpsc::Receiver<Emitted>,
        is_right: impl Fn(&Emitted) -> bool + Send + 'static,
    ) -> Self {
        let (counts, counted) = watch::channel(Counts::default());
        tokio::spawn(async move {
            while let Some(block) = emitted.recv().await {
                counts.send_modify(|counts| {
                    counts.tally.add(block.first);
                    counts.last = Some(Instant::now());
                    counts.wrong += usize::from(!is_right(&block));
                });
            }
        });
        Self(counted)
    }

    /// Waits until `blocks` different blocks have been emitted. Returns false if that takes longer
    /// than `patience`.
    pub(crate) async fn reaches(&self, blocks: u64, patience: Duration) -> bool {
        let mut counted = self.0.clone();
        let reached = counted.wait_for(|counts| counts.tally.distinct() >= blocks);
        matches!(timeout(patience, reached).await, Ok(Ok(_)))
    }

    /// Waits for the next emission, and returns its time, or `None` if there is none within
    /// `patience`.
    pub(crate) async fn next(&self, patience: Duration) -> Option<Instant> {
        let blocks = self.0.borrow().tally.distinct();
        let came = self.reaches(blocks + 1, patience).await;
        came.then(Instant::now)
    }

    /// Measures for `time`, and returns the longest pause between two emissions. A pause that began
    /// before the measurement counts from the last emission before it; a pause that lasts beyond
    /// the measurement counts up to its end.
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

    /// The counts so far.
    pub(crate) fn so_far(&self) -> watch::Ref<'_, Counts> {
        self.0.borrow()
    }
}
