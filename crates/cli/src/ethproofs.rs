//! Reports to Ethproofs beside a mill, or beside the coordinator of a cluster.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use proofmill_api::metrics::Workflows;
use proofmill_bus::BlobStore;
use proofmill_ethproofs::{
    Observer, ObserverOptions, Reporting, Reports, Settings, StartError, add_metrics, start,
};
use proofmill_orchestrator::coordinator::Handle;
use proofmill_orchestrator::mill::Mill;
use proofmill_workflow::Workflow;
use tokio::task::JoinHandle;

use crate::failure::Failure;

/// Folder of a reporter's files in the state directory.
pub(crate) const FOLDER: &str = "ethproofs";

/// Longest wait, at the end, for the last messages of the coordinator.
const LAST_MAX: Duration = Duration::from_secs(5);

/// The reporter of a workflow, as far as the workflow has one.
pub(crate) struct Reporter {
    reporting: Reporting,
    options: ObserverOptions,
}

/// Observers of coordinators, one after the other, for one reporter.
pub(crate) struct Observing {
    reports: Reports,
    options: ObserverOptions,
}

/// A reporter beside a mill.
pub(crate) struct BesideMill {
    reporter: Reporter,
    observing: JoinHandle<()>,
}

// === impl Reporter ===

impl Reporter {
    /// Starts the reporter of a workflow, with its files in `folder`; `None` if the workflow reports nothing. `directory` is the
    /// folder of emitted messages, if this process can read it.
    pub(crate) fn start(
        workflow: &Workflow,
        folder: &Path,
        directory: Option<PathBuf>,
    ) -> Result<Option<Self>, Failure> {
        let Some(ethproofs) = &workflow.ethproofs else {
            return Ok(None);
        };
        let reporting = Settings::of(ethproofs, folder).and_then(start);
        let reporting = reporting.map_err(|error| {
            let is_token = matches!(error, StartError::Token(_));
            let failure = Failure::of(&error);
            match is_token {
                true => failure.help("the key is made at ethproofs.org; see docs/ethproofs.md"),
                false => failure,
            }
        })?;
        let options = ObserverOptions {
            begins_at: ethproofs.begins_at.clone(),
            directory,
        };
        Ok(Some(Self { reporting, options }))
    }

    fn reports(&self) -> Reports {
        self.reporting.reports()
    }

    /// Shows the reporter's numbers on a metrics page.
    pub(crate) fn show(&self, workflow: &Arc<str>, workflows: &Workflows) {
        let (workflow, numbers) = (workflow.clone(), self.reports().numbers().clone());
        workflows.add_section(move |page| add_metrics(page, [(&*workflow, &*numbers)]));
    }

    /// Parts of an observer of coordinators.
    pub(crate) fn observing(&self) -> Observing {
        Observing {
            reports: self.reports(),
            options: self.options.clone(),
        }
    }

    /// Sends what can be sent within seconds. The rest is kept for the next process.
    pub(crate) async fn finish(self) {
        // The thread's end does not depend on this one's.
        let _ = tokio::task::spawn_blocking(|| self.reporting.finish()).await;
    }
}

// === impl Observing ===

impl Observing {
    /// Reports the work of a workflow that this process leads, until it does not.
    pub(crate) async fn observe(&self, handle: &Handle, blobs: Arc<BlobStore>) {
        let (reports, options) = (self.reports.clone(), self.options.clone());
        // A coordinator that has stopped has nothing to tell.
        if let Ok(observer) = Observer::begin(handle, blobs, reports, options).await {
            observer.run().await;
        }
    }
}

// === impl BesideMill ===

impl BesideMill {
    /// Starts the reporter of an open mill, before it works.
    pub(crate) async fn start(mill: &Mill, state: &Path) -> Result<Option<Self>, Failure> {
        let workflow = mill.workflow();
        let directory = workflow.sequencer.as_ref();
        let directory = directory.and_then(|it| Some(state.join(it.directory.as_ref()?)));
        let reporter = Reporter::start(workflow, &state.join(FOLDER), directory)?;
        let Some(reporter) = reporter else {
            return Ok(None);
        };
        let (handle, blobs) = (mill.handle(), mill.blobs().clone());
        let options = reporter.options.clone();
        let observer = Observer::begin(handle, blobs, reporter.reports(), options).await?;
        let observing = tokio::spawn(observer.run());
        Ok(Some(Self {
            reporter,
            observing,
        }))
    }

    pub(crate) fn reporter(&self) -> &Reporter {
        &self.reporter
    }

    /// Ends the reporter, once the mill has ended.
    pub(crate) async fn finish(self) {
        // What is not told within this time is found again by the next process.
        let _ = tokio::time::timeout(LAST_MAX, self.observing).await;
        self.reporter.finish().await;
    }
}
