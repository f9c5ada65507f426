//! Whose turn it is.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What goes first wherever something waits: for memory, and before every stage. Within equals the
/// order is by arrival.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// When nothing else is to be done.
    Low,
    /// Unless said otherwise.
    #[default]
    Normal,
    /// Before what is normal.
    High,
    /// Before everything; may use the express slots beyond those of ordinary partitions.
    Critical,
}

/// A text that is no priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a priority: critical, high, normal or low")]
pub struct InvalidPriority;

// === impl Priority ===

impl Priority {
    /// All of them, lowest first.
    pub const ALL: [Self; 4] = [Self::Low, Self::Normal, Self::High, Self::Critical];

    /// What messages and files call it.
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
