//! The workflows that a process leads or may lead, for its metrics page.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use proofmill_bus::LogUsage;
use proofmill_orchestrator::coordinator::Handle;
use proofmill_orchestrator::core::{Measures, Settled, Status};
use proofmill_orchestrator::port::OperatorPort;
use proofmill_orchestrator::wall_ms;
use proofmill_telemetry::{Page, TracedHistograms};
use tokio::sync::mpsc;

use super::blocks::BlocksUnderWay;

/// Time between two questions for the room that a log takes up.
const USAGE_INTERVAL: Duration = Duration::from_secs(15);
/// Longest wait for the answer.
const USAGE_TIME_MAX: Duration = Duration::from_secs(5);

/// The workflows that a process leads or may lead. Cheap to clone.
#[derive(Clone)]
pub struct Workflows(Arc<Inner>);

/// Adds metrics to a page.
type Section = Box<dyn Fn(&mut Page) + Send + Sync>;

struct Inner {
    led: Mutex<BTreeMap<Arc<str>, Option<Led>>>,
    sections: Mutex<Vec<Section>>,
    overhead: TracedHistograms,
    waited: TracedHistograms,
    blocks: TracedHistograms,
}

/// A workflow that the process leads now.
#[derive(Clone)]
struct Led {
    port: OperatorPort,
    usage: Option<LogUsage>,
}

/// A look at a workflow.
pub(super) struct Seen {
    pub(super) workflow: Arc<str>,
    /// `None` if this process does not lead it.
    pub(super) led: Option<SeenLed>,
}

/// A look at a workflow that this process leads.
pub(super) struct SeenLed {
    pub(super) status: Status,
    pub(super) measures: Measures,
    pub(super) usage: Option<LogUsage>,
}

/// Ends a leadership when it is dropped.
struct Leadership<'a> {
    workflows: &'a Workflows,
    workflow: Arc<str>,
}

// === impl Workflows ===

impl Default for Workflows {
    fn default() -> Self {
        Self(Arc::new(Inner {
            led: Mutex::default(),
            sections: Mutex::default(),
            overhead: TracedHistograms::of_seconds(),
            waited: TracedHistograms::of_seconds(),
            blocks: TracedHistograms::of_seconds(),
        }))
    }
}

impl Workflows {
    fn led(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Option<Led>>> {
        // Every change is one assignment.
        self.0.led.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a workflow that this process may lead.
    pub fn add(&self, workflow: &Arc<str>) {
        self.led().entry(workflow.clone()).or_default();
    }

    /// Adds metrics of another part of the program to the page. `section` is called for every scrape, and must not wait.
    pub fn add_section(&self, section: impl Fn(&mut Page) + Send + Sync + 'static) {
        self.sections().push(Box::new(section));
    }

    /// Adds the metrics of other parts of the program.
    pub(super) fn add_sections_to(&self, page: &mut Page) {
        self.sections().iter().for_each(|section| section(page));
    }

    fn sections(&self) -> MutexGuard<'_, Vec<Section>> {
        // Sections are only added.
        self.0
            .sections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows the workflow of a coordinator of this process, until the coordinator has stopped or the future is dropped.
    pub async fn lead(&self, handle: &Handle) {
        let workflow = handle.plan().workflow.clone();
        let led = Led {
            port: handle.operator(),
            usage: None,
        };
        self.led().insert(workflow.clone(), Some(led));
        let _leadership = Leadership {
            workflows: self,
            workflow: workflow.clone(),
        };
        let (sender, settled) = mpsc::unbounded_channel();
        if handle.observe(sender).await.is_err() {
            return;
        }
        tokio::select! {
            () = self.count(&workflow, settled) => {}
            () = self.watch_usage(&workflow, handle) => {}
            () = handle.gone() => {}
        }
    }

    async fn count(&self, workflow: &str, mut settled: mpsc::UnboundedReceiver<Settled>) {
        let labels = [("workflow", workflow)];
        let mut blocks = BlocksUnderWay::default();
        while let Some(settled) = settled.recv().await {
            let trace = settled.task.trace.recorded();
            let trace = trace.map(|trace| trace.to_string());
            let trace = trace.as_deref();
            if let Some(timing) = settled.timing {
                let overhead = timing.leased.saturating_sub(timing.ran).as_secs_f64();
                self.0.overhead.observe(&labels, overhead, trace);
                let waited = timing.waited.as_secs_f64();
                self.0.waited.observe(&labels, waited, trace);
            }
            if let Some(took) = blocks.note(&settled.task, settled.emitted, wall_ms()) {
                self.0.blocks.observe(&labels, took.as_secs_f64(), trace);
            }
        }
    }

    /// Asks for the room that the log takes up, at intervals: a scrape does not wait for a bus that is lost.
    async fn watch_usage(&self, workflow: &Arc<str>, handle: &Handle) {
        loop {
            let asked = tokio::time::timeout(USAGE_TIME_MAX, handle.log_usage());
            let usage = asked.await.ok().flatten();
            if let Some(Some(led)) = self.led().get_mut(workflow) {
                led.usage = usage;
            }
            tokio::time::sleep(USAGE_INTERVAL).await;
        }
    }

    pub(super) fn overhead(&self) -> &TracedHistograms {
        &self.0.overhead
    }

    pub(super) fn waited(&self) -> &TracedHistograms {
        &self.0.waited
    }

    pub(super) fn blocks(&self) -> &TracedHistograms {
        &self.0.blocks
    }

    /// Looks at every workflow. One whose coordinator has just stopped is not led any more.
    pub(super) async fn look(&self) -> Vec<Seen> {
        let led = self.led().clone();
        let mut seen = Vec::with_capacity(led.len());
        for (workflow, led) in led {
            let led = match led {
                Some(led) => led.look().await,
                None => None,
            };
            seen.push(Seen { workflow, led });
        }
        seen
    }
}

// === impl Led ===

impl Led {
    async fn look(&self) -> Option<SeenLed> {
        Some(SeenLed {
            status: self.port.status().await.ok()?,
            measures: self.port.measures().await.ok()?,
            usage: self.usage,
        })
    }
}

// === impl Leadership ===

impl Drop for Leadership<'_> {
    fn drop(&mut self) {
        self.workflows.led().insert(self.workflow.clone(), None);
    }
}
