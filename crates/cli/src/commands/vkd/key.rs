//! `proofmill vkd verify key`

use std::path::Path;

use proofmill_directory::inclusion::{ANSWER_BYTES_MAX, InclusionProof, KeyAnswer};
use proofmill_directory::{KeyDigest, Record, ValueDigest};
use proofmill_telemetry::console_line;
use serde_json::{Value, json};

use super::directory::key_of;
use crate::args::vkd::VerifyKey;
use crate::failure::Failure;
use crate::files::read;
use crate::output;

/// The content of a file with a proof.
enum Shown {
    Proof(InclusionProof),
    /// An answer of a server: a proof, and what it is said to show.
    Answer(Box<KeyAnswer>),
}

pub(super) fn run(args: &VerifyKey) -> Result<(), Failure> {
    let key = KeyDigest::of(&key_of(&args.key, args.key_hex)?);
    let expected = expected_value(args)?;
    let shown = Shown::read(&args.proof)?;
    let verdict = shown.verify(args, &key).and_then(|state| {
        let is_expected = expected.is_none_or(|value| state.is_some_and(|it| it.value == value));
        match (is_expected, state) {
            (true, state) => Ok(state),
            (false, None) => Err("the key is absent".to_owned()),
            (false, Some(_)) => Err("the key has another value".to_owned()),
        }
    });
    if args.json {
        output::line(answer(&verdict).to_string())?;
    }
    let path = args.proof.display();
    match verdict {
        Ok(state) => {
            let state = match state {
                Some(Record { version, value }) => {
                    format!("present with version {version}, the digest of its value is {value}")
                }
                None => "absent".to_owned(),
            };
            console_line(output::plain(&format!(
                "{path}: valid: {:?} is {state}",
                args.key
            )));
            Ok(())
        }
        Err(reason) => Err(Failure::new(format!("{path}: not valid: {reason}"))),
    }
}

/// The digest of the value that the key should have, if one is named.
fn expected_value(args: &VerifyKey) -> Result<Option<ValueDigest>, Failure> {
    match (&args.value, &args.value_hex) {
        (Some(value), _) => Ok(Some(ValueDigest::of(value.as_bytes()))),
        (None, Some(digits)) => {
            let value = hex::decode(digits)
                .map_err(|error| Failure::usage(format!("--value-hex: {error}")))?;
            Ok(Some(ValueDigest::of(&value)))
        }
        (None, None) => Ok(None),
    }
}

fn answer(verdict: &Result<Option<Record>, String>) -> Value {
    match verdict {
        Ok(Some(Record { version, value })) => json!({
            "valid": true,
            "present": true,
            "version": version,
            "value_digest": value.0,
        }),
        Ok(None) => json!({ "valid": true, "present": false }),
        Err(reason) => json!({ "valid": false, "reason": reason }),
    }
}

// === impl Shown ===

impl Shown {
    /// Reads an untrusted file. An error is no verdict.
    fn read(path: &Path) -> Result<Self, Failure> {
        let read = read(path, ANSWER_BYTES_MAX).and_then(|bytes| Self::of(&bytes));
        read.map_err(|why| Failure::no_verdict(format!("{}: {why}", path.display())))
    }

    fn of(bytes: &[u8]) -> Result<Self, String> {
        let is_json = bytes.trim_ascii_start().starts_with(b"{");
        if !is_json {
            let proof = InclusionProof::from_bytes(bytes).map_err(|error| error.to_string())?;
            return Ok(Self::Proof(proof));
        }
        let failed = |error: serde_json::Error| error.to_string();
        let value: Value = serde_json::from_slice(bytes).map_err(failed)?;
        if value.get("proof").is_some() {
            let answer: KeyAnswer = serde_json::from_slice(bytes).map_err(failed)?;
            return Ok(Self::Answer(Box::new(answer)));
        }
        let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
        InclusionProof::from_json(text)
            .map(Self::Proof)
            .map_err(failed)
    }

    /// The key's state, or the reason why the proof is not valid.
    fn verify(&self, args: &VerifyKey, key: &KeyDigest) -> Result<Option<Record>, String> {
        let (depth, root) = (args.depth.depth, &args.root);
        match self {
            Self::Proof(proof) => proof
                .verify_at_depth(depth, root, key)
                .map_err(|error| error.to_string()),
            Self::Answer(answer) => {
                let state = answer.verify_at_depth(depth, root, key);
                let state = state.map_err(|error| error.to_string())?;
                Ok(state.map(|state| Record {
                    version: state.version,
                    value: ValueDigest::of(&state.value),
                }))
            }
        }
    }
}
