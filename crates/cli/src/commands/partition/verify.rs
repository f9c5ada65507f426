//! `proofmill partition verify`

use proofmill_partition::with_partition_curve;
use std::path::Path;
use std::time::Instant;

use proofmill_groth16::snarkjs::inputs_from_json;
use proofmill_partition::proof::{PartitionCurve, PartitionProof, VerifyError, VerifyingKey};
use proofmill_telemetry::console_line;
use serde_json::json;

use crate::args::partition::PartitionVerify;
use crate::content::{FileKind, curve_of_file};
use crate::failure::Failure;
use crate::files::read;
use crate::output;
use crate::stages::{milliseconds, short};

/// Largest file of public inputs, in bytes: the most inputs that a key may have, at 80 characters each.
const PUBLIC_BYTES: usize = 80 << 20;

pub(super) fn run(args: &PartitionVerify) -> Result<(), Failure> {
    let began = Instant::now();
    let curve =
        curve_of_file(FileKind::PartitionKey, &args.key).map_err(Failure::without_answer)?;
    let verdict = with_partition_curve!(curve, E => verify::<E>(args))??;
    let shown = args.proof.display();
    if args.json {
        let answer = json!({
            "valid": verdict.is_ok(),
            "reason": verdict.as_ref().err().map(ToString::to_string),
            "total_ms": milliseconds(began.elapsed()),
        });
        output::line(answer.to_string())?;
    }
    match verdict {
        Ok(parts) => {
            console_line(output::plain(&format!(
                "{shown}: valid, for a circuit in {parts} parts, in {}",
                short(began.elapsed())
            )));
            Ok(())
        }
        Err(reason) => Err(Failure::new(format!("{shown}: not valid: {reason}"))),
    }
}

/// The number of parts of a valid proof, or the reason why it is not valid. The outer error is for files that cannot be
/// read, which give no verdict.
fn verify<E: PartitionCurve>(
    args: &PartitionVerify,
) -> Result<Result<usize, VerifyError>, Failure> {
    let files = ProofFiles::<E>::load(&args.key, &args.public, &args.proof)?;
    Ok(files.verify().map(|()| files.key.num_parts()))
}

/// What a verifier reads.
pub(crate) struct ProofFiles<E: PartitionCurve> {
    pub(crate) key: VerifyingKey<E>,
    pub(crate) inputs: Vec<E::ScalarField>,
    proof: PartitionProof<E>,
}

// === impl ProofFiles ===

impl<E: PartitionCurve> ProofFiles<E> {
    /// Reads the files; one that cannot be read gives no verdict.
    pub(crate) fn load(key: &Path, public: &Path, proof: &Path) -> Result<Self, Failure> {
        let unread =
            |path: &Path, why: String| Failure::no_verdict(format!("{}: {why}", path.display()));
        let read_key = VerifyingKey::<E>::load(key);
        let text = read(public, PUBLIC_BYTES).map_err(|why| unread(public, why))?;
        let inputs = inputs_from_json::<E::ScalarField>(&text);
        let read_proof = PartitionProof::<E>::load(proof);
        Ok(Self {
            key: read_key.map_err(|error| unread(key, error.to_string()))?,
            inputs: inputs.map_err(|error| unread(public, error.to_string()))?,
            proof: read_proof.map_err(|error| unread(proof, error.to_string()))?,
        })
    }

    /// Verifies the proof.
    pub(crate) fn verify(&self) -> Result<(), VerifyError> {
        self.key.verify(&self.inputs, &self.proof)
    }
}
