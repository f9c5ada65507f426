//! `proofmill partition info`: `folder` describes keys of a circuit, `times` estimates the time of a proof, `text` prints.

mod folder;
mod text;
mod times;

use proofmill_partition::with_partition_curve;
use std::path::Path;

use proofmill_partition::proof::{PartitionCurve, PartitionProof, VerifyingKey};
use serde_json::{Value, json};

use crate::args::partition::PartitionInfo;
use crate::circuit_folder::Folder;
use crate::content::{FileKind, curve_of_file};
use crate::failure::Failure;
use crate::output;

pub(super) fn run(args: &PartitionInfo) -> Result<(), Failure> {
    let path = &args.path;
    let answer = if path.is_dir() {
        let folder = Folder::at(path);
        let description = folder.description()?;
        let curve = description.curve()?;
        with_partition_curve!(curve, E => folder::describe::<E>(&folder, &description, args))??
    } else if FileKind::of_file(path).ok().flatten() == Some(FileKind::PartitionProof) {
        let curve = curve_of_file(FileKind::PartitionProof, path)?;
        with_partition_curve!(curve, E => describe_proof::<E>(path))??
    } else {
        let curve = curve_of_file(FileKind::PartitionKey, path)?;
        with_partition_curve!(curve, E => describe_key::<E>(path))??
    };
    if args.json {
        return output::line(answer.to_string());
    }
    for line in text::lines(&answer) {
        output::line(output::plain(&line))?;
    }
    Ok(())
}

fn describe_key<E: PartitionCurve>(path: &Path) -> Result<Value, Failure> {
    let key = VerifyingKey::<E>::load(path)
        .map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
    Ok(json!({
        "verifying_key": {
            "curve": E::CURVE.name(),
            "parts": key.num_parts(),
            "public_inputs": key.num_public_inputs(),
            "digest": hex::encode(key.digest()),
            "partition": hex::encode(key.partition()),
            "bytes": key.to_bytes().len(),
            "proof_bytes": PartitionProof::<E>::encoded_size(key.num_parts()),
        }
    }))
}

fn describe_proof<E: PartitionCurve>(path: &Path) -> Result<Value, Failure> {
    let proof = PartitionProof::<E>::load(path)
        .map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
    Ok(json!({
        "proof": {
            "curve": E::CURVE.name(),
            "bytes": proof.to_bytes().len(),
        }
    }))
}
