//! The table `[history]`.

use std::time::Duration;

use crate::fields::Fields;

/// Largest number of steps that may be remembered: the leader keeps them in memory.
const STEPS_MAX: u64 = 1_000_000;

/// The table `[history]`: how much is remembered of blocks that have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History {
    /// Ends of tasks, and what else happened to blocks, at most; nothing with 0.
    pub steps: u64,
    /// Time after which the oldest goes when something is added.
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
