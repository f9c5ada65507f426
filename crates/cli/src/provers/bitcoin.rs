//! `bitcoin.prove` and `bitcoin.verify`: chunks of block headers.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use proofmill_bus::make_private_directory;
use proofmill_circuits::bitcoin::{ChunkStatement, HEADER_BYTES, Header};
use proofmill_groth16::header_chain::{
    ChunkProof, HeaderChainKeys, HeaderChainVerifier, KeysError, Proof, ProveError, prove_chunk,
    verify_chunks,
};
use proofmill_orchestrator::executor::{Context, Json, Prover, ProverError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Slots of the circuit when a workflow file does not say.
const DEFAULT_SLOTS: usize = 4;

/// Something that a prover did, for who shows it.
#[derive(Clone, Debug)]
pub(crate) enum Note {
    /// Keys are being loaded or made.
    Keys(String),
    /// A proof is being made.
    Proving { first: u64, last: u64 },
    /// A proof was made.
    Proved {
        first: u64,
        last: u64,
        took: Duration,
    },
    /// So many proofs were checked together.
    Verified { count: usize, took: Duration },
}

/// Is told what the provers do.
pub(crate) type Watcher = Arc<dyn Fn(Note) + Send + Sync>;

/// Proving keys by the slots of their circuit, loaded or made when first needed.
#[derive(Clone)]
pub(crate) struct Keys {
    directory: PathBuf,
    loaded: Arc<Mutex<HashMap<usize, Loaded>>>,
}

/// What is in memory of the keys of a circuit.
#[derive(Clone)]
enum Loaded {
    All(HeaderChainKeys),
    /// The proving key is only needed elsewhere.
    Verifier(HeaderChainVerifier),
}

/// The files of a circuit's constraints and its key.
#[derive(Clone, Debug)]
pub(crate) struct KeyFiles {
    pub(crate) constraints: PathBuf,
    pub(crate) key: PathBuf,
}

/// A proven chunk as it leaves the mill.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct EmittedChunk {
    /// Height of the first header.
    pub(crate) first: u64,
    /// Height of the last header.
    pub(crate) last: u64,
    /// Hash of the header before the first, as block explorers show it.
    pub(crate) prev_hash: String,
    /// Hash of the last header.
    pub(crate) last_hash: String,
    /// The chunk's work, hexadecimal.
    pub(crate) work: String,
    /// `groth16-bls12-381`.
    pub(crate) system: String,
    /// Slots of the circuit.
    pub(crate) slots: usize,
    /// Statement and proof in [`ChunkProof`]'s encoding, hexadecimal.
    pub(crate) proof: String,
}

/// `bitcoin.prove`: headers in, a chunk proof out.
pub(super) struct Prove {
    slots: usize,
    keys: Keys,
    watcher: Watcher,
}

/// `bitcoin.verify`: chunk proofs in, [`EmittedChunk`]s out.
pub(super) struct Verify {
    slots: usize,
    keys: Keys,
    watcher: Watcher,
}

// === impl Keys ===

impl Keys {
    /// Keys that are kept in `directory`.
    pub(crate) fn in_directory(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            loaded: Arc::default(),
        }
    }

    /// The keys for a circuit of `slots` headers. Whoever asks while they are made waits.
    pub(crate) fn get(
        &self,
        slots: usize,
        watcher: &Watcher,
    ) -> Result<HeaderChainKeys, KeysError> {
        let mut loaded = self.loaded();
        if let Some(Loaded::All(keys)) = loaded.get(&slots) {
            return Ok(keys.clone());
        }
        let keys = self.load(slots, watcher)?;
        loaded.insert(slots, Loaded::All(keys.clone()));
        Ok(keys)
    }

    /// The files of the keys, for who loads them by himself: here only what verifies is kept.
    pub(crate) fn files(&self, slots: usize, watcher: &Watcher) -> Result<KeyFiles, KeysError> {
        let mut loaded = self.loaded();
        let keys = match loaded.get(&slots) {
            Some(Loaded::All(keys)) => keys.clone(),
            _ => self.load(slots, watcher)?,
        };
        let verifier = keys.verifier().clone();
        let verifier = || Loaded::Verifier(verifier);
        loaded.entry(slots).or_insert_with(verifier);
        Ok(KeyFiles {
            constraints: keys.constraints_path()?,
            key: keys.key_path().to_owned(),
        })
    }

    /// What verifies proofs of a circuit of `slots` headers.
    pub(crate) fn verifier(
        &self,
        slots: usize,
        watcher: &Watcher,
    ) -> Result<HeaderChainVerifier, KeysError> {
        if let Some(Loaded::Verifier(verifier)) = self.loaded().get(&slots) {
            return Ok(verifier.clone());
        }
        Ok(self.get(slots, watcher)?.verifier().clone())
    }

    fn loaded(&self) -> MutexGuard<'_, HashMap<usize, Loaded>> {
        // A panic while keys were made left the map as it was.
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn load(&self, slots: usize, watcher: &Watcher) -> Result<HeaderChainKeys, KeysError> {
        let tell = |text: &str| watcher(Note::Keys(text.to_owned()));
        // Who may change the keys may have anything proven.
        make_private_directory(&self.directory).map_err(|source| KeysError::Io {
            path: self.directory.clone(),
            source,
        })?;
        HeaderChainKeys::load_or_generate(&self.directory, slots, &tell)
    }
}

// === impl EmittedChunk ===

