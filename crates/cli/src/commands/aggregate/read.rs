//! Reading and writing the files of aggregates: reference strings and keys.

use std::path::Path;

use proofmill_aggregation::{AggregationCurve, AggregationFileError, Groth16Index, Srs};

use crate::args::aggregate::OutputArg;
use crate::failure::Failure;
use crate::files::{FilePlan, OverwritePolicy};

/// Loads a reference string from an untrusted file, and checks it.
pub(super) fn load_srs<E: AggregationCurve>(path: &Path) -> Result<Srs<E>, Failure> {
    Srs::load(path).map_err(|error| in_file(path, &error))
}

/// Loads a key from an untrusted file. The caller is responsible for naming a key made from the right verifying keys.
pub(super) fn load_key<E: AggregationCurve>(path: &Path) -> Result<Groth16Index<E>, Failure> {
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
    /// Fails if the file cannot be written without loss; `reads` has the command's inputs.
    pub(super) fn check<'a>(
        &'a self,
        what: &'static str,
        reads: FilePlan<'a>,
    ) -> Result<(), Failure> {
        let replace = match self.force {
            true => OverwritePolicy::Anything,
            false => OverwritePolicy::Nothing,
        };
        reads.writes(what, &self.output).check(replace)
    }
}
