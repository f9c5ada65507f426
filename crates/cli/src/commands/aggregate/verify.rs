//! `proofmill aggregate verify`

use std::path::Path;
use std::time::{Duration, Instant};

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
use crate::provers::StatedRange;
use crate::stages::{Stages, milliseconds, short};

/// Largest file of a range, in bytes.
const RANGE_BYTES_MAX: usize = 1 << 16;

/// The public inputs of each proof, or the verdict if they cannot be used.
type Inputs<E> = Result<Vec<Vec<<E as Pairing>::ScalarField>>, Verdict>;

/// The verdict on an aggregate, with the facts for the summary.
pub(crate) struct Answer {
    verdict: Verdict,
    curve: Curve,
    proofs: usize,
    keys: usize,
    key_digest: String,
    valid: Option<ValidAggregate>,
    total_ms: f64,
}

/// Facts about an aggregate that is valid.
pub(crate) struct ValidAggregate {
    /// Size of the aggregate.
    pub(crate) bytes: usize,
    /// Time to decode and verify the aggregate, without reading files.
    pub(crate) check: Duration,
    /// The range of headers that the proofs are of, where one was stated.
    range: Option<StatedRange>,
}

pub(super) fn run(args: &AggregateVerify) -> Result<(), Failure> {
    let answer = answer_for(args)?;
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
        if let Some(valid) = &answer.valid {
            valid.lines().iter().try_for_each(output::line)?;
        }
    }
    match answer.verdict {
        Verdict::Valid => Ok(()),
        Verdict::Invalid(_) => Err(Failure::new("the aggregate is not valid")),
        Verdict::Unread(_) => Err(Failure::no_verdict("no verdict: a file cannot be read")),
    }
}

/// Reads the files that a command line names, and verifies the aggregate.
pub(crate) fn answer_for(args: &AggregateVerify) -> Result<Answer, Failure> {
    let curve =
        curve_of_file(FileKind::AggregateKey, &args.key).map_err(Failure::without_answer)?;
    args.threads
        .run(|| with_curve!(curve, E => answer::<E>(args)))?
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
    let (verdict, valid) = match verify(args, &key) {
        Ok(valid) => (Verdict::Valid, Some(valid)),
        Err(verdict) => (verdict, None),
    };
    Ok(Answer {
        verdict,
        valid,
        curve: E::CURVE,
        proofs: key.count(),
        keys: key.keys().len(),
        key_digest: hex::encode(key.digest()),
        total_ms: milliseconds(stages.end().total),
    })
}

/// Verifies an aggregate; the error is any verdict other than valid.
fn verify<E: AggregationCurve>(
    args: &AggregateVerify,
    key: &Groth16Index<E>,
) -> Result<ValidAggregate, Verdict> {
    // Read all files before judging any: if one cannot be read, there is no verdict.
    let bytes = whole_aggregate::<E>(&args.aggregate, key);
    let inputs = match &args.public {
        Some(path) => compact_inputs(path, key),
        None => json_inputs::<E>(args, key),
    };
    let range = args.range.as_deref().map(read_range).transpose()?;
    let (bytes, inputs) = match (bytes, inputs) {
        (Err(unread @ Verdict::Unread(_)), _) | (_, Err(unread @ Verdict::Unread(_))) => {
            return Err(unread);
        }
        (bytes, inputs) => (bytes?, inputs?),
    };
    if let Some(range) = &range {
        range.check(&inputs).map_err(Verdict::Invalid)?;
    }
    let invalid = |error: &dyn std::error::Error| Verdict::Invalid(error.to_string());
    let began = Instant::now();
    let aggregate = Aggregate::from_bytes(&bytes).map_err(|error| invalid(&error))?;
    let verified = key.verify(&inputs, &aggregate);
    verified.map_err(|error| invalid(&error))?;
    Ok(ValidAggregate {
        bytes: bytes.len(),
        check: began.elapsed(),
        range,
    })
}

/// Reads the range that the proofs are to be of.
fn read_range(path: &Path) -> Result<StatedRange, Verdict> {
    let unread = |why: String| Verdict::Unread(format!("{}: {why}", path.display()));
    let bytes = read(path, RANGE_BYTES_MAX).map_err(unread)?;
    serde_json::from_slice(&bytes)
        .map_err(|error| unread(format!("not a range of headers: {error}")))
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
    /// The digest of the key, hexadecimal.
    pub(crate) fn key_digest(&self) -> &str {
        &self.key_digest
    }

    /// Facts about the aggregate; the error is the reason why it is not valid or has no verdict.
    pub(crate) fn valid(&self) -> Result<&ValidAggregate, &str> {
        match &self.verdict {
            Verdict::Valid => self.valid.as_ref().ok_or("no verdict"),
            Verdict::Invalid(why) | Verdict::Unread(why) => Err(why),
        }
    }

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
            "bytes": self.valid.as_ref().map(|valid| valid.bytes),
            "check_ms": self.valid.as_ref().map(|valid| milliseconds(valid.check)),
            "range": self.valid.as_ref().and_then(|valid| valid.range.as_ref()),
            "total_ms": self.total_ms,
        })
    }
}

// === impl ValidAggregate ===

impl ValidAggregate {
    /// The range that is proven, and the cost of verifying it, in lines for people; none without a range.
    pub(crate) fn lines(&self) -> Vec<String> {
        let Some(range) = &self.range else {
            return Vec::new();
        };
        let mut lines = range.lines().to_vec();
        lines.push(format!(
            "size     {} bytes, verified in one check of {}",
            self.bytes,
            short(self.check)
        ));
        lines
    }
}
