//! Times for which questions keep the coordinator from its other work.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use proofmill_telemetry::Histograms;

/// Times for which questions have kept the loop of a coordinator, which answers one at a time. Clones share their
/// counts.
#[derive(Clone, Debug)]
pub struct QuestionTimes {
    workflow: Arc<str>,
    /// Longest time, nanoseconds.
    longest: Arc<AtomicU64>,
}

/// The times of all questions to coordinators of this process, in seconds, by workflow.
pub fn question_seconds() -> &'static Histograms {
    static TIMES: OnceLock<Histograms> = OnceLock::new();
    TIMES.get_or_init(Histograms::of_seconds)
}

// === impl QuestionTimes ===

impl QuestionTimes {
    pub(super) fn new(workflow: &Arc<str>) -> Self {
        let (workflow, longest) = (workflow.clone(), Arc::default());
        Self { workflow, longest }
    }

    /// Answers a question, and notes the time that this takes.
    pub(super) fn time<T>(&self, answer: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let answered = answer();
        let took = began.elapsed();
        let labels = [("workflow", &*self.workflow)];
        question_seconds().observe(&labels, took.as_secs_f64());
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.longest.fetch_max(took, Ordering::Relaxed);
        answered
    }

    /// Longest time since the last call, or since the coordinator was opened.
    pub fn take_longest(&self) -> Duration {
        Duration::from_nanos(self.longest.swap(0, Ordering::Relaxed))
    }
}
