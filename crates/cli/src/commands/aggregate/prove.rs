//! `proofmill aggregate prove`

use std::path::{Path, PathBuf};

use ark_ec::pairing::Pairing;
use ark_std::rand::rngs::OsRng;
use proofmill_aggregation::{AggregateProveError, AggregationCurve, Groth16Index};
use proofmill_groth16::{PreparedVerifyingKey, Proof, verify_batch, with_curve};
use proofmill_telemetry::console_line;
use proofmill_verifier::Kind;
use proofmill_verifier::kinds::Groth16;
use rayon::prelude::*;
use serde_json::json;

use super::read::{load_key, load_srs};
use crate::args::aggregate::AggregateProve;
use crate::commands::verify::find::{Candidate, Found, RecognizedKind, SearchOptions, find};
use crate::commands::verify::pairs;
use crate::content::{FileKind, curve_of_file};
use crate::failure::Failure;
use crate::files::{FilePlan, OverwritePolicy, read, write_together};
use crate::output;
use crate::progress::counted;
use crate::stages::{StageTimes, Stages, milliseconds, short};

const STAGES: usize = 7;
/// Largest file of compact public inputs, in bytes.
const STATEMENT_BYTES: usize = 4 << 20;
const ORDER: &str = "proofs are taken in the order of the paths, those of a folder sorted by name: the first are \
     under the first verifying key of `proofmill aggregate key`, and so on";

/// The proofs, and the public inputs of each.
type Claims<E> = (Vec<Vec<<E as Pairing>::ScalarField>>, Vec<Proof<E>>);

/// Facts about an aggregate, for the summary.
struct AggregateFacts {
    proofs: usize,
    keys: usize,
    bytes: usize,
    stage_times: StageTimes,
}

pub(super) fn run(args: &AggregateProve) -> Result<(), Failure> {
    let mut plan = FilePlan::default()
        .reads("the reference string", &args.srs)
        .reads("the key", &args.key)
        .writes("the aggregate", &args.output);
    if let Some(public) = &args.public {
        plan = plan.writes("the public inputs", public);
    }
    plan.check(OverwritePolicy::NothingHardToRecreate)?;
    let curve = curve_of_file(FileKind::AggregateKey, &args.key)?;
    let of_string = curve_of_file(FileKind::ReferenceString, &args.srs)?;
    if of_string != curve {
        return Err(Failure::new(format!(
            "{}: over {of_string}, where the key is over {curve}",
            args.srs.display()
        )));
    }
    let made = args
        .threads
        .run(|| with_curve!(curve, E => make::<E>(args)))??;
    console_line(output::plain(&format!(
        "{}: one proof of {} over {curve} under {}, {} bytes, made and verified in {}",
        args.output.display(),
        counted(made.proofs, "proof"),
        counted(made.keys, "verifying key"),
        made.bytes,
        short(made.stage_times.total)
    )));
    console_line(format!("  {}", made.stage_times.shown()));
    if args.json {
        let answer = json!({
            "curve": curve.name(),
            "proofs": made.proofs,
            "verifying_keys": made.keys,
            "bytes": made.bytes,
            "stages": made.stage_times.to_json(),
            "total_ms": milliseconds(made.stage_times.total),
        });
        output::line(answer.to_string())?;
    }
    Ok(())
}

fn make<E: AggregationCurve>(args: &AggregateProve) -> Result<AggregateFacts, Failure> {
    let mut stages = Stages::begin("aggregate", STAGES);
    stages.enter("read the key");
    let index = load_key::<E>(&args.key)?;
    stages.enter("read the proofs");
    let candidates = candidates(args, index.count())?;
    check_overwritten(args, &candidates)?;
    let (inputs, proofs) = claims::<E>(&candidates)?;
    stages.enter("verify the proofs");
    check_proofs(&index, &candidates, &inputs, &proofs)?;
    stages.enter("read and check the reference string");
    let srs = load_srs::<E>(&args.srs)?;
    stages.enter("aggregate");
    let aggregate = index.aggregate(&srs, &inputs, &proofs);
    let aggregate = aggregate.map_err(|error| match error {
        AggregateProveError::OtherSrs => Failure::new(format!(
            "{}: the key {} was made with another reference string",
            args.srs.display(),
            args.key.display()
        ))
        .help("name the string that the key was made with, or make the key again with this one"),
        error => Failure::of(&error),
    })?;
    stages.enter("verify the aggregate");
    // The proofs are valid, so this fails only by a fault of this machine or program.
    index.verify(&inputs, &aggregate).map_err(|error| {
        Failure::new(format!(
            "{error}: a fault of this program or machine; nothing was written"
        ))
    })?;
    stages.enter("write");
    let bytes = aggregate.to_bytes();
    let statement = Groth16Index::<E>::encode_statement(&inputs);
    let mut written: Vec<(&Path, &[u8])> = Vec::new();
    written.extend(args.public.as_deref().map(|path| (path, &*statement)));
    written.push((&args.output, &bytes));
    write_together(&written)?;
    Ok(AggregateFacts {
        proofs: index.count(),
        keys: index.keys().len(),
        bytes: bytes.len(),
        stage_times: stages.end(),
    })
}

