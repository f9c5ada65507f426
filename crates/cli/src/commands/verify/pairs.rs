//! Pairs of a Groth16 proof and its public signals under one key: `proofmill verify --vk`.

use std::path::{Path, PathBuf};

use ark_ec::pairing::Pairing;
use ark_std::rand::rngs::OsRng;
use proofmill_groth16::snarkjs::{
    JsonError, curve_of_json, inputs_from_json, proof_from_json, read_json, verifying_key_from_json,
};
use proofmill_groth16::{PreparedVerifyingKey, Proof, SnarkCurve, verify_batch, with_curve};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::tally::Tally;
use crate::args::verify::Verify;
use crate::content::FileKind;
use crate::failure::Failure;
use crate::output;
use crate::progress::counted;

/// Public signals and a proof of them, not yet verified.
pub(crate) type Claim<E> = (Vec<<E as Pairing>::ScalarField>, Proof<E>);

/// Verdict on a pair of files.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Valid,
    /// The proof is not valid, for this reason.
    Invalid(String),
    /// No verdict, because a file could not be read, with the reason.
    Unread(String),
}

// === impl Verdict ===

impl Verdict {
    /// The reason for the verdict; empty for a valid proof.
    pub(crate) fn why(self) -> String {
        match self {
            Self::Valid => String::new(),
            Self::Invalid(why) | Self::Unread(why) => why,
        }
    }
}

pub(super) fn run(args: &Verify, vk: &Path) -> Result<(), Failure> {
    let (pairs, rest) = args.paths.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(Failure::usage(format!(
            "{}: each proof needs its public signals after it",
            counted(args.paths.len(), "file")
        )));
    }
    let key = whole_document(vk).map_err(|why| unusable(vk, &why))?;
    let curve = curve_of_json(&key)
        .map_err(|error| unusable(vk, &error.to_string()))?
        .ok_or_else(|| unusable(vk, "it names no curve"))?;
    let verdicts = args
        .threads
        .run(|| with_curve!(curve, E => verdicts::<E>(args, (vk, &key), pairs)))??;
    print_verdicts(args, pairs, &verdicts)
}

/// A verdict for each pair. The pairs that can be read are verified as one batch.
fn verdicts<E: SnarkCurve>(
    args: &Verify,
    (vk, key): (&Path, &[u8]),
    pairs: &[[PathBuf; 2]],
) -> Result<Vec<Verdict>, Failure> {
    let key =
        verifying_key_from_json::<E>(key).map_err(|error| unusable(vk, &error.to_string()))?;
    args.key_safety.check(vk, &key)?;
    let key = PreparedVerifyingKey::from(key);
    let mut claims: Vec<Claim<E>> = Vec::new();
    let refused: Vec<Option<Verdict>> = pairs
        .iter()
        .map(|[proof, public]| match read_claim::<E>(proof, public) {
            Ok(claim) => {
                claims.push(claim);
                None
            }
            Err(verdict) => Some(verdict),
        })
        .collect();
    let claims: Vec<_> = claims
        .iter()
        .map(|(inputs, proof)| (&inputs[..], proof))
        .collect();
    let mut checked = verify_batch(&key, &claims, &mut OsRng).into_iter();
    let mut check = || match checked.next() {
        Some(Ok(())) => Verdict::Valid,
        Some(Err(error)) => Verdict::Invalid(error.to_string()),
        None => Verdict::Unread("it was not verified".to_owned()),
    };
    Ok(refused
        .into_iter()
        .map(|refused| refused.unwrap_or_else(&mut check))
        .collect())
}

