//! Proofs of chunks of Bitcoin headers over BLS12-381: keys, prover, verifier.

use std::fs::{self, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::{ChainError, ChunkStatement, Header, HeaderChain, HeaderChainError, StatementError};
use ark_bls12_381::{Bls12_381, Fr};
use ark_std::rand::rngs::OsRng;
use proofmill_files::{FileError, open_lock_file};

use proofmill_r1cs::{Assignment, R1cs, R1csError};
use sha2::{Digest, Sha256};

use proofmill_groth16::{
    KeyError, PointCheck, PreparedVerifyingKey, ProofError, ProvingKey, SetupError, Timings,
    VerifyingKey, setup_with_progress, verify_batch,
};

/// Default number of slots of a circuit: five headers take 259,768 of the 2¹⁸ points of their
/// domain, the best fit of any small number.
pub const DEFAULT_SLOTS: usize = 5;

/// A proof over BLS12-381.
pub type Proof = proofmill_groth16::Proof<Bls12_381>;

/// The circuit and proving key for chunks of up to [`slots`](Self::slots) headers. Clones share
/// them.
#[derive(Clone, Debug)]
pub struct HeaderChainKeys {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    r1cs: R1cs<Fr>,
    key: ProvingKey<Bls12_381>,
    verifier: HeaderChainVerifier,
    key_path: PathBuf,
}

/// The prepared verifying key for chunks of up to [`slots`](Self::slots) headers. Clones share it.
#[derive(Clone, Debug)]
pub struct HeaderChainVerifier {
    slots: usize,
    key: Arc<PreparedVerifyingKey<Bls12_381>>,
}

/// A proof of a chunk, with its statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkProof {
    /// The statement that the proof proves.
    pub statement: ChunkStatement,
    /// The proof.
    pub proof: Proof,
    /// Durations of the prover's steps. Not part of the encoding; zero in a decoded proof.
    pub timings: ChunkTimings,
}

/// Durations of the steps of a chunk's proof.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChunkTimings {
    /// Checking the headers and computing the witness.
    pub witness: Duration,
    /// The prover's stages.
    pub prove: Timings,
}

/// An error while loading or generating keys.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeysError {
    /// The number of slots is not possible.
    #[error(transparent)]
    Slots(#[from] StatementError),
    /// The circuit could not be built.
    #[error(transparent)]
    Circuit(#[from] R1csError),
    /// Keys could not be made.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The key directory or its lock could not be used.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The constraints could not be written.
    #[error(transparent)]
    Precompiled(#[from] FileError),
    /// A cached key is unusable. It is not replaced: proofs made with it verify with no other.
    #[error(
        "{}: {source}; delete the file to generate a new key, with which older proofs will not verify",
        path.display()
    )]
    Key {
        /// The key file.
        path: PathBuf,
        /// The defect of the key file.
        source: KeyError,
    },
}

