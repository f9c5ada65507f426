//! The priority of jobs.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Priority of a job: the order in which partitions get memory and enter each stage. Equal priorities are
/// served by arrival.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// Served only when no other work waits.
    Low,
    /// The default.
    #[default]
    Normal,
    /// Served before normal jobs.
    High,
    /// Served before all others. Critical partitions may also use the express slots.
    Critical,
}

/// A text that is not a priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a priority: critical, high, normal or low")]
pub struct InvalidPriority;

// === impl Priority ===

impl Priority {
    /// All priorities, lowest first.
    pub const ALL: [Self; 4] = [Self::Low, Self::Normal, Self::High, Self::Critical];

    /// The name in messages and files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Priority {
    type Err = InvalidPriority;

    fn from_str(text: &str) -> Result<Self, InvalidPriority> {
        let named = |priority: &Self| priority.name() == text;
        Self::ALL.into_iter().find(named).ok_or(InvalidPriority)
    }
}