/// Reads a pair of files. A complete file that is not a proof gives [`Verdict::Invalid`]; a file that cannot be read or
/// is cut short gives [`Verdict::Unread`].
pub(crate) fn read_claim<E: SnarkCurve>(proof: &Path, public: &Path) -> Result<Claim<E>, Verdict> {
    let document = |what: &'static str, path| {
        whole_document(path).map_err(|why| Verdict::Unread(format!("{what}: {why}")))
    };
    let invalid =
        |what: &'static str| move |error: JsonError| Verdict::Invalid(format!("{what}: {error}"));
    // Read both files before judging either: if one cannot be read, there is no verdict.
    let proof = document("the proof", proof)?;
    let public = document("the public signals", public)?;
    // If the curve cannot be read, the proof's reader below reports the fault and its field.
    let curve = curve_of_json(&proof).unwrap_or_default();
    if let Some(other) = curve.filter(|curve| *curve != E::CURVE) {
        return Err(Verdict::Invalid(format!(
            "a proof over {other}, where the key is over {}",
            E::CURVE
        )));
    }
    let read = proof_from_json::<E>(&proof).map_err(invalid("the proof"))?;
    let inputs = inputs_from_json(&public).map_err(invalid("the public signals"))?;
    Ok((inputs, read))
}

/// Reads a JSON file and checks that it is complete. The error does not name the path.
pub(crate) fn whole_document(path: &Path) -> Result<Vec<u8>, String> {
    let text = read_json(path).map_err(|error| match error {
        JsonError::Io { source, .. } => source.to_string(),
        error => error.to_string(),
    })?;
    if let Some(found) = FileKind::of(&text).filter(|found| !found.is_json()) {
        return Err(format!("{}, not JSON", found.name_with_article()));
    }
    check_json(&text)?;
    Ok(text)
}

/// Fails unless a text is one complete JSON value.
pub(super) fn check_json(text: &[u8]) -> Result<(), String> {
    match serde_json::from_slice::<IgnoredAny>(text) {
        Ok(_) => Ok(()),
        Err(error) if error.is_eof() => Err(format!("cut short: {error}")),
        Err(error) => Err(format!("not JSON: {error}")),
    }
}

fn unusable(path: &Path, why: &str) -> Failure {
    Failure::no_verdict(format!("--vk {}: {why}", path.display())).help(
        "a verifying key is what `proofmill zkey export-vk` or `snarkjs zkey export \
         verificationkey` write",
    )
}

fn print_verdicts(
    args: &Verify,
    pairs: &[[PathBuf; 2]],
    verdicts: &[Verdict],
) -> Result<(), Failure> {
    if args.json {
        output::line(to_json(pairs, verdicts).to_string())?;
    } else {
        for ([proof, public], verdict) in pairs.iter().zip(verdicts) {
            let (proof, public) = (proof.display(), public.display());
            let line = match verdict {
                Verdict::Valid => format!("valid    {proof} with {public}"),
                Verdict::Invalid(why) => format!("INVALID  {proof} with {public}: {why}"),
                Verdict::Unread(why) => format!("unread   {proof} with {public}: {why}"),
            };
            output::line(output::plain(&line))?;
        }
    }
    let tally = Tally {
        all: pairs.len(),
        invalid: invalid(verdicts),
        unread: unread(verdicts),
        undecided: 0,
    };
    tally.result()
}

fn invalid(verdicts: &[Verdict]) -> usize {
    let invalid = |verdict: &&Verdict| matches!(verdict, Verdict::Invalid(_));
    verdicts.iter().filter(invalid).count()
}

fn unread(verdicts: &[Verdict]) -> usize {
    let unread = |verdict: &&Verdict| matches!(verdict, Verdict::Unread(_));
    verdicts.iter().filter(unread).count()
}

fn to_json(pairs: &[[PathBuf; 2]], verdicts: &[Verdict]) -> Value {
    let (invalid, unread) = (invalid(verdicts), unread(verdicts));
    let proofs = pairs
        .iter()
        .zip(verdicts)
        .map(|([proof, public], verdict)| {
            let (valid, why) = match verdict {
                Verdict::Valid => (Some(true), None),
                Verdict::Invalid(why) => (Some(false), Some(why)),
                Verdict::Unread(why) => (None, Some(why)),
            };
            json!({
                "proof": proof.to_string_lossy(),
                "public": public.to_string_lossy(),
                "valid": valid,
                "why": why,
            })
        });
    json!({
        "valid": verdicts.len() - invalid - unread,
        "invalid": invalid,
        "unread": unread,
        "proofs": proofs.collect::<Vec<_>>(),
    })
}
