//! Settings, summary and errors of a mill.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proofmill_bus as bus;
use serde::Serialize;
use tokio::sync::mpsc;

use super::sweep::BlobSweep;
use crate::coordinator::{CoordinatorError, CoordinatorGone};
use crate::core::{Routing, Status};
use crate::executor::process::ProcessError;
use crate::plan::PlanError;
use crate::sink::{EmissionRefused, Emitted, Sink, SinkError};
use crate::source;

/// Settings of a mill.
pub struct Options {
    /// Everything that must survive: log, blobs, emitted proofs, scratch. One process at a time.
    pub state: PathBuf,
    /// A NATS server for the log and the blobs, instead of the state directory: dispatchers of other
    /// processes may join, and another process may take over when this one has gone.
    pub bus: Option<bus::Connection>,
    /// Whether the sources run; not for an operator who only looks or mends.
    pub run_sources: bool,
    /// Further sinks, besides the sequencer's directory.
    pub sinks: Vec<Box<dyn Sink>>,
    /// A stream of what is emitted.
    pub stream: Option<mpsc::Sender<Emitted>>,
    /// Overrides the number of dispatchers of each dispatcher stage.
    pub workers: BTreeMap<String, usize>,
    /// Keep running when the sources have ended and nothing moves: work may still be submitted.
    pub stay: bool,
    /// For an experiment: how messages find their collector.
    pub routing: Routing,
    /// When unreferenced blobs are removed.
    pub blob_sweep: BlobSweep,
    /// Go on with a log in the state directory that holds less than was durable, or less than what
    /// was emitted: [`Mill::accepted_losses`](super::Mill::accepted_losses) lists what is missing.
    pub accept_loss: bool,
    /// Look at the state directory, and change nothing in it: what is told to this mill is forgotten
    /// when it is closed.
    pub read_only: bool,
}

/// How a run ended.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The whole at the end.
    pub status: Status,
    /// What each source brought, by name.
    pub sources: BTreeMap<String, SourceSummary>,
    /// Whether it was told to stop before its end.
    pub interrupted: bool,
}

/// What a source brought.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SourceSummary {
    /// Messages newly recorded.
    pub accepted: u64,
    /// Messages that were known, or finished, already.
    pub duplicates: u64,
    /// Messages recorded in the dead-letter queue.
    pub rejected: u64,
    /// Whether it came to its end, and all that it brought is recorded.
    pub ended: bool,
}

/// Why a mill could not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum MillError {
    /// The workflow needs what this program has not.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// An executor or a source cannot be made.
    #[error("{what}: {why}")]
    Setup {
        /// Which stage or source.
        what: String,
        /// In words.
        why: String,
    },
    /// A process executor cannot be made.
    #[error("dispatcher {stage:?}")]
    Process {
        /// The stage.
        stage: String,
        /// Why.
        #[source]
        source: ProcessError,
    },
    /// The state directory cannot be made.
    #[error("cannot make state directory {}", path.display())]
    State {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The state directory was removed while the mill ran.
    #[error(
        "{} was removed or replaced while the mill ran, and with it what was not finished; start it again \
         to begin anew, or restore the state directory from a copy first",
        path.display()
    )]
    StateLost {
        /// The state directory, or the log in it.
        path: PathBuf,
    },
    /// The log cannot be opened.
    #[error(transparent)]
    Open(#[from] bus::OpenError),
    /// The log is older than what the sequencer has emitted.
    #[error(
        "the log has gone back: {missing}, in {}, of which it knows nothing; restore the state directory \
         from a copy, or go on and prove them again with --accept-loss",
        directory.display()
    )]
    WentBack {
        /// The sequencer's directory.
        directory: PathBuf,
        /// Emissions of which the log knows nothing, in words.
        missing: String,
    },
    /// The bus cannot be used.
    #[error(transparent)]
    Connect(#[from] bus::ConnectError),
    /// Another process leads the workflow.
    #[error(
        "workflow {workflow:?} is led by {holder} already: run a dispatcher beside it, or stop it"
    )]
    Led {
        /// The workflow.
        workflow: String,
        /// Its name.
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
    /// A message that was about to be emitted is wrong.
    #[error(transparent)]
    Refused(#[from] EmissionRefused),
    /// See [`CoordinatorGone`].
    #[error(transparent)]
    Gone(#[from] CoordinatorGone),
    /// A part of the mill ended by a panic.
    #[error("a service panicked: {0}")]
    Panicked(String),
}

// === impl MillError ===

impl MillError {
    /// Whether all it says is that the coordinator has stopped.
    pub(super) fn is_gone(&self) -> bool {
        matches!(
            self,
            Self::Gone(_) | Self::Source(source::SourceError::Gone(_))
        )
    }
}

// === impl Options ===

impl Options {
    /// State in `directory`, everything else as it usually is.
    pub fn in_directory(directory: impl AsRef<Path>) -> Self {
        Self {
            state: directory.as_ref().to_owned(),
            bus: None,
            run_sources: true,
            sinks: Vec::new(),
            stream: None,
            workers: BTreeMap::new(),
            stay: false,
            routing: Routing::default(),
            blob_sweep: BlobSweep::default(),
            accept_loss: false,
            read_only: false,
        }
    }
}

// === impl Summary ===

impl Summary {
    /// Whether everything that was accepted is finished: nothing live, nothing dead.
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
