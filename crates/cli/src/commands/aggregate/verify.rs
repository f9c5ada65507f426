//! `proofmill aggregate verify`

use std::path::Path;

use ark_ec::pairing::Pairing;
use ark_ff::PrimeField;
use proofmill_aggregation::{Aggregate, AggregateKind, AggregationCurve, Groth16Index};
use proofmill_groth16::snarkjs::inputs_from_json;
use proofmill_groth16::{Curve, with_curve};
use serde_json::json;

use super::read::load_key;
use crate::args::aggregate::AggregateVerify;
use crate::commands::verify::pairs::{Verdict, whole_document};
use crate::content::{FileKind, curve_of_file};
use crate::failure::Failure;
use crate::files::read;
use crate::output;
use crate::progress::counted;
use crate::stages::{Stages, milliseconds};

/// The public inputs of each proof, or the verdict if they cannot be used.
type Inputs<E> = Result<Vec<Vec<<E as Pairing>::ScalarField>>, Verdict>;

/// The verdict on an aggregate, with the facts for the summary.
struct Answer {
    verdict: Verdict,
    curve: Curve,
    proofs: usize,
    keys: usize,
    key_digest: String,
    total_ms: f64,
}

pub(super) fn run(args: &AggregateVerify) -> Result<(), Failure> {
    let curve =
        curve_of_file(FileKind::AggregateKey, &args.key).map_err(Failure::without_answer)?;
    let answer = args
        .threads
        .run(|| with_curve!(curve, E => answer::<E>(args)))??;
    let shown = args.aggregate.display();
    if args.json {
        output::line(answer.to_json(&args.aggregate).to_string())?;
    } else {
        let line = match &answer.verdict {
            Verdict::Valid => format!(
                "valid    {shown}: {} under {}",
                counted(answer.proofs, "proof"),
                counted(answer.keys, "verifying key")
            ),
            Verdict::Invalid(why) => format!("INVALID  {shown}: {why}"),
            Verdict::Unread(why) => format!("unread   {shown}: {why}"),
        };
        output::line(output::plain(&line))?;
    }
    match answer.verdict {
        Verdict::Valid => Ok(()),
        Verdict::Invalid(_) => Err(Failure::new("the aggregate is not valid")),
        Verdict::Unread(_) => Err(Failure::no_verdict("no verdict: a file cannot be read")),
    }
}

fn answer<E: AggregationCurve>(args: &AggregateVerify) -> Result<Answer, Failure> {
    let mut stages = Stages::begin("verify", 2);
    stages.enter("read the key");
    let key = load_key::<E>(&args.key).map_err(Failure::without_answer)?;
    if args.public.is_none() && args.inputs.len() != key.count() {
        return Err(Failure::usage(format!(
            "--inputs: {}, where the key is for {}",
            counted(args.inputs.len(), "file"),
            counted(key.count(), "proof")
        ))
        .help("name one file for each proof, in the order in which they were aggregated"));
    }
    stages.enter("verify");
    let verdict = verdict(args, &key).err().unwrap_or(Verdict::Valid);
    Ok(Answer {
        verdict,
        curve: E::CURVE,
        proofs: key.count(),
        keys: key.keys().len(),
        key_digest: hex::encode(key.digest()),
        total_ms: milliseconds(stages.end().total),
    })
}

/// Verifies an aggregate; the error is any verdict other than valid.
fn verdict<E: AggregationCurve>(
    args: &AggregateVerify,
    key: &Groth16Index<E>,
) -> Result<(), Verdict> {
    // Read both files before judging either: if one cannot be read, there is no verdict.
    let bytes = whole_aggregate::<E>(&args.aggregate, key);
    let inputs = match &args.public {
        Some(path) => compact_inputs(path, key),
        None => json_inputs::<E>(args, key),
    };
    let (bytes, inputs) = match (bytes, inputs) {
        (Err(unread @ Verdict::Unread(_)), _) | (_, Err(unread @ Verdict::Unread(_))) => {
            return Err(unread);
        }
        (bytes, inputs) => (bytes?, inputs?),
    };
    let invalid = |error: &dyn std::error::Error| Verdict::Invalid(error.to_string());
    let aggregate = Aggregate::from_bytes(&bytes).map_err(|error| invalid(&error))?;
    let verified = key.verify(&inputs, &aggregate);
    verified.map_err(|error| invalid(&error))
}

