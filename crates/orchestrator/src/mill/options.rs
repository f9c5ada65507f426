//! Options, summary and errors of a mill.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proofmill_bus as bus;
use serde::Serialize;
use tokio::sync::mpsc;

use super::sweep::BlobSweep;
use crate::coordinator::{CoordinatorError, CoordinatorGone};
use crate::core::{Routing, Status};
use crate::plan::PlanError;
use crate::sink::{EmissionRefused, Emitted, Sink, SinkError};
use crate::source;
use proofmill_process::ProcessError;

/// Options of a mill.
pub struct Options {
    /// The state directory: log, blobs, emitted proofs, scratch. Used by one process at a time.
    pub state: PathBuf,
    /// Connection to a NATS server that keeps the log and the blobs, instead of the state
    /// directory; `None` by default. With it, dispatchers of other processes may join, and another
    /// process may take over when this one ends.
    pub bus: Option<bus::Connection>,
    /// Whether the sources run; `true` by default. An operator who only inspects or repairs turns
    /// it off.
    pub run_sources: bool,
    /// Sinks in addition to those of the workflow file.
    pub sinks: Vec<Box<dyn Sink>>,
    /// Channel that receives every emission.
    pub stream: Option<mpsc::Sender<Emitted>>,
    /// Number of dispatchers for a dispatcher stage, by its name; overrides the workflow's.
    pub workers: BTreeMap<String, usize>,
    /// Whether to keep running when the sources have ended and no task is pending, since work may
    /// still be submitted; `false` by default.
    pub keep_running: bool,
    /// Routing of messages to collectors; changed for experiments only.
    pub routing: Routing,
    /// Intervals of the removal of unreferenced blobs.
    pub blob_sweep: BlobSweep,
    /// Whether to continue with a log in the state directory that contains less than was durable,
    /// or less than was emitted; `false` by default.
    /// [`Mill::accepted_losses`](super::Mill::accepted_losses) lists the losses.
    pub accept_loss: bool,
    /// Whether to leave the state directory unchanged; `false` by default. Changes made through
    /// this mill are then lost when it is closed.
    pub read_only: bool,
}

/// The result of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The status at the end.
    pub status: Status,
    /// The counts of each source, by name.
    pub sources: BTreeMap<String, SourceSummary>,
    /// Whether the run was stopped before its end.
    pub interrupted: bool,
}

/// The counts of a source.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SourceSummary {
    /// Messages newly recorded.
    pub accepted: u64,
    /// Messages that were already known or finished.
    pub duplicates: u64,
    /// Messages recorded in the dead-letter queue.
    pub rejected: u64,
    /// Whether the source reached its end, with all its messages recorded.
    pub ended: bool,
}

/// The reason why a mill could not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum MillError {
    /// The workflow needs something that this program lacks.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// An executor, a source or a sink cannot be made.
    #[error("{what}: {why}")]
    Setup {
        /// The stage or source, as in `dispatcher "prove"`.
        what: String,
        /// The reason, as a sentence fragment.
        why: String,
    },
    /// A process executor cannot be made, or its leftovers cannot be swept.
    #[error("dispatcher {stage:?}")]
    Process {
        /// The stage.
        stage: String,
        /// The error of the executor.
        #[source]
        source: ProcessError,
    },
    /// The state directory cannot be created or used.
    #[error("cannot make state directory {}", path.display())]
    State {
        /// The directory.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: std::io::Error,
    },
    /// The state directory was removed while the mill ran.
    #[error(
        "{} was removed or replaced while the mill ran, and unfinished work with it; start the \
         mill again to begin anew, or restore the state directory from a copy first",
        path.display()
    )]
    StateLost {
        /// The state directory, or the log in it.
        path: PathBuf,
    },
    /// The log cannot be opened.
    #[error(transparent)]
    Open(#[from] bus::OpenError),
    /// The log is older than the sequencer's emissions.
    #[error(
        "the log has gone back: {missing}, in {}, and the log does not know them; restore the \
         state directory from a copy, or prove them again with --accept-loss",
        directory.display()
    )]
    LogRolledBack {
        /// The sequencer's directory.
        directory: PathBuf,
        /// Description of the emissions that the log does not know.
        missing: String,
    },
    /// The bus cannot be used.
    #[error(transparent)]
    Connect(#[from] bus::ConnectError),
    /// Another process leads the workflow.
    #[error(
        "workflow {workflow:?} is led by {holder} already: run a dispatcher beside it, or stop it"
    )]
    AlreadyLed {
        /// The workflow.
        workflow: String,
        /// The name of the process that leads it.
        holder: String,
    },
    /// The blob store cannot be opened.
    #[error(transparent)]
    Blobs(#[from] bus::BlobError),
    /// The coordinator failed.
    #[error(transparent)]
    Coordinator(#[from] CoordinatorError),
    /// A source failed.
    #[error(transparent)]
    Source(#[from] source::SourceError),
    /// A sink cannot be opened.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// A message that was about to be emitted failed its check.
    #[error(transparent)]
    Refused(#[from] EmissionRefused),
    /// The coordinator has stopped.
    #[error(transparent)]
    CoordinatorGone(#[from] CoordinatorGone),
    /// A service of the mill panicked.
    #[error("a service panicked: {0}")]
    Panicked(String),
}

// === impl MillError ===

impl MillError {
    /// Whether the error only states that the coordinator has stopped.
    pub(super) fn is_coordinator_gone(&self) -> bool {
        matches!(
            self,
            Self::CoordinatorGone(_) | Self::Source(source::SourceError::CoordinatorGone(_))
        )
    }
}

// === impl Options ===

impl Options {
    /// Options with the state in `directory`, and defaults otherwise.
    pub fn in_directory(directory: impl AsRef<Path>) -> Self {
        Self {
            state: directory.as_ref().to_owned(),
            bus: None,
            run_sources: true,
            sinks: Vec::new(),
            stream: None,
            workers: BTreeMap::new(),
            keep_running: false,
            routing: Routing::default(),
            blob_sweep: BlobSweep::default(),
            accept_loss: false,
            read_only: false,
        }
    }
}

// === impl Summary ===

impl Summary {
    /// Whether everything accepted is finished, with no live task and no dead letter.
    pub fn is_complete(&self) -> bool {
        !self.interrupted && self.status.live == 0 && self.status.dead == 0
    }
}

impl From<source::Summary> for SourceSummary {
    fn from(summary: source::Summary) -> Self {
        Self {
            accepted: summary.accepted,
            duplicates: summary.duplicates,
            rejected: summary.rejected,
            ended: summary.ended,
        }
    }
}
