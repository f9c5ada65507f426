//! `proofmill vkd verify chain`

use proofmill_partition::with_partition_curve;
use std::path::{Path, PathBuf};
use std::time::Instant;

use proofmill_directory::chain::{
    ChainError, Checkpoint, EpochRecord, RECORD_BYTES_MAX, verify_chain,
};
use proofmill_directory::empty_digest;
use proofmill_partition::proof::{PartitionCurve, VerifyingKey};
use proofmill_telemetry::console_line;
use serde_json::json;

use crate::args::vkd::VerifyChain;
use crate::content::{FileKind, curve_of_file};
use crate::failure::Failure;
use crate::files::read;
use crate::output;
use crate::progress::counted;
use crate::stages::{milliseconds, short};

/// Most bytes of a record: as JSON its proofs take two digits for each byte.
const JSON_RECORD_BYTES_MAX: usize = 2 * RECORD_BYTES_MAX as usize + (1 << 20);

/// A chain as far as it is valid.
struct Verified {
    last: Checkpoint,
    epochs: usize,
    /// The record that is refused, with the reason.
    refused: Option<(PathBuf, ChainError)>,
}

pub(super) fn run(args: &VerifyChain) -> Result<(), Failure> {
    let began = Instant::now();
    let curve =
        curve_of_file(FileKind::PartitionKey, &args.key).map_err(Failure::without_answer)?;
    let from = args.from.unwrap_or_else(|| Checkpoint {
        number: 0,
        root: empty_digest(args.depth.depth),
    });
    let records = record_paths(args, from)?;
    let verified = with_partition_curve!(curve, E => verify::<E>(&args.key, from, &records))??;
    let Verified {
        last,
        epochs,
        refused,
    } = verified;
    if args.json {
        let reason = refused.as_ref().map(|(_, reason)| reason.to_string());
        let answer = json!({
            "valid": refused.is_none(),
            "reason": reason,
            "epochs": epochs,
            "last": last,
            "total_ms": milliseconds(began.elapsed()),
        });
        output::line(answer.to_string())?;
    }
    let Checkpoint { number, root } = last;
    match refused {
        None => {
            console_line(format!(
                "valid: {} after epoch {}, in {}; epoch {number} ends with the root {root}",
                counted(epochs, "epoch"),
                from.number,
                short(began.elapsed()),
            ));
            Ok(())
        }
        Some((path, reason)) => {
            let failure = Failure::new(format!("{}: not valid: {reason}", path.display()));
            Err(match epochs {
                0 => failure,
                _ => failure.help(format!(
                    "the chain is valid up to epoch {number}, which ends with the root {root}"
                )),
            })
        }
    }
}

/// The files of the records: those that are named, or those of a directory after the checkpoint.
fn record_paths(args: &VerifyChain, from: Checkpoint) -> Result<Vec<PathBuf>, Failure> {
    let [folder] = &args.records[..] else {
        return Ok(args.records.clone());
    };
    if !folder.is_dir() {
        return Ok(args.records.clone());
    }
    // The records of a directory may have been copied without the rest of it.
    let of_directory = folder.join("records");
    let folder = match of_directory.is_dir() {
        true => &of_directory,
        false => folder,
    };
    let shown = folder.display();
    let unread = |error: std::io::Error| Failure::no_verdict(format!("{shown}: {error}"));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unread)? {
        let entry = entry.map_err(unread)?;
        let number = entry.file_name().to_str().and_then(|it| it.parse().ok());
        let number: Option<u64> = number.filter(|number| *number > from.number);
        found.extend(number.map(|number| (number, entry.path())));
    }
    if found.is_empty() {
        return Err(Failure::no_verdict(format!(
            "{shown}: there is no record of an epoch after {}",
            from.number
        ))
        .help("`proofmill vkd prove` makes the records"));
    }
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// Verifies one record after the other, so that one is in memory at a time.
fn verify<E: PartitionCurve>(
    key: &Path,
    from: Checkpoint,
    records: &[PathBuf],
) -> Result<Verified, Failure> {
    let unread =
        |path: &Path, why: String| Failure::no_verdict(format!("{}: {why}", path.display()));
    let loaded = VerifyingKey::<E>::load(key);
    let loaded = loaded.map_err(|error| unread(key, error.to_string()))?;
    let mut verified = Verified {
        last: from,
        epochs: 0,
        refused: None,
    };
    for path in records {
        let record = read_record(path).map_err(|why| unread(path, why))?;
        match verify_chain(&loaded, verified.last, &[record]) {
            Ok(last) => verified.last = last,
            Err(reason) => {
                verified.refused = Some((path.clone(), reason));
                break;
            }
        }
        verified.epochs += 1;
    }
    Ok(verified)
}

fn read_record(path: &Path) -> Result<EpochRecord, String> {
    let bytes = read(path, JSON_RECORD_BYTES_MAX)?;
    let is_json = bytes.trim_ascii_start().starts_with(b"{");
    match is_json {
        true => serde_json::from_slice(&bytes).map_err(|error| error.to_string()),
        false => EpochRecord::from_bytes(&bytes).map_err(|error| error.to_string()),
    }
}