/// Reads the file of an aggregate.
fn whole_aggregate<E: AggregationCurve>(
    path: &Path,
    key: &Groth16Index<E>,
) -> Result<Vec<u8>, Verdict> {
    let expected = Aggregate::<E>::encoded_size(AggregateKind::Groth16, key.count());
    // An aggregate of another length is not valid, so a larger file need not be read whole.
    let bytes = read(path, 1 << 20).map_err(Verdict::Unread)?;
    match FileKind::of(&bytes) {
        Some(FileKind::Aggregate) => {}
        Some(other) => {
            return Err(Verdict::Unread(format!(
                "{}, not an aggregate",
                other.name_with_article()
            )));
        }
        None if bytes.is_empty() => return Err(Verdict::Unread("the file is empty".to_owned())),
        None => return Err(Verdict::Unread("not an aggregate".to_owned())),
    }
    if bytes.len() != expected {
        return Err(Verdict::Invalid(format!(
            "{} bytes: an aggregate of {} has {expected}",
            bytes.len(),
            counted(key.count(), "proof")
        )));
    }
    Ok(bytes)
}

/// Reads the public inputs of all proofs from one file.
fn compact_inputs<E: AggregationCurve>(path: &Path, key: &Groth16Index<E>) -> Inputs<E> {
    let shown = path.display();
    let bytes = read(path, key.statement_bytes().max(1 << 20));
    let bytes = bytes.map_err(|why| Verdict::Unread(format!("{shown}: {why}")))?;
    let inputs = key.decode_statement(&bytes);
    inputs.map_err(|error| Verdict::Invalid(format!("{shown}: {error}")))
}

/// Reads the public inputs of each proof from a file of its own.
fn json_inputs<E: AggregationCurve>(args: &AggregateVerify, key: &Groth16Index<E>) -> Inputs<E> {
    let mut all = Vec::with_capacity(args.inputs.len());
    let mut refused = None;
    for (path, expected) in args.inputs.iter().zip(key.input_counts()) {
        let in_file = |why: String| format!("{}: {why}", path.display());
        let text = whole_document(path).map_err(|why| Verdict::Unread(in_file(why)))?;
        match json_input(&text, expected) {
            Ok(inputs) => all.push(inputs),
            // Go on: a later file that cannot be read takes precedence over this verdict.
            Err(why) => {
                refused.get_or_insert_with(|| Verdict::Invalid(in_file(why)));
            }
        }
    }
    refused.map_or(Ok(all), Err)
}

fn json_input<F: PrimeField>(text: &[u8], expected: usize) -> Result<Vec<F>, String> {
    let inputs = inputs_from_json(text).map_err(|error| error.to_string())?;
    if inputs.len() != expected {
        let found = counted(inputs.len(), "public input");
        return Err(format!("{found}: the proof has {expected}"));
    }
    Ok(inputs)
}

// === impl Answer ===

impl Answer {
    fn to_json(&self, path: &Path) -> serde_json::Value {
        let (valid, why) = match &self.verdict {
            Verdict::Valid => (Some(true), None),
            Verdict::Invalid(why) => (Some(false), Some(why)),
            Verdict::Unread(why) => (None, Some(why)),
        };
        json!({
            "aggregate": path.to_string_lossy(),
            "valid": valid,
            "why": why,
            "curve": self.curve.name(),
            "proofs": self.proofs,
            "verifying_keys": self.keys,
            "key_digest": self.key_digest,
            "total_ms": self.total_ms,
        })
    }
}
