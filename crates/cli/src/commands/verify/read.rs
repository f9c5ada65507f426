//! Reading files of proofs, and submitting them to the verifier's service.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use ark_ec::pairing::Pairing;
use bytes::Bytes;
use proofmill_aggregation::curve_of;
use proofmill_files::open_regular_or_inherited;
use proofmill_groth16::snarkjs::{curve_of_json, inputs_from_json};
use proofmill_groth16::{Curve, with_curve};
use proofmill_partition::proof::VerifyingKey;
use proofmill_partition::with_partition_curve;
use proofmill_verifier::kinds::Groth16;
use proofmill_verifier::{Handle, KeyDigest, KeyError, Kind, Pending, Request};
use tokio::sync::mpsc;

use super::find::{Candidate, Found, RecognizedKind};
use super::pairs::check_json;
use crate::content::FileKind;

/// Client name under which the proofs are submitted.
const CLIENT: &str = "files";
/// Largest key file, in bytes.
const KEY_BYTES_MAX: usize = 16 << 20;

/// Reads proofs with their statements and keys, and submits them.
pub(super) struct Reader {
    handle: Handle,
    /// Largest proof or statement file, in bytes.
    limit: usize,
    /// Registered keys, or the error, by kind and file.
    keys: HashMap<(String, PathBuf), Result<KeyDigest, String>>,
    request_count: u64,
}

/// The content that a file is expected to have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// A whole JSON value.
    Json,
    /// Any bytes; what looks like JSON must be whole.
    Any,
    /// Binary data, never checked as JSON.
    Bytes,
}

/// A submitted file and its pending verdict.
pub(super) struct SubmittedProof {
    pub(super) found: Found,
    /// The kind's name, if it is known.
    pub(super) kind: Option<String>,
    /// The pending verdict, or the reason why there is none.
    pub(super) verdict: Result<Pending, String>,
}

// === impl Reader ===

impl Reader {
    pub(super) fn new(handle: Handle, limit: usize) -> Self {
        Self {
            handle,
            limit,
            keys: HashMap::new(),
            request_count: 0,
        }
    }

    /// Reads the files in order and sends each to `submitted_proofs`; waits while the channel is full, stops when it is closed.
    pub(super) async fn run(
        mut self,
        found: Vec<Found>,
        submitted_proofs: mpsc::Sender<SubmittedProof>,
    ) {
        for found in found {
            let submitted = match found {
                Found::Unread { ref why, .. } => SubmittedProof {
                    kind: None,
                    verdict: Err(why.clone()),
                    found,
                },
                Found::Proof(candidate) => self.submit_candidate(candidate).await,
            };
            if submitted_proofs.send(submitted).await.is_err() {
                return;
            }
        }
    }

    async fn submit_candidate(&mut self, mut candidate: Candidate) -> SubmittedProof {
        let mut kind = None;
        let verdict = self.submit(&mut candidate, &mut kind).await;
        SubmittedProof {
            found: Found::Proof(candidate),
            kind,
            verdict,
        }
    }

    /// Submits a proof; the error is the reason why there is no verdict. A statement or key that the proof turns out
    /// not to need is removed from the candidate.
    async fn submit(
        &mut self,
        candidate: &mut Candidate,
        kind: &mut Option<String>,
    ) -> Result<Pending, String> {
        let expected = match &candidate.kind {
            RecognizedKind::Snarkjs => Expected::Json,
            RecognizedKind::Kind(_) => Expected::Any,
            RecognizedKind::Aggregate(_) | RecognizedKind::Parts(_) => Expected::Bytes,
        };
        let proof = read(&candidate.path, self.limit, expected).await?;
        let name = match &candidate.kind {
            RecognizedKind::Kind(name)
            | RecognizedKind::Aggregate(name)
            | RecognizedKind::Parts(name) => name.clone(),
            RecognizedKind::Snarkjs => snarkjs_kind(&proof, candidate.key.as_deref()).await?,
        };
        let name = kind.insert(name);
        self.request_count += 1;
        let mut request =
            Request::new(CLIENT, &self.request_count.to_string(), name, proof.clone());
        let has_keys = self.handle.has_keys(name);
        if has_keys.map_err(|error| error.to_string())? {
            let key = candidate
                .key
                .as_deref()
                .ok_or_else(|| no_key(&candidate.kind));
            let digest = self.key(key?, name).await?;
            let Some(path) = &candidate.statement else {
                return Err(
                    "no statement: there is no public.json, or NAME.public, that belongs to it; name it with \
                     --inputs"
                        .to_owned(),
                );
            };
            let statement = match &candidate.kind {
                RecognizedKind::Parts(_) if is_called_json(path) => {
                    inputs_in_json(path, self.limit, &proof).await
                }
                _ => read(path, self.limit, expected).await,
            };
            let statement = statement.map_err(|why| format!("{}: {why}", path.display()))?;
            request = request.under(digest, statement);
        } else {
            // The proof contains its statement and needs no key.
            (candidate.statement, candidate.key) = (None, None);
        }
        let submitted = self.handle.submit(request).await;
        submitted.map_err(|error| error.to_string())
    }

