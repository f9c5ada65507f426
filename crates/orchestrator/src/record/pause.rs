//! Pauses: stages, sources and workers that an operator holds back.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Maximum length of the name of the operator in a pause, in bytes; longer ones are cut.
pub const PAUSED_BY_MAX: usize = 128;

/// Kind of what an operator has paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseKind {
    /// A dispatcher, whose tasks are not leased, or the sequencer, which emits nothing.
    Stage,
    /// A source, whose messages wait.
    Source,
    /// A worker, which gets no tasks and finishes those that it has: it drains.
    Worker,
}

/// A stage, source or worker that an operator has paused. It lasts until the operator resumes it, over restarts; that of a
/// worker ends when the worker leaves, too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PauseRecord {
    /// Kind of what is paused.
    pub kind: PauseKind,
    /// Its name.
    pub name: Arc<str>,
    /// Name of the operator, as its client says it; at most [`PAUSED_BY_MAX`] bytes.
    pub by: Arc<str>,
    /// Time of the pause, milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
}

// === impl PauseKind ===

impl PauseKind {
    /// The kind as a word: `stage`, `source` or `worker`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Stage => "stage",
            Self::Source => "source",
            Self::Worker => "worker",
        }
    }

    /// The kind that a word names.
    pub(super) fn of_word(word: &str) -> Option<Self> {
        let kinds = [Self::Stage, Self::Source, Self::Worker];
        kinds.into_iter().find(|kind| kind.word() == word)
    }
}

impl fmt::Display for PauseKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