impl EmittedChunk {
    fn of(context: &Context, slots: usize, chunk: &ChunkProof) -> Result<Self, String> {
        let statement = &chunk.statement;
        let work = statement.total_work().map_err(|error| error.to_string())?;
        Ok(Self {
            first: context.first,
            last: context.last,
            prev_hash: statement.prev_hash.to_string(),
            last_hash: statement.last_hash.to_string(),
            work: work.to_string(),
            system: "groth16-bls12-381".to_owned(),
            slots,
            proof: hex::encode(chunk.to_bytes()),
        })
    }

    /// The statement and the proof.
    pub(crate) fn decode(&self) -> Result<ChunkProof, String> {
        let bytes = hex::decode(&self.proof).map_err(|error| error.to_string())?;
        ChunkProof::from_bytes(&bytes).map_err(|error| error.to_string())
    }
}

fn slots(params: &Value) -> Result<usize, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Params {
        slots: Option<usize>,
    }
    let params = Params::deserialize(params).map_err(|error| error.to_string())?;
    Ok(params.slots.unwrap_or(DEFAULT_SLOTS))
}

fn no_keys(error: &KeysError) -> ProverError {
    ProverError::Retry(format!("no keys: {error}"))
}

// === impl Prove ===

impl Prove {
    pub(super) fn new(params: &Value, keys: Keys, watcher: Watcher) -> Result<Self, String> {
        Ok(Self {
            slots: slots(params)?,
            keys,
            watcher,
        })
    }
}

impl Prover for Prove {
    type Input = Bytes;
    type Output = Bytes;

    fn prove(&self, context: &Context, input: Bytes) -> Result<Bytes, ProverError> {
        let headers = split(&input).map_err(ProverError::Permanent)?;
        let keys = self
            .keys
            .get(self.slots, &self.watcher)
            .map_err(|error| no_keys(&error))?;
        let (first, last) = (context.first, context.last);
        (self.watcher)(Note::Proving { first, last });
        let began = Instant::now();
        let proof = prove_chunk(&keys, &headers).map_err(|error| name_header(first, error))?;
        (self.watcher)(Note::Proved {
            first,
            last,
            took: began.elapsed(),
        });
        Ok(proof.to_bytes().into())
    }
}

pub(super) fn split(bytes: &[u8]) -> Result<Vec<Header>, String> {
    let (headers, rest) = bytes.as_chunks::<HEADER_BYTES>();
    if !rest.is_empty() {
        return Err(format!(
            "{} bytes are no whole number of headers",
            bytes.len()
        ));
    }
    Ok(headers.iter().map(|header| Header::new(*header)).collect())
}

/// Says which header is wrong by its height, not by its place in the chunk.
pub(super) fn name_header(first: u64, error: ProveError) -> ProverError {
    match error {
        ProveError::InvalidHeader(chain) => {
            let height = first + chain.index as u64;
            ProverError::Permanent(format!("header {height} is invalid: {}", chain.fault))
        }
        error if error.is_permanent() => ProverError::Permanent(error.to_string()),
        error => ProverError::Retry(error.to_string()),
    }
}

// === impl Verify ===

impl Verify {
    pub(super) fn new(params: &Value, keys: Keys, watcher: Watcher) -> Result<Self, String> {
        Ok(Self {
            slots: slots(params)?,
            keys,
            watcher,
        })
    }
}

impl Prover for Verify {
    type Input = Bytes;
    type Output = Json<EmittedChunk>;

    fn prove(&self, context: &Context, input: Bytes) -> Result<Json<EmittedChunk>, ProverError> {
        let batch = vec![(context.clone(), input)];
        let lacking = || Err(ProverError::Retry("no verdict".to_owned()));
        self.prove_batch(batch).pop().unwrap_or_else(lacking)
    }

    fn prove_batch(
        &self,
        batch: Vec<(Context, Bytes)>,
    ) -> Vec<Result<Json<EmittedChunk>, ProverError>> {
        let verifier = match self.keys.verifier(self.slots, &self.watcher) {
            Ok(verifier) => verifier,
            Err(error) => return batch.iter().map(|_| Err(no_keys(&error))).collect(),
        };
        let began = Instant::now();
        let chunks: Vec<Result<ChunkProof, String>> = batch
            .iter()
            .map(|(_, bytes)| ChunkProof::from_bytes(bytes).map_err(|error| error.to_string()))
            .collect();
        let together: Vec<(ChunkStatement, Proof)> = chunks
            .iter()
            .flatten()
            .map(|chunk| (chunk.statement.clone(), chunk.proof))
            .collect();
        let mut verdicts = verify_chunks(&verifier, &together).into_iter();
        (self.watcher)(Note::Verified {
            count: together.len(),
            took: began.elapsed(),
        });
        let verdict = |context: &Context, chunk: Result<ChunkProof, String>| {
            let chunk = chunk?;
            match verdicts.next() {
                Some(Ok(())) => EmittedChunk::of(context, self.slots, &chunk),
                Some(Err(error)) => Err(error.to_string()),
                None => Err("no verdict".to_owned()),
            }
        };
        let mut verdict = verdict;
        batch
            .iter()
            .zip(chunks)
            .map(|((context, _), chunk)| {
                let checked = verdict(context, chunk);
                checked.map(Json).map_err(|why| {
                    ProverError::Permanent(format!("the proof does not verify: {why}"))
                })
            })
            .collect()
    }
}