    /// Registers the key in a file; each file is read once for a kind.
    async fn key(&mut self, path: &Path, kind: &str) -> Result<KeyDigest, String> {
        let cache_key = (kind.to_owned(), path.to_owned());
        if let Some(key) = self.keys.get(&cache_key) {
            return key.clone();
        }
        let added = match read(path, KEY_BYTES_MAX, Expected::Any).await {
            Ok(bytes) => self
                .handle
                .add_key(CLIENT, kind, bytes)
                .await
                .map_err(|error: KeyError| error.to_string()),
            Err(why) => Err(why),
        };
        let added = added.map_err(|why| format!("the key {}: {why}", path.display()));
        self.keys.insert(cache_key, added.clone());
        added
    }
}

/// The message for a proof without a verifying key.
fn no_key(form: &RecognizedKind) -> String {
    let name = form.key_names()[0];
    format!("no verifying key: there is no {name} beside it or above; name one with --key")
}

/// The kind of a snarkjs proof, by the curve named in the proof, or else in its key.
async fn snarkjs_kind(proof: &[u8], key: Option<&Path>) -> Result<String, String> {
    let of = |json: &[u8]| curve_of_json(json).map_err(|error| error.to_string());
    let curve = match (of(proof)?, key) {
        (Some(curve), _) => Some(curve),
        (None, Some(key)) => {
            let key = read(key, KEY_BYTES_MAX, Expected::Json).await;
            of(&key.map_err(|why| format!("the key: {why}"))?)?
        }
        (None, None) => None,
    };
    let curve: Curve = curve.ok_or("neither the proof nor its key names a curve: add --kind")?;
    Ok(with_curve!(curve, E => Groth16::<E>::new().name().to_owned()))
}

fn is_called_json(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "json")
}

/// The statement of a circuit in parts, from its public inputs in JSON, over the curve of the proof.
async fn inputs_in_json(path: &Path, limit: usize, proof: &[u8]) -> Result<Bytes, String> {
    let json = read(path, limit, Expected::Json).await?;
    let curve = curve_of(proof).ok_or("the proof names no curve that this release knows")?;
    with_partition_curve!(curve, E => {
        let inputs = inputs_from_json::<<E as Pairing>::ScalarField>(&json);
        let inputs = inputs.map_err(|error| error.to_string())?;
        Ok(VerifyingKey::<E>::encode_statement(&inputs).into())
    })
    .map_err(|error| error.to_string())?
}

/// Reads a file; fails if it is larger than `limit` bytes or not complete.
async fn read(path: &Path, limit: usize, expected: Expected) -> Result<Bytes, String> {
    let path = path.to_owned();
    let reading = tokio::task::spawn_blocking(move || {
        let mut bytes = Vec::new();
        open_regular_or_inherited(&path)
            .and_then(|file| file.take(limit as u64 + 1).read_to_end(&mut bytes))
            .map_err(|error| error.to_string())?;
        if bytes.len() > limit {
            return Err(format!("more than {limit} bytes, the most that is read"));
        }
        let is_json = match expected {
            Expected::Json => true,
            Expected::Any => FileKind::of(&bytes).is_some_and(FileKind::is_json),
            Expected::Bytes => false,
        };
        if is_json {
            check_json(&bytes)?;
        }
        Ok(bytes.into())
    });
    let read = reading.await;
    read.unwrap_or_else(|error| Err(error.to_string()))
}