/// Finds the files of the proofs; fails unless their number is the one that the key is for.
fn candidates(args: &AggregateProve, expected: usize) -> Result<Vec<Candidate>, Failure> {
    let options = SearchOptions {
        paths: &args.paths,
        kind: None,
        key: None,
        inputs: None,
    };
    let (mut candidates, mut refused) = (Vec::new(), Vec::new());
    for found in find(&options).found {
        match found {
            Found::Proof(candidate) => candidates.push(candidate),
            Found::Unread { path, why } => refused.push((path, why)),
        }
    }
    refuse(
        &refused,
        "file",
        refused.len(),
        ["cannot be taken for a proof"; 2],
    )?;
    if candidates.len() != expected {
        return Err(Failure::new(format!(
            "{} at these paths, where {} is for {expected}",
            counted(candidates.len(), "proof"),
            args.key.display()
        ))
        .help("`proofmill aggregate key` makes a key for another number"));
    }
    Ok(candidates)
}

/// Fails if an output is one of the files found.
fn check_overwritten(args: &AggregateProve, candidates: &[Candidate]) -> Result<(), Failure> {
    let outputs = args.public.iter().chain([&args.output]);
    let outputs: Vec<PathBuf> = outputs.filter_map(|it| it.canonicalize().ok()).collect();
    if outputs.is_empty() {
        return Ok(());
    }
    for candidate in candidates {
        for path in std::iter::once(&candidate.path).chain(&candidate.statement) {
            if path
                .canonicalize()
                .is_ok_and(|path| outputs.contains(&path))
            {
                let message = format!("{} is an input, and would be overwritten", path.display());
                return Err(Failure::usage(message).help("name another file"));
            }
        }
    }
    Ok(())
}

/// Reads the proofs and their public inputs.
fn claims<E: AggregationCurve>(candidates: &[Candidate]) -> Result<Claims<E>, Failure> {
    let read: Vec<Result<_, String>> = candidates.par_iter().map(claim::<E>).collect();
    let (mut inputs, mut proofs, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    for (candidate, claim) in candidates.iter().zip(read) {
        match claim {
            Ok((of_proof, proof)) => {
                inputs.push(of_proof);
                proofs.push(proof);
            }
            Err(why) => refused.push((candidate.path.clone(), why)),
        }
    }
    refuse(&refused, "proof", candidates.len(), ["cannot be read"; 2])?;
    Ok((inputs, proofs))
}

/// Reads the public inputs and the proof of a candidate; the error is the reason for an unusable file.
fn claim<E: AggregationCurve>(
    candidate: &Candidate,
) -> Result<(Vec<E::ScalarField>, Proof<E>), String> {
    let own = Groth16::<E>::new();
    if let RecognizedKind::Kind(kind)
    | RecognizedKind::Aggregate(kind)
    | RecognizedKind::Parts(kind) = &candidate.kind
        && kind != own.name()
    {
        return Err(format!(
            "a proof of the kind {kind}, where {} is needed",
            own.name()
        ));
    }
    let statement = candidate
        .statement
        .as_deref()
        .ok_or("no public inputs: there is no public.json, or NAME.public, that belongs to it")?;
    if candidate.kind == RecognizedKind::Snarkjs {
        return pairs::read_claim::<E>(&candidate.path, statement).map_err(pairs::Verdict::why);
    }
    let bytes = read(&candidate.path, Proof::<E>::encoded_size())?;
    let proof = Proof::from_bytes(&bytes).map_err(|error| error.to_string())?;
    let in_statement = |why: String| format!("{}: {why}", statement.display());
    let bytes = read(statement, STATEMENT_BYTES).map_err(in_statement)?;
    let inputs = Groth16::<E>::read_compact_statement(&bytes)
        .map_err(|invalid| in_statement(invalid.to_string()))?;
    Ok((inputs, proof))
}

/// Verifies each proof under its key.
fn check_proofs<E: AggregationCurve>(
    index: &Groth16Index<E>,
    candidates: &[Candidate],
    inputs: &[Vec<E::ScalarField>],
    proofs: &[Proof<E>],
) -> Result<(), Failure> {
    let mut places = vec![Vec::new(); index.keys().len()];
    for (place, key) in index.key_of().iter().enumerate() {
        places[*key as usize].push(place);
    }
    let mut refused = Vec::new();
    for (number, (key, places)) in index.keys().iter().zip(&places).enumerate() {
        let key = PreparedVerifyingKey::from(key.clone());
        let claims = places
            .iter()
            .map(|place| (&inputs[*place][..], &proofs[*place]));
        let claims: Vec<_> = claims.collect();
        let verdicts = verify_batch(&key, &claims, &mut OsRng);
        for (place, verdict) in places.iter().zip(verdicts) {
            if let Err(error) = verdict {
                let why = format!("{error}, under verifying key {}", number + 1);
                refused.push((*place, why));
            }
        }
    }
    refused.sort_by_key(|(place, _)| *place);
    let refused = refused.into_iter();
    let refused = refused.map(|(place, why)| (candidates[place].path.clone(), why));
    let refused: Vec<_> = refused.collect();
    refuse(
        &refused,
        "proof",
        candidates.len(),
        ["is not valid", "are not valid"],
    )
    .map_err(|failure| failure.help(ORDER))
}

/// Prints each refused file with its reason, and fails if there is any.
fn refuse(
    refused: &[(PathBuf, String)],
    noun: &str,
    all: usize,
    [one, several]: [&str; 2],
) -> Result<(), Failure> {
    for (path, why) in refused {
        console_line(output::plain(&format!(
            "refused  {}: {why}",
            path.display()
        )));
    }
    match refused.len() {
        0 => Ok(()),
        count => Err(Failure::new(format!(
            "{count} of {} {}; nothing was written",
            counted(all, noun),
            if count == 1 { one } else { several }
        ))),
    }
}
