//! `bitcoin.prove`, the prover of chunks of block headers, and the keys of its circuits.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use proofmill_bitcoin::{HeaderChainKeys, HeaderChainVerifier, KeysError, ProveError, prove_chunk};
use proofmill_files::make_private_directory;
use proofmill_orchestrator::executor::{Context, Prover, ProverError, machine_failure_of};
use serde::Deserialize;
use serde_json::Value;

use super::chunk::{ProvenChunk, split_headers};

/// Default number of headers that the circuit has room for (its slots).
pub(super) const DEFAULT_SLOTS: usize = 4;

/// An event of a prover, for the progress display.
#[derive(Clone, Debug)]
pub(crate) enum ProverEvent {
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
    /// `count` proofs were checked together.
    Verified { count: usize, took: Duration },
    /// `count` proofs were checked again before emission.
    Checked { count: usize, took: Duration },
}

/// Callback that receives the provers' events.
pub(crate) type OnProverEvent = Arc<dyn Fn(ProverEvent) + Send + Sync>;

/// Proving keys by the number of slots of their circuit, loaded or made when first needed. Clones share them.
#[derive(Clone)]
pub(crate) struct Keys {
    directory: PathBuf,
    loaded: Arc<Mutex<HashMap<usize, LoadedKeys>>>,
}

/// The part of a circuit's keys that is in memory.
#[derive(Clone)]
enum LoadedKeys {
    All(HeaderChainKeys),
    /// Only the verifying part: the proving key is used by an engine instead.
    Verifier(HeaderChainVerifier),
}

/// The files of a circuit's constraints and its key.
#[derive(Clone, Debug)]
pub(crate) struct KeyFiles {
    pub(crate) constraints: PathBuf,
    pub(crate) key: PathBuf,
}

/// `bitcoin.prove`: headers in, a [`ProvenChunk`] out.
pub(super) struct Prove {
    slots: usize,
    keys: Keys,
    on_event: OnProverEvent,
}

// === impl Keys ===

impl Keys {
    /// Keys stored in `directory`.
    pub(crate) fn in_directory(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            loaded: Arc::default(),
        }
    }

    /// The keys for a circuit of `slots` headers. Blocks while they are loaded or made, also by another caller.
    pub(crate) fn get(
        &self,
        slots: usize,
        on_event: &OnProverEvent,
    ) -> Result<HeaderChainKeys, KeysError> {
        let mut loaded = self.loaded();
        if let Some(LoadedKeys::All(keys)) = loaded.get(&slots) {
            return Ok(keys.clone());
        }
        let keys = self.load(slots, on_event)?;
        loaded.insert(slots, LoadedKeys::All(keys.clone()));
        Ok(keys)
    }

    /// The files of the keys, for an engine that loads them itself; keeps only the verifying part in memory.
    pub(crate) fn files(
        &self,
        slots: usize,
        on_event: &OnProverEvent,
    ) -> Result<KeyFiles, KeysError> {
        let mut loaded = self.loaded();
        let keys = match loaded.get(&slots) {
            Some(LoadedKeys::All(keys)) => keys.clone(),
            _ => self.load(slots, on_event)?,
        };
        let verifier = keys.verifier().clone();
        let verifier = || LoadedKeys::Verifier(verifier);
        loaded.entry(slots).or_insert_with(verifier);
        Ok(KeyFiles {
            constraints: keys.constraints_path()?,
            key: keys.key_path().to_owned(),
        })
    }

    /// The verifier of proofs of a circuit of `slots` headers; loads or makes the keys if needed.
    pub(crate) fn verifier(
        &self,
        slots: usize,
        on_event: &OnProverEvent,
    ) -> Result<HeaderChainVerifier, KeysError> {
        if let Some(LoadedKeys::Verifier(verifier)) = self.loaded().get(&slots) {
            return Ok(verifier.clone());
        }
        Ok(self.get(slots, on_event)?.verifier().clone())
    }

    /// As [`Keys::verifier`], but only with keys that exist: a process that only checks proofs would reject all of them
    /// under a new key.
    pub(crate) fn known_verifier(
        &self,
        slots: usize,
        on_event: &OnProverEvent,
    ) -> Result<HeaderChainVerifier, ProverError> {
        if self.loaded().get(&slots).is_none() && !self.has_files(slots) {
            return Err(ProverError::Retry(format!(
                "there are no keys for {slots} headers in {}: name a folder with the keys of the \
                 proving machines with --keys",
                self.directory.display()
            )));
        }
        let verifier = self.verifier(slots, on_event);
        verifier.map_err(|error| no_keys(&error))
    }

    fn has_files(&self, slots: usize) -> bool {
        let begin = format!("header-chain-{slots}-");
        let entries = std::fs::read_dir(&self.directory).into_iter().flatten();
        let mut names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.any(|name| name.starts_with(&begin) && name.ends_with(".pk"))
    }

    fn loaded(&self) -> MutexGuard<'_, HashMap<usize, LoadedKeys>> {
        // A panic while keys were made left the map as it was.
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn load(&self, slots: usize, on_event: &OnProverEvent) -> Result<HeaderChainKeys, KeysError> {
        let tell = |text: &str| on_event(ProverEvent::Keys(text.to_owned()));
        // A user who can change the keys could have false statements accepted.
        make_private_directory(&self.directory).map_err(|source| KeysError::Io {
            path: self.directory.clone(),
            source,
        })?;
        HeaderChainKeys::load_or_generate(&self.directory, slots, &tell)
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

pub(super) fn no_keys(error: &KeysError) -> ProverError {
    match machine_failure_of(error) {
        Some(failure) => ProverError::Machine(failure),
        None => ProverError::Retry(format!("no keys: {error}")),
    }
}

// === impl Prove ===

impl Prove {
    pub(super) fn new(params: &Value, keys: Keys, on_event: OnProverEvent) -> Result<Self, String> {
        Ok(Self {
            slots: slots(params)?,
            keys,
            on_event,
        })
    }
}

impl Prover for Prove {
    type Input = Bytes;
    type Output = Bytes;

    fn prove(&self, context: &Context, input: Bytes) -> Result<Bytes, ProverError> {
        let headers = split_headers(&input).map_err(ProverError::Permanent)?;
        let keys = self
            .keys
            .get(self.slots, &self.on_event)
            .map_err(|error| no_keys(&error))?;
        let (first, last) = (context.first, context.last);
        (self.on_event)(ProverEvent::Proving { first, last });
        let began = Instant::now();
        let proof = prove_chunk(&keys, &headers).map_err(|error| name_header(first, error))?;
        (self.on_event)(ProverEvent::Proved {
            first,
            last,
            took: began.elapsed(),
        });
        Ok(ProvenChunk::encode(&input, &proof).into())
    }
}

/// Converts an error so that it names an invalid header by its height instead of its index in the chunk.
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
