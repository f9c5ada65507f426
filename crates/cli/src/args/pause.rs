//! Arguments of `proofmill pause`, `resume` and `run-now`.

use clap::{Args, ValueEnum};
use proofmill_orchestrator::record::PauseKind;

use super::MillArgs;

/// `proofmill pause` and `proofmill resume`
#[derive(Debug, Args)]
pub(crate) struct Pause {
    #[command(flatten)]
    pub(crate) mill: MillArgs,
    /// Kind of the thing.
    #[arg(value_enum, value_name = "KIND")]
    pub(crate) kind: Kind,
    /// Its name.
    pub(crate) name: String,
}

/// `proofmill run-now`
#[derive(Debug, Args)]
pub(crate) struct RunNow {
    #[command(flatten)]
    pub(crate) mill: MillArgs,
    /// The task, as STAGE/BLOCK/PART.
    pub(crate) task: String,
}

/// Kind of what is paused.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Kind {
    /// A dispatcher, or the sequencer.
    Stage,
    /// A source.
    Source,
    /// A worker, which drains.
    Worker,
}

// === impl Kind ===

impl From<Kind> for PauseKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Stage => Self::Stage,
            Kind::Source => Self::Source,
            Kind::Worker => Self::Worker,
        }
    }
}