/// The reason why a chunk was not proved.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProveError {
    /// A header is invalid: the index counts from the chunk's first header. Permanent.
    #[error("invalid header: {0}")]
    InvalidHeader(#[from] ChainError),
    /// There are no headers, or more than slots. Permanent.
    #[error(transparent)]
    Count(StatementError),
    /// The prover failed on valid headers: key and circuit do not belong together, or the
    /// machine's arithmetic went wrong. Worth another try elsewhere.
    #[error("the prover failed on valid headers: {0}")]
    Prover(#[from] proofmill_groth16::ProveError),
    /// The witness could not be computed. Worth another try elsewhere.
    #[error("the witness could not be computed: {0}")]
    Witness(#[from] R1csError),
}

/// The reason why a chunk's proof is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// The statement does not fit the circuit.
    #[error(transparent)]
    Statement(#[from] StatementError),
    /// The proof does not prove the statement.
    #[error(transparent)]
    Proof(#[from] proofmill_groth16::VerifyError),
}

/// The reason why bytes do not decode to a chunk proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChunkProofError {
    /// The bytes do not begin with the magic and version of a chunk proof.
    #[error("not a Proofmill chunk proof of version {CHUNK_VERSION}")]
    Magic,
    /// The checksum does not match: cut short or corrupt.
    #[error("the chunk proof's checksum does not match: cut short or corrupt")]
    Checksum,
    /// The proof is malformed.
    #[error(transparent)]
    Proof(#[from] ProofError),
    /// The statement is malformed.
    #[error("the chunk proof's statement is malformed")]
    Statement,
}

const CHUNK_MAGIC: &[u8; 8] = b"PMILLHCP";
const CHUNK_VERSION: u32 = 1;

// === impl HeaderChainKeys ===

impl HeaderChainKeys {
    /// The keys for `slots` slots from `directory`, generated and kept there the first time.
    ///
    /// The file's name carries the slots and the circuit's digest, so another version of the
    /// circuit never meets this one's key. Processes that race take turns: one generates, the
    /// others load. Keys are a development setup, see [`setup`](proofmill_groth16::setup()).
    ///
    /// # Errors
    ///
    /// [`KeysError`]; a corrupt cached key is reported, not replaced.
    pub fn load_or_generate(
        directory: &Path,
        slots: usize,
        progress: &dyn Fn(&str),
    ) -> Result<Self, KeysError> {
        progress(&format!("building the circuit for {slots} headers"));
        let r1cs = R1cs::from_circuit(HeaderChain::blank(slots)?)?;
        let digest = r1cs.digest();
        let io = |path: &Path| {
            let path = path.to_owned();
            move |source| KeysError::Io { path, source }
        };
        fs::create_dir_all(directory).map_err(io(directory))?;
        let name = format!("header-chain-{slots}-{}", hex::encode(&digest[..8]));
        let path = |suffix: &str| directory.join(format!("{name}.{suffix}"));
        let (key_path, vk_path, lock_path) = (path("pk"), path("vk"), path("lock"));

        let lock = open_lock_file(&lock_path).map_err(io(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                progress("waiting for another process that generates the same key");
                lock.lock().map_err(io(&lock_path))?;
            }
            Err(TryLockError::Error(source)) => {
                return Err(KeysError::Io {
                    path: lock_path,
                    source,
                });
            }
        }

        let at = |path: &Path| {
            let path = path.to_owned();
            move |source| KeysError::Key { path, source }
        };
        let key = if key_path.try_exists().map_err(io(&key_path))? {
            progress("loading the proving key");
            let key = ProvingKey::<Bls12_381>::load(&key_path, PointCheck::Skip)
                .map_err(at(&key_path))?;
            if key.vk.circuit != digest {
                return Err(at(&key_path)(KeyError::Circuit));
            }
            let secure = key.vk.require_secure();
            secure.map_err(|error| at(&key_path)(error.into()))?;
            key
        } else {
            let key = setup_with_progress(&r1cs, &mut OsRng, &|step| {
                progress(&format!("generating the proving key: {step}"));
            })?;
            progress("saving the proving key");
            key.save(&key_path).map_err(at(&key_path))?;
            key
        };
        if !vk_path.try_exists().map_err(io(&vk_path))? {
            key.vk.save(&vk_path).map_err(at(&vk_path))?;
        }
        drop(lock);
        let verifier = HeaderChainVerifier::prepare(slots, key.vk.clone());
        Ok(Self {
            inner: Arc::new(Inner {
                r1cs,
                key,
                verifier,
                key_path,
            }),
        })
    }

    /// The most headers one proof can cover.
    pub fn slots(&self) -> usize {
        self.inner.verifier.slots
    }

    /// The verifier of proofs made with these keys.
    pub fn verifier(&self) -> &HeaderChainVerifier {
        &self.inner.verifier
    }

    /// The circuit.
    pub fn r1cs(&self) -> &R1cs<Fr> {
        &self.inner.r1cs
    }

    /// The proving key.
    pub fn proving_key(&self) -> &ProvingKey<Bls12_381> {
        &self.inner.key
    }

    /// Path of the proving key; the verifying key is beside it, with suffix `vk`.
    pub fn key_path(&self) -> &Path {
        &self.inner.key_path
    }

    /// Path of the circuit's precompiled constraints, beside the key. The first call writes the file.
    ///
    /// # Errors
    ///
    /// [`KeysError::Precompiled`].
    pub fn constraints_path(&self) -> Result<PathBuf, KeysError> {
        let path = self.inner.key_path.with_extension("pmcs");
        if !path.exists() {
            self.inner.r1cs.save_precompiled(&path)?;
        }
        Ok(path)
    }
}

// === impl HeaderChainVerifier ===

impl HeaderChainVerifier {
    /// A verifier with a verifying key that is known to be for the circuit of `slots` slots.
    ///
    /// # Errors
    ///
    /// [`KeyError::Circuit`] if the key has another number of public inputs, [`KeyError::Insecure`].
    pub fn new(slots: usize, vk: VerifyingKey<Bls12_381>) -> Result<Self, KeyError> {
        vk.require_secure()?;
        // The leading one, two halves of two hashes, the count, and each slot's bits.
        if vk.instance.len().checked_sub(6) == Some(slots) && slots > 0 {
            Ok(Self::prepare(slots, vk))
        } else {
            Err(KeyError::Circuit)
        }
    }

    fn prepare(slots: usize, vk: VerifyingKey<Bls12_381>) -> Self {
        Self {
            slots,
            key: Arc::new(vk.into()),
        }
    }

    /// The most headers one proof can cover.
    pub const fn slots(&self) -> usize {
        self.slots
    }

    /// The verifying key.
    pub fn vk(&self) -> &VerifyingKey<Bls12_381> {
        self.key.vk()
    }
}

// === impl ProveError ===

impl ProveError {
    /// Whether the same headers would fail again anywhere.
    pub const fn is_permanent(&self) -> bool {
        match self {
            Self::InvalidHeader(_) | Self::Count(_) => true,
            Self::Prover(_) | Self::Witness(_) => false,
        }
    }
}

impl From<HeaderChainError> for ProveError {
    fn from(error: HeaderChainError) -> Self {
        match error {
            HeaderChainError::Chain(error) => Self::InvalidHeader(error),
            HeaderChainError::Count(error) => Self::Count(error),
        }
    }
}

// === impl ChunkProof ===

impl ChunkProof {
    /// Magic `PMILLHCP`, version (4 little-endian bytes), the proof, the statement, and the
    /// SHA-256 of all that.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = CHUNK_MAGIC.to_vec();
        bytes.extend(CHUNK_VERSION.to_le_bytes());
        bytes.extend(self.proof.to_bytes());
        bytes.extend(self.statement.to_bytes());
        let checksum = Sha256::digest(&bytes);
        bytes.extend(checksum);
        bytes
    }

    /// Decodes an untrusted chunk proof; it is not verified.
    ///
    /// # Errors
    ///
    /// [`ChunkProofError`] for any other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ChunkProofError> {
        let (content, checksum) = bytes
            .split_last_chunk::<32>()
            .ok_or(ChunkProofError::Checksum)?;
        let rest = content
            .strip_prefix(CHUNK_MAGIC)
            .ok_or(ChunkProofError::Magic)?;
        let rest = rest
            .strip_prefix(&CHUNK_VERSION.to_le_bytes())
            .ok_or(ChunkProofError::Magic)?;
        if Sha256::digest(content).as_slice() != checksum {
            return Err(ChunkProofError::Checksum);
        }
        let (proof, statement) = rest
            .split_at_checked(Proof::encoded_size())
            .ok_or(ChunkProofError::Statement)?;
        Ok(Self {
            proof: Proof::from_bytes(proof)?,
            statement: ChunkStatement::from_bytes(statement)
                .map_err(|_| ChunkProofError::Statement)?,
            timings: ChunkTimings::default(),
        })
    }
}

/// Proves a chunk of consecutive headers, on all threads of the current rayon pool.
///
/// # Errors
///
/// [`ProveError::InvalidHeader`] names the first header that breaks the chain, before anything is
/// computed; see [`ProveError::is_permanent`].
pub fn prove_chunk(keys: &HeaderChainKeys, headers: &[Header]) -> Result<ChunkProof, ProveError> {
    let start = Instant::now();
    let statement = chunk_statement(keys.slots(), headers)?;
    let assignment = chunk_witness(keys.slots(), headers)?;
    let witness = start.elapsed();
    let inner = &*keys.inner;
    let (proof, prove) =
        proofmill_groth16::prove(&inner.key, &inner.r1cs, &assignment, &mut OsRng)?;
    Ok(ChunkProof {
        statement,
        proof,
        timings: ChunkTimings { witness, prove },
    })
}

/// Checks headers and returns the statement of their proof by a circuit of `slots` slots.
///
/// # Errors
///
/// [`ProveError::InvalidHeader`] names the first header that breaks the chain;
/// [`ProveError::Count`].
pub fn chunk_statement(slots: usize, headers: &[Header]) -> Result<ChunkStatement, ProveError> {
    HeaderChain::new(slots, headers)?;
    ChunkStatement::of(headers)
        .ok_or(StatementError::Count { count: 0, slots })
        .map_err(ProveError::Count)
}

/// The values of all variables of the circuit of `slots` slots, for these headers.
///
/// # Errors
///
/// Those of [`chunk_statement`], and [`ProveError::Witness`].
pub fn chunk_witness(slots: usize, headers: &[Header]) -> Result<Assignment<Fr>, ProveError> {
    Ok(Assignment::from_circuit(HeaderChain::new(slots, headers)?)?)
}

/// Verifies chunks' proofs together: one verdict for each, in order.
pub fn verify_chunks(
    verifier: &HeaderChainVerifier,
    chunks: &[(ChunkStatement, Proof)],
) -> Vec<Result<(), VerifyError>> {
    let inputs: Vec<Result<Vec<Fr>, StatementError>> = chunks
        .iter()
        .map(|(statement, _)| statement.to_inputs(verifier.slots))
        .collect();
    let batch: Vec<(&[Fr], &Proof)> = inputs
        .iter()
        .zip(chunks)
        .filter_map(|(inputs, (_, proof))| Some((inputs.as_deref().ok()?, proof)))
        .collect();
    let mut verdicts = verify_batch(&verifier.key, &batch, &mut OsRng).into_iter();
    inputs
        .into_iter()
        .map(|inputs| {
            inputs?;
            let verdict = verdicts
                .next()
                .unwrap_or(Err(proofmill_groth16::VerifyError::Invalid));
            verdict.map_err(VerifyError::from)
        })
        .collect()
}
