//! Reading the files of aggregates: reference strings, keys, and what is small.

use std::path::Path;

use proofmill_aggregation::{AggregationEngine, AggregationFileError, Groth16Index, Srs};

use crate::args::aggregate::OutputArg;
use crate::failure::Failure;
use crate::files::{Plan, Replace};

/// A reference string from anyone, which is checked.
pub(super) fn load_srs<E: AggregationEngine>(path: &Path) -> Result<Srs<E>, Failure> {
    Srs::load(path).map_err(|error| in_file(path, &error))
}

/// A key from anyone. Whether it is of the right verifying keys is for whoever names it to know.
pub(super) fn load_key<E: AggregationEngine>(path: &Path) -> Result<Groth16Index<E>, Failure> {
    Groth16Index::load(path).map_err(|error| in_file(path, &error))
}

fn in_file(path: &Path, error: &AggregationFileError) -> Failure {
    match error {
        AggregationFileError::Io { .. } => Failure::of(error),
        error => Failure::new(format!("{}: {error}", path.display())),
    }
}

// === impl OutputArg ===

impl OutputArg {
    /// That the file can be written without loss, by a command that reads others.
    pub(super) fn check<'a>(&'a self, what: &'static str, reads: Plan<'a>) -> Result<(), Failure> {
        let replace = match self.force {
            true => Replace::Anything,
            false => Replace::Nothing,
        };
        reads.writes(what, &self.output).check(replace)
    }
}
