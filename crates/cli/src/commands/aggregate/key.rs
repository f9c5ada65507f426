//! `proofmill aggregate key`

use std::collections::HashMap;
use std::path::Path;

use proofmill_aggregation::{AggregationCurve, Groth16Index, MAX_CAPACITY};
use proofmill_files::Visibility;
use proofmill_groth16::snarkjs::{curve_of_json, verifying_key_from_json};
use proofmill_groth16::{VerifyingKey, with_curve};
use proofmill_telemetry::console_line;
use serde_json::json;

use super::read::load_srs;
use crate::args::aggregate::{AggregateKey, KeyAndCount};
use crate::content::{FileKind, curve_of_file};
use crate::failure::Failure;
use crate::files::{FilePlan, read, write};
use crate::output;
use crate::progress::counted;
use crate::stages::{StageTimes, Stages, milliseconds, short};

/// Largest verifying key file, in bytes.
const KEY_BYTES_MAX: usize = 16 << 20;

/// Facts about a key, for the summary.
struct KeyFacts {
    proofs: usize,
    keys: usize,
    digest: String,
    stage_times: StageTimes,
}

pub(super) fn run(args: &AggregateKey) -> Result<(), Failure> {
    let mut reads = FilePlan::default().reads("the reference string", &args.srs);
    for key in &args.key {
        reads = reads.reads("a verifying key", &key.path);
    }
    args.output.check("the key", reads)?;
    let curve = curve_of_file(FileKind::ReferenceString, &args.srs)?;
    let made = args
        .threads
        .run(|| with_curve!(curve, E => make::<E>(args)))??;
    let path = &args.output.output;
    console_line(output::plain(&format!(
        "{}: a key over {curve} for {} under {}, in {}",
        path.display(),
        counted(made.proofs, "proof"),
        counted(made.keys, "verifying key"),
        short(made.stage_times.total)
    )));
    console_line(format!("  digest {}", made.digest));
    if args.json {
        let answer = json!({
            "curve": curve.name(),
            "proofs": made.proofs,
            "verifying_keys": made.keys,
            "digest": made.digest,
            "stages": made.stage_times.to_json(),
            "total_ms": milliseconds(made.stage_times.total),
        });
        output::line(answer.to_string())?;
    }
    Ok(())
}

fn make<E: AggregationCurve>(args: &AggregateKey) -> Result<KeyFacts, Failure> {
    let mut stages = Stages::begin("key", 4);
    stages.enter("read the verifying keys");
    let (keys, key_of) = verifying_keys::<E>(&args.key)?;
    stages.enter("read and check the reference string");
    let srs = load_srs::<E>(&args.srs)?;
    stages.enter("commit to the keys");
    let made = Groth16Index::new(&srs, keys, key_of);
    let index = made.map_err(|error| Failure::new(format!("{}: {error}", args.srs.display())))?;
    stages.enter("write");
    write(&args.output.output, Visibility::Public, &index.to_bytes())?;
    Ok(KeyFacts {
        proofs: index.count(),
        keys: index.keys().len(),
        digest: hex::encode(index.digest()),
        stage_times: stages.end(),
    })
}

/// The distinct verifying keys, and for each proof the index of its key.
fn verifying_keys<E: AggregationCurve>(
    named: &[KeyAndCount],
) -> Result<(Vec<VerifyingKey<E>>, Vec<u32>), Failure> {
    let counts = named.iter().map(|key| u64::from(key.count.get()));
    let count: u64 = counts.sum();
    if count > MAX_CAPACITY as u64 {
        return Err(Failure::usage(format!(
            "--key: {count} proofs in all, where an aggregate has {MAX_CAPACITY} at most"
        )));
    }
    let (mut keys, mut key_of) = (Vec::new(), Vec::with_capacity(count as usize));
    // Keys are compared by content: a key is named twice if its proofs are not consecutive.
    let mut numbers = HashMap::new();
    for KeyAndCount { path, count } in named {
        let key = verifying_key::<E>(path)?;
        let number = *numbers.entry(key.to_bytes()).or_insert_with(|| {
            keys.push(key);
            keys.len() as u32 - 1
        });
        key_of.extend(std::iter::repeat_n(number, count.get() as usize));
    }
    Ok((keys, key_of))
}

fn verifying_key<E: AggregationCurve>(path: &Path) -> Result<VerifyingKey<E>, Failure> {
    let failed = |why: String| Failure::new(format!("{}: {why}", path.display()));
    let bytes = read(path, KEY_BYTES_MAX).map_err(failed)?;
    let key = if FileKind::of(&bytes) == Some(FileKind::Key) {
        VerifyingKey::<E>::from_bytes(&bytes).map_err(|error| failed(error.to_string()))?
    } else {
        FileKind::VerifyingKey.expect(path)?;
        let curve = curve_of_json(&bytes).map_err(|error| failed(error.to_string()))?;
        if let Some(other) = curve.filter(|curve| *curve != E::CURVE) {
            let why = format!(
                "a key over {other}, where the reference string is over {}",
                E::CURVE
            );
            return Err(failed(why));
        }
        verifying_key_from_json(&bytes).map_err(|error| failed(error.to_string()))?
    };
    let secure = key.require_secure();
    secure.map_err(|insecure| {
        failed(insecure.to_string())
            .help("take a key that others contributed to (`snarkjs zkey contribute`)")
    })?;
    Ok(key)
}
