//! Counts of a verifier.

use std::collections::BTreeMap;

use crate::batch::Checks;
use crate::schedule::SourceReport;

/// Counts of a verifier since it was opened, and its present load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Figures of each kind that has reduced a proof, by its name.
    pub kinds: BTreeMap<String, KindFigures>,
    /// The sources that are remembered.
    pub sources: Vec<SourceReport>,
    /// Requests under way.
    pub under_way: usize,
}

/// Counts and times for the proofs of a kind. Times are microseconds of the threads' jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KindFigures {
    /// Proofs that were decoded and reduced, or refused then.
    pub reductions: u64,
    /// Time that took.
    pub reduce_us: u64,
    /// Batches that were checked; of one proof, too.
    pub batches: u64,
    /// Proofs in them.
    pub proofs: u64,
    /// Time they took, the search for false proofs included.
    pub check_us: u64,
    /// Checks of these batches.
    pub checks: Checks,
    /// Batches by size: of at most 1, 2, 4, 8 and so on proofs.
    pub sizes: [u64; SIZES],
}

/// The number of histogram buckets for batch sizes: powers of two to 1024.
pub const SIZES: usize = 11;

// === impl KindFigures ===

impl KindFigures {
    /// Checks that one by one would have taken, less those that were made.
    pub fn checks_saved(&self) -> i64 {
        self.proofs as i64 - (self.checks.together + self.checks.alone) as i64
    }

    pub(crate) fn add_batch(&mut self, proofs: usize, time_us: u64, checks: Checks) {
        self.batches += 1;
        self.proofs += proofs as u64;
        self.check_us += time_us;
        self.checks.together += checks.together;
        self.checks.alone += checks.alone;
        self.checks.screens += checks.screens;
        let size = proofs.next_power_of_two().trailing_zeros() as usize;
        self.sizes[size.min(SIZES - 1)] += 1;
    }
}
