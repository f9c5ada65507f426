//! The table `[history]`.

use std::time::Duration;

use crate::fields::Fields;

/// Maximum of `steps`: the leader keeps the steps in memory.
const STEPS_MAX: u64 = 1_000_000;

/// The table `[history]`: how much is kept about blocks that have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History {
    /// Maximum number of steps kept: ends of tasks and other events of blocks. From 0 (nothing is
    /// kept) to 1,000,000; 20,000 by default.
    pub steps: u64,
    /// Age at which the oldest step is dropped when another is added; 30 days by default.
    pub keep: Duration,
}

// === impl History ===

impl Default for History {
    fn default() -> Self {
        Self {
            steps: 20_000,
            keep: Duration::from_secs(30 * 24 * 3600),
        }
    }
}

impl History {
    pub(crate) fn read(mut fields: Fields<'_, '_>) -> Self {
        let default = Self::default();
        let history = Self {
            steps: fields
                .number("steps", 0..=STEPS_MAX)
                .unwrap_or(default.steps),
            keep: fields.duration("keep").unwrap_or(default.keep),
        };
        fields.finish();
        history
    }
}
