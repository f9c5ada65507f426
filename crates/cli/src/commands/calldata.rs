//! `proofmill calldata`

use std::path::{Path, PathBuf};

use proofmill_groth16::snarkjs::{curve_of_json, inputs_from_json, proof_from_json};
use proofmill_groth16::{Curve, SnarkCurve, with_curve};
use proofmill_solidity::{BatchEntry, Call};
use serde_json::json;

use super::verify::pairs::whole_document;
use crate::args::solidity::Calldata;
use crate::failure::Failure;
use crate::output;
use crate::progress::counted;

pub(crate) fn run(args: &Calldata) -> Result<(), Failure> {
    let (pairs, rest) = args.files.as_chunks::<2>();
    if !rest.is_empty() {
        let count = counted(args.files.len(), "file");
        let message = format!("{count}: each proof needs its public signals after it");
        return Err(Failure::usage(message));
    }
    if pairs.len() > 1 && !args.batch {
        let message = format!("{} in one call", counted(pairs.len(), "proof"));
        let help = "add --batch for a contract that was exported with --batch; otherwise make a call for each";
        return Err(Failure::usage(message).help(help));
    }
    let curve = curve_of(args, &pairs[0][0])?;
    let call = with_curve!(curve, E => call::<E>(args, pairs)?);
    if args.json {
        return output::line(to_json(&call).to_string());
    }
    output::line(match args.abi {
        true => hexadecimal(call.abi()),
        false => call.arguments(),
    })
}

/// The curve that the first proof names, or --curve if it names none.
fn curve_of(args: &Calldata, proof: &Path) -> Result<Curve, Failure> {
    let failed = |why: String| Failure::new(format!("{}: {why}", proof.display()));
    let json = whole_document(proof).map_err(failed)?;
    let named = curve_of_json(&json).map_err(|error| failed(error.to_string()))?;
    let given = args.curve.map(Curve::from);
    match (named, given) {
        (Some(named), Some(given)) if named != given => Err(failed(format!(
            "a proof over {named}, where --curve is {given}"
        ))),
        (Some(curve), _) | (None, Some(curve)) => Ok(curve),
        (None, None) => Err(failed("it names no curve".to_owned()).help("name it with --curve")),
    }
}

fn call<E: SnarkCurve>(args: &Calldata, pairs: &[[PathBuf; 2]]) -> Result<Call, Failure> {
    let entries = pairs
        .iter()
        .map(|[proof, public]| entry::<E>(proof, public))
        .collect::<Result<Vec<_>, _>>()?;
    let call = match &entries[..] {
        [entry] if !args.batch => Call::single(&entry.proof, &entry.inputs),
        entries => Call::batch(entries),
    };
    Ok(call?)
}

/// Reads a proof and its public signals. Every point and number is checked to be canonical and of its group.
fn entry<E: SnarkCurve>(proof: &Path, public: &Path) -> Result<BatchEntry<E>, Failure> {
    let failed = |path: &Path, why: String| Failure::new(format!("{}: {why}", path.display()));
    let document = |path| whole_document(path).map_err(|why| failed(path, why));
    let (proof_json, public_json) = (document(proof)?, document(public)?);
    Ok(BatchEntry {
        proof: proof_from_json(&proof_json).map_err(|error| failed(proof, error.to_string()))?,
        inputs: inputs_from_json(&public_json)
            .map_err(|error| failed(public, error.to_string()))?,
    })
}

fn to_json(call: &Call) -> serde_json::Value {
    let proofs = call.proofs().map(hexadecimal);
    let inputs = call
        .inputs()
        .map(|words| words.iter().map(hexadecimal).collect::<Vec<_>>());
    json!({
        "curve": call.curve().name(),
        "function": call.signature(),
        "selector": hexadecimal(call.selector()),
        "proofs": proofs.collect::<Vec<_>>(),
        "inputs": inputs.collect::<Vec<_>>(),
        "calldata": hexadecimal(call.abi()),
    })
}

fn hexadecimal(bytes: impl AsRef<[u8]>) -> String {
    format!("0x{}", hex::encode(bytes))
}
