//! `proofmill verify`

use std::path::{Path, PathBuf};

use ark_std::rand::rngs::OsRng;
use proofmill_groth16::snarkjs::{
    JsonError, curve_of_json, inputs_from_json, proof_from_json, read_json, verifying_key_from_json,
};
use proofmill_groth16::{Engine, PreparedVerifyingKey, Proof, verify_batch, with_curve};
use serde_json::json;

use crate::args::circuits::Verify;
use crate::failure::Failure;
use crate::output;

/// A proof and what it is said to prove, or why they are none.
type Pair<E> = Result<(Vec<<E as ark_ec::pairing::Pairing>::ScalarField>, Proof<E>), String>;

pub(crate) fn run(args: &Verify) -> Result<(), Failure> {
    let (pairs, rest) = args.files.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(Failure::usage(format!(
            "{} files: each proof needs its public signals after it",
            args.files.len()
        )));
    }
    let key = read_json(&args.vk)?;
    let curve = curve_of_json(&key)
        .map_err(|error| not_a_key(&args.vk, &error))?
        .ok_or_else(|| Failure::new(format!("{} names no curve", args.vk.display())))?;
    let verdicts = args
        .threads
        .run(|| with_curve!(curve, E => verdicts::<E>(args, &key, pairs)))??;
    tell(args, pairs, &verdicts)
}

/// A verdict for each pair: nothing, or why it is refused.
fn verdicts<E: Engine>(
    args: &Verify,
    key: &[u8],
    pairs: &[[PathBuf; 2]],
) -> Result<Vec<Option<String>>, Failure> {
    let key = verifying_key_from_json::<E>(key).map_err(|error| not_a_key(&args.vk, &error))?;
    args.key_safety.check(&args.vk, &key)?;
    let key = PreparedVerifyingKey::from(key);
    let read = pairs
        .iter()
        .map(|[proof, public]| read_pair::<E>(proof, public))
        .collect::<Result<Vec<Pair<E>>, Failure>>()?;
    let checked: Vec<_> = read
        .iter()
        .flatten()
        .map(|(inputs, proof)| (&inputs[..], proof))
        .collect();
    let mut checked = verify_batch(&key, &checked, &mut OsRng).into_iter();
    Ok(read
        .iter()
        .map(|pair| match pair {
            Ok(_) => checked.next()?.err().map(|error| error.to_string()),
            Err(why) => Some(why.clone()),
        })
        .collect())
}

/// What is no proof is not valid; a file that cannot be read is nobody's verdict.
fn read_pair<E: Engine>(proof: &Path, public: &Path) -> Result<Pair<E>, Failure> {
    let (proof_text, public_text) = (read_json(proof), read_json(public));
    let pair = || -> Result<Pair<E>, (&Path, JsonError)> {
        let text = proof_text.map_err(|error| (proof, error))?;
        // Where there is no telling, the proof's own reader says what is wrong, and at which field.
        let curve = curve_of_json(&text).unwrap_or_default();
        if let Some(other) = curve.filter(|curve| *curve != E::CURVE) {
            return Ok(Err(format!(
                "{}: a proof over {other}, where the key is over {}",
                proof.display(),
                E::CURVE
            )));
        }
        let read = proof_from_json::<E>(&text).map_err(|error| (proof, error))?;
        let text = public_text.map_err(|error| (public, error))?;
        let inputs = inputs_from_json(&text).map_err(|error| (public, error))?;
        Ok(Ok((inputs, read)))
    };
    match pair() {
        Ok(pair) => Ok(pair),
        Err((_, error @ JsonError::Io { .. })) => Err(error.into()),
        Err((path, error)) => Ok(Err(format!("{}: {error}", path.display()))),
    }
}

fn not_a_key(path: &Path, error: &JsonError) -> Failure {
    Failure::new(format!("{}: {error}", path.display())).help(
        "a verifying key is what `proofmill zkey export-vk` or `snarkjs zkey export \
         verificationkey` write",
    )
}

fn tell(args: &Verify, pairs: &[[PathBuf; 2]], verdicts: &[Option<String>]) -> Result<(), Failure> {
    let invalid = verdicts.iter().flatten().count();
    if args.json {
        let proofs: Vec<_> = pairs
            .iter()
            .zip(verdicts)
            .map(|([proof, public], why)| {
                json!({
                    "proof": proof.to_string_lossy(),
                    "public": public.to_string_lossy(),
                    "valid": why.is_none(),
                    "why": why,
                })
            })
            .collect();
        let valid = proofs.len() - invalid;
        let answer = json!({ "valid": valid, "invalid": invalid, "proofs": proofs });
        output::line(answer.to_string())?;
    } else {
        for ([proof, public], why) in pairs.iter().zip(verdicts) {
            let (proof, public) = (proof.display(), public.display());
            let line = match why {
                None => format!("valid    {proof} with {public}"),
                Some(why) => format!("INVALID  {proof} with {public}: {why}"),
            };
            output::line(output::plain(&line))?;
        }
    }
    match (invalid, pairs.len()) {
        (0, _) => Ok(()),
        (_, 1) => Err(Failure::new("the proof is not valid")),
        (1, all) => Err(Failure::new(format!("1 of {all} proofs is not valid"))),
        (invalid, all) => Err(Failure::new(format!(
            "{invalid} of {all} proofs are not valid"
        ))),
    }
}
