//! Reading the files of aggregates: reference strings, keys, and what is small.

use std::io::Read;
use std::path::Path;

use proofmill_aggregation::{AggregationEngine, AggregationFileError, Groth16Index, Srs, curve_of};
use proofmill_groth16::Curve;
use proofmill_r1cs::iden3::{open_regular, open_regular_or_inherited};

use crate::args::aggregate::OutputArg;
use crate::content::Content;
use crate::failure::Failure;
use crate::files::{Plan, Replace};

/// Bytes of a reference string or a key that name its curve.
const HEAD: u64 = 28;

/// The curve of a reference string or a key, which the file must be.
pub(super) fn curve_of_file(content: Content, path: &Path) -> Result<Curve, Failure> {
    content.expect(path)?;
    let shown = path.display();
    let mut head = Vec::new();
    open_regular(path)
        .and_then(|file| file.take(HEAD).read_to_end(&mut head))
        .map_err(|error| Failure::new(format!("{shown}: {error}")))?;
    let no_curve = || Failure::new(format!("{shown}: not {}, or cut short", content.named()));
    curve_of(&head).ok_or_else(no_curve)
}

/// A reference string from anyone, which is checked.
pub(super) fn load_srs<E: AggregationEngine>(path: &Path) -> Result<Srs<E>, Failure> {
    Srs::load(path).map_err(|error| in_file(path, &error))
}

/// A key from anyone. Whether it is of the right verifying keys is for whoever names it to know.
pub(super) fn load_key<E: AggregationEngine>(path: &Path) -> Result<Groth16Index<E>, Failure> {
    Groth16Index::load(path).map_err(|error| in_file(path, &error))
}

/// The content of a file, of which there are `bytes_max` at most; why not, without its path.
pub(super) fn read(path: &Path, bytes_max: usize) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    open_regular_or_inherited(path)
        .and_then(|file| file.take(bytes_max as u64 + 1).read_to_end(&mut bytes))
        .map_err(|error| error.to_string())?;
    if bytes.len() > bytes_max {
        return Err(format!(
            "more than {bytes_max} bytes, the most that is read"
        ));
    }
    Ok(bytes)
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
