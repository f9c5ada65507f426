//! Numbers of a reporter, for a metrics page.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::answer::Verdict;
use crate::call::Step;
use crate::reporter::DropReason;
use crate::score::Scores;

/// End of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallOutcome {
    /// The site has taken the report.
    Accepted,
    /// The site had the block's proof.
    Known,
    /// The site refused the report, or the token, or the cluster.
    Refused,
    /// The site's limiter asked for a pause.
    Limited,
    /// No answer, or an error of the site.
    Failed,
}

/// The numbers of a reporter. Every look is of one moment.
#[derive(Debug, Default)]
pub struct Numbers(Mutex<Snapshot>);

/// The numbers at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Calls since the process began.
    pub calls: BTreeMap<(Step, CallOutcome), u64>,
    /// Reports given up since the process began.
    pub dropped: BTreeMap<(Step, DropReason), u64>,
    /// Reports that the site has not taken, by step.
    pub pending: [usize; 3],
    /// Bytes of their proofs.
    pub pending_bytes: u64,
    /// Calls without success since the last one with it.
    pub failing: u32,
    /// Scores of the last seven days.
    pub scores: Scores,
}

// === impl CallOutcome ===

impl CallOutcome {
    /// All outcomes.
    pub const ALL: [Self; 5] = [
        Self::Accepted,
        Self::Known,
        Self::Refused,
        Self::Limited,
        Self::Failed,
    ];

    /// Name of the outcome, as a label of metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Known => "known",
            Self::Refused => "refused",
            Self::Limited => "limited",
            Self::Failed => "failed",
        }
    }
}

impl From<&Verdict> for CallOutcome {
    fn from(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Accepted => Self::Accepted,
            Verdict::Known => Self::Known,
            Verdict::Refused(_) | Verdict::Misconfigured(_) => Self::Refused,
            Verdict::Limited(_) => Self::Limited,
            Verdict::Failed(_) => Self::Failed,
        }
    }
}

// === impl Numbers ===

impl Numbers {
    /// The numbers now.
    pub fn look(&self) -> Snapshot {
        self.lock().clone()
    }

    /// Counts a call.
    pub(crate) fn count_call(&self, step: Step, verdict: &Verdict) {
        let outcome = CallOutcome::from(verdict);
        *self.lock().calls.entry((step, outcome)).or_default() += 1;
    }

    /// Counts a report that was given up.
    pub(crate) fn count_drop(&self, step: Step, reason: DropReason) {
        *self.lock().dropped.entry((step, reason)).or_default() += 1;
    }

    /// Changes what is not counted.
    pub(crate) fn set(&self, set: impl FnOnce(&mut Snapshot)) {
        set(&mut self.lock());
    }

    fn lock(&self) -> MutexGuard<'_, Snapshot> {
        // Every change is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
