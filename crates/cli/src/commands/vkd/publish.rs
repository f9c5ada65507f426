//! `proofmill vkd publish`

use proofmill_partition::with_partition_curve;
use std::path::Path;

use proofmill_directory::chain::{EpochRecord, public_inputs};
use proofmill_directory::store::KeyDirectory;
use proofmill_partition::proof::{PartitionCurve, PartitionProof, VerifyingKey};
use proofmill_telemetry::console_line;
use serde_json::json;

use super::epoch::{EpochUpdates, counted_batches};
use crate::args::vkd::Publish;
use crate::circuit_folder::Folder;
use crate::failure::Failure;
use crate::output;
use crate::progress::counted;

pub(super) fn run(args: &Publish) -> Result<(), Failure> {
    let (directory, epoch, description) = args.epoch.open()?;
    let (expected, found) = (epoch.count(), args.proofs.len());
    if expected != found {
        return Err(Failure::new(format!(
            "{}, where epoch {} has {}: name the proof of each, in their order",
            counted(found, "proof"),
            epoch.number,
            counted_batches(expected)
        )));
    }
    let record =
        with_partition_curve!(description.curve()?, E => record::<E>(args, &directory, &epoch))??;
    directory.publish(&record)?;
    let shown = args.epoch.directory.display();
    console_line(output::plain(&format!(
        "{shown}: epoch {}, {} verified and published",
        epoch.number,
        counted(found, "proof"),
    )));
    if args.json {
        let answer = json!({
            "number": record.number,
            "root": record.root_after(),
            "updates": record.updates(),
            "batches": record.batches.len(),
            "bytes": record.to_bytes().len(),
        });
        output::line(answer.to_string())?;
    }
    Ok(())
}

/// The record of the epoch, of proofs that are valid for its batches.
fn record<E: PartitionCurve>(
    args: &Publish,
    directory: &KeyDirectory,
    epoch: &EpochUpdates,
) -> Result<EpochRecord, Failure> {
    let unusable = |path: &Path, why: String| Failure::new(format!("{}: {why}", path.display()));
    let path = Folder::at(&args.epoch.keys).verifying_key_path();
    let key = VerifyingKey::<E>::load(&path).map_err(|error| unusable(&path, error.to_string()))?;
    let mut record = EpochRecord::new(epoch.number, epoch.root_before);
    let batches = epoch.batches(directory.tree_before(epoch.number)?)?;
    for (index, (batch, path)) in batches.zip(&args.proofs).enumerate() {
        let batch = batch?;
        let proof =
            PartitionProof::<E>::load(path).map_err(|error| unusable(path, error.to_string()))?;
        let inputs = public_inputs(&batch.root_before(), &batch.root_after());
        key.verify(&inputs, &proof).map_err(|error| {
            unusable(path, format!("not valid for batch {index}: {error}"))
                .help("nothing was published")
        })?;
        record.push(batch.root_after(), batch.len(), &proof);
    }
    Ok(record)
}
