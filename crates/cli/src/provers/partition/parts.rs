//! The keys of parts, with which workers commit and prove, and the coordinator checks.

use proofmill_partition::with_partition_curve;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ark_std::rand::rngs::OsRng;
use proofmill_aggregation::Srs;
use proofmill_groth16::Proof;
use proofmill_groth16::mirage::{self, Commitment};
use proofmill_groth16::snarkjs::proof_from_json;
use proofmill_orchestrator::coordinator::UncheckedResult;
use proofmill_orchestrator::executor::{Context, ProverError};
use proofmill_partition::Partition;
use proofmill_partition::proof::distributed::{
    CommitTask, CommitmentChecker, CommitmentKeys, ProofChecker, ProveTask, ProvedParts, Worker,
};
use proofmill_partition::proof::{ClassKeys, Index, KeyForm, PartVerifiers, PartitionCurve};
use serde::Deserialize;
use serde_json::Value;

use super::engines::{EngineSettings, Engines, circuit_name};
use super::job::permanent;
use super::messages::{PartResult, bytes_of};
use super::published::{KeyFolder, PublishedKeys};
use super::shards::{ShardMaker, Share, make_shard};
use super::shared::Shared;
use crate::circuit_folder::{AnyCircuit, CircuitSizes};
use crate::failure::Failure;

/// Most threads of a process that proves one part at a time. Measured: on one thread 2 % faster than two at once, on two
/// equally fast, on more not measured.
const THREADS_IN_TURN_MAX: usize = 2;

/// The keys that a process's stages have loaded, each once.
pub(super) struct LoadedKeys {
    work: Shared<KeyName, Arc<dyn PartWork>>,
    /// Source of the keys that are not on this machine.
    published: Option<PublishedKeys>,
}

/// Identification of keys, as a workflow has it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct KeyName {
    /// The folder.
    keys: PathBuf,
    /// Digest of the partition that the keys must be of, hexadecimal.
    partition: String,
    /// Digest under which the folder is published, hexadecimal.
    published: String,
}

/// The keys that a stage's parameters name; they are read when first needed.
pub(super) struct WorkerKeys {
    name: KeyName,
    loaded: Arc<LoadedKeys>,
    /// The engines that prove, instead of this process.
    engines: Option<Engines>,
}

/// A worker stage's parameters.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    keys: PathBuf,
    partition: String,
    published: String,
    engines: Option<EngineSettings>,
}

/// Work on parts, over any curve. Everything that processes exchange is bytes.
pub(super) trait PartWork: ShardMaker {
    /// Reads the keys to commit with, with which commitments are checked too, unless they are read.
    fn prepare_commitments(&self) -> Result<(), ProverError>;

    /// Reads the keys to prove with in this process, unless they are read.
    fn prepare_proofs(&self) -> Result<(), ProverError>;

    /// Reads the keys to check proofs with, unless they are read.
    fn prepare_proof_checks(&self) -> Result<(), ProverError>;

    /// Commits to a part.
    fn commit(&self, job: String, task: &[u8]) -> Result<PartResult, ProverError>;

    /// Proves a part, in this process unless engines are named.
    fn prove(
        &self,
        context: &Context,
        task: &[u8],
        engines: Option<&Engines>,
    ) -> Result<PartResult, ProverError>;

    /// Checks commitments, one verdict for each.
    fn check_commitments(&self, results: &[UncheckedResult]) -> Vec<Result<(), ProverError>>;

    /// Checks proofs, one verdict for each.
    fn check_proofs(&self, results: &[UncheckedResult]) -> Vec<Result<(), ProverError>>;
}

/// Keys over one curve.
struct Parts<E: PartitionCurve> {
    files: KeyFolder,
    partition: Partition<E::ScalarField>,
    blank: AnyCircuit<E::ScalarField>,
    /// The proving keys of all classes, once one was needed.
    keys: Shared<(), Arc<ClassKeys<E>>>,
    /// Held while a part is proved, if parts are proved in turn.
    turn: Mutex<()>,
    /// The keys to commit and to check commitments with, once one was needed.
    commitment_keys: Shared<(), Arc<CommitmentKeys<E>>>,
    /// The classes' keys at engines, by class, once one was needed.
    engine_keys: Shared<usize, EngineKey<E>>,
    /// The keys to check proofs with, once there was one.
    verifiers: Shared<(), Arc<PartVerifiers<E>>>,
    /// The keys that shards need, once there was one: with the reference string, which checks do without.
    shard_keys: Shared<(), Arc<ShardKeys<E>>>,
}

/// The keys to make shards with.
struct ShardKeys<E: PartitionCurve> {
    index: Index<E>,
    srs: Srs<E>,
}

/// A class's key at engines.
#[derive(Clone)]
struct EngineKey<E: PartitionCurve> {
    /// Name of its circuit there.
    circuit: String,
    /// η in the first group.
    eta_g1: E::G1Affine,
}

/// A decoded result with its task, or the fault of the result.
type Decoded<T, R> = Result<(T, R), ProverError>;

// === impl WorkerKeys ===

impl WorkerKeys {
    /// The keys that a stage's parameters name.
    pub(super) fn of(params: &Value, loaded: &Arc<LoadedKeys>) -> Result<Self, String> {
        let params = Params::deserialize(params).map_err(|error| error.to_string())?;
        Ok(Self {
            name: KeyName {
                keys: params.keys,
                partition: params.partition,
                published: params.published,
            },
            loaded: Arc::clone(loaded),
            engines: params.engines.as_ref().map(Engines::of).transpose()?,
        })
    }

    /// Digest of the partition that the keys must be of, hexadecimal.
    pub(super) fn partition(&self) -> &str {
        &self.name.partition
    }

    /// Reads the keys to prove with, unless engines prove.
    pub(super) fn prepare_proofs(&self) -> Result<(), ProverError> {
        match self.engines {
            Some(_) => Ok(()),
            None => self.work()?.prepare_proofs(),
        }
    }

    /// Proves a part, at an engine if the parameters name any.
    pub(super) fn prove(&self, context: &Context, task: &[u8]) -> Result<PartResult, ProverError> {
        self.work()?.prove(context, task, self.engines.as_ref())
    }

    /// The work that the keys allow. Reads them at the process's first call.
    pub(super) fn work(&self) -> Result<Arc<dyn PartWork>, ProverError> {
        self.loaded.work.get(&self.name, || {
            open(&self.name, self.loaded.published.as_ref()).map_err(|failure| {
                let (folder, why) = (self.name.keys.display(), failure.message());
                ProverError::Retry(format!("keys {folder}: {why}"))
            })
        })
    }
}

// === impl LoadedKeys ===

impl LoadedKeys {
    /// No keys yet; those that are not on this machine are fetched from where they are published.
    pub(super) fn new(published: Option<PublishedKeys>) -> Self {
        Self {
            work: Shared::default(),
            published,
        }
    }
}

fn open(name: &KeyName, published: Option<&PublishedKeys>) -> Result<Arc<dyn PartWork>, Failure> {
    let files = KeyFolder::find(&name.keys, &name.published, published)?;
    let description = files.folder().description()?;
    let curve = description.curve()?;
    with_partition_curve!(curve, E => parts::<E>(files, &description.circuit, &name.partition))?
}

fn parts<E: PartitionCurve>(
    files: KeyFolder,
    circuit: &CircuitSizes,
    expected: &str,
) -> Result<Arc<dyn PartWork>, Failure> {
    let folder = files.folder();
    let partition = folder.partition::<E::ScalarField>()?;
    let found = hex::encode(partition.digest());
    if found != expected {
        return Err(Failure::new(format!(
            "they are of partition {found}, the workflow of {expected}"
        ))
        .help(
            "copy the folder that `proofmill partition setup` made to every machine, or publish it",
        ));
    }
    Ok(Arc::new(Parts::<E> {
        blank: circuit.without_witness(folder)?,
        files,
        keys: Shared::default(),
        turn: Mutex::default(),
        commitment_keys: Shared::default(),
        engine_keys: Shared::default(),
        partition,
        verifiers: Shared::default(),
        shard_keys: Shared::default(),
    }))
}

// === impl Parts ===

impl<E: PartitionCurve> Parts<E> {
    /// The keys of all classes, which are read at the first call.
    fn keys(&self) -> Result<Arc<ClassKeys<E>>, ProverError> {
        let read = || {
            let folder = self.files.folder().path().to_owned();
            let keys = ClassKeys::in_folder(folder, KeyForm::Plain);
            Ok::<_, Failure>(Arc::new(keys.read_all(&self.partition)?))
        };
        self.keys.get(&(), read).map_err(|why| retry(&why))
    }

    /// The turn to prove a part after its synthesis, in a process of few threads: two parts at once would take the memory
    /// of two and push each other out of the caches. With more threads, one part fills the gaps that another leaves.
    fn turn(&self) -> Option<MutexGuard<'_, ()>> {
        let takes_turns = rayon::current_num_threads() <= THREADS_IN_TURN_MAX;
        let wait = || self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        takes_turns.then(wait)
    }

    /// The commitment keys of all classes, which are read at the first call.
    fn commitment_keys(&self) -> Result<Arc<CommitmentKeys<E>>, ProverError> {
        let read = || {
            let keys = CommitmentKeys::read(&self.partition, self.files.folder().path())?;
            Ok::<_, Failure>(Arc::new(keys))
        };
        self.commitment_keys
            .get(&(), read)
            .map_err(|why| retry(&why))
    }

    /// The proof of a part by an engine.
    fn prove_at(
        &self,
        engines: &Engines,
        context: &Context,
        task: &ProveTask<E>,
    ) -> Result<Proof<E>, ProverError> {
        let class = self.partition.class_of(task.part()).map_err(permanent)?;
        let assignment = task.assignment(&self.partition, &self.blank);
        let assignment = assignment.map_err(permanent)?;
        let key = self.engine_key(class)?;
        let made = engines.prove(context, &key.circuit, assignment.z())?;
        let plain = proof_from_json::<E>(made.proof_json.as_bytes());
        let plain =
            plain.map_err(|error| ProverError::Retry(format!("the engine's proof: {error}")))?;
        Ok(task.complete(key.eta_g1, &plain))
    }

    /// A class's key at engines, from the head of its file.
    fn engine_key(&self, class: usize) -> Result<EngineKey<E>, ProverError> {
        let read = || {
            let path = ClassKeys::<E>::path(self.files.folder().path(), class);
            Ok::<_, Failure>(EngineKey {
                circuit: circuit_name::<E>(&path)?,
                eta_g1: mirage::ProvingKey::<E>::load_eta(&path)?,
            })
        };
        self.engine_keys
            .get(&class, read)
            .map_err(|why| retry(&why))
    }

    /// The verifying keys of all parts, which are read at the first call.
    fn verifiers(&self) -> Result<Arc<PartVerifiers<E>>, ProverError> {
        let read = || {
            let folder = self.files.to_check_with()?;
            let verifiers = folder.part_verifiers::<E>(&self.partition)?;
            Ok::<_, Failure>(Arc::new(verifiers))
        };
        self.verifiers.get(&(), read).map_err(|why| retry(&why))
    }

    fn commitment(result: &UncheckedResult) -> Decoded<CommitTask<E>, Commitment<E>> {
        let found = part_result(result)?;
        let task = CommitTask::from_bytes(&input(result)?).map_err(ours)?;
        require(&found, task.part(), found.proof.is_none())?;
        let bytes = bytes_of("commitment", &found.commitment)?;
        Ok((task, Commitment::from_bytes(&bytes).map_err(permanent)?))
    }

    fn proof(result: &UncheckedResult) -> Decoded<ProveTask<E>, Proof<E>> {
        let found = part_result(result)?;
        let task = ProveTask::<E>::from_bytes(&input(result)?).map_err(ours)?;
        let commitment = hex::encode(task.commitment().to_bytes());
        require(&found, task.part(), found.commitment == commitment)?;
        let bytes = bytes_of("proof", found.proof.as_deref().unwrap_or_default())?;
        Ok((task, Proof::from_bytes(&bytes).map_err(permanent)?))
    }
}

impl<E: PartitionCurve> PartWork for Parts<E> {
    fn prepare_commitments(&self) -> Result<(), ProverError> {
        self.commitment_keys().map(drop)
    }

    fn prepare_proofs(&self) -> Result<(), ProverError> {
        self.keys().map(drop)
    }

    fn prepare_proof_checks(&self) -> Result<(), ProverError> {
        self.verifiers().map(drop)
    }

    fn commit(&self, job: String, task: &[u8]) -> Result<PartResult, ProverError> {
        let task = CommitTask::from_bytes(task).map_err(permanent)?;
        let keys = self.commitment_keys()?;
        let commitment = keys.commit(&self.partition, &task).map_err(permanent)?;
        Ok(PartResult {
            job,
            part: task.part() as u32,
            commitment: hex::encode(commitment.to_bytes()),
            proof: None,
        })
    }

    fn prove(
        &self,
        context: &Context,
        task: &[u8],
        engines: Option<&Engines>,
    ) -> Result<PartResult, ProverError> {
        let task = ProveTask::from_bytes(task).map_err(permanent)?;
        let proof = match engines {
            Some(engines) => self.prove_at(engines, context, &task)?,
            None => {
                let keys = self.keys()?;
                let worker = Worker {
                    partition: &self.partition,
                    keys: &keys,
                };
                let assignment = task.assignment(&self.partition, &self.blank);
                let assignment = assignment.map_err(permanent)?;
                let _turn = self.turn();
                worker
                    .prove_assigned(&task, &assignment, &mut OsRng)
                    .map_err(permanent)?
            }
        };
        Ok(PartResult {
            job: context.first.to_string(),
            part: task.part() as u32,
            commitment: hex::encode(task.commitment().to_bytes()),
            proof: Some(hex::encode(proof.to_bytes())),
        })
    }

    fn check_commitments(&self, results: &[UncheckedResult]) -> Vec<Result<(), ProverError>> {
        verdicts(results, Self::commitment, |decoded| {
            let keys = self.commitment_keys()?;
            let checker = CommitmentChecker {
                partition: &self.partition,
                keys: &keys,
            };
            let verdicts = checker.check(decoded, &mut OsRng);
            let verdicts = verdicts.map_err(ours)?;
            Ok(verdicts
                .into_iter()
                .map(|of| of.map_err(permanent))
                .collect())
        })
    }

    fn check_proofs(&self, results: &[UncheckedResult]) -> Vec<Result<(), ProverError>> {
        verdicts(results, Self::proof, |decoded| {
            let verifiers = self.verifiers()?;
            let checker = ProofChecker {
                verifiers: &verifiers,
            };
            let verdicts = checker.check(decoded, &mut OsRng);
            Ok(verdicts
                .into_iter()
                .map(|of| of.map_err(permanent))
                .collect())
        })
    }
}

impl<E: PartitionCurve> ShardMaker for Parts<E> {
    fn parts(&self) -> (usize, usize) {
        let bytes = ProvedParts::<E>::encoded_size();
        (self.partition.num_parts(), bytes)
    }

    fn make(
        &self,
        share: Share,
        parts: &[u8],
        messages: &mut dyn Iterator<Item = Vec<u8>>,
        answer: &mut dyn FnMut(Vec<u8>),
    ) -> Result<(), String> {
        let read = || {
            let folder = self.files.to_check_with()?;
            let (index, srs) = folder.index::<E>(self.partition.clone())?;
            Ok(Arc::new(ShardKeys { index, srs }))
        };
        let keys = self.shard_keys.get(&(), read);
        let keys = keys.map_err(|failure: Failure| failure.message().to_owned())?;
        make_shard(&keys.index, &keys.srs, share, parts, messages, answer)
    }
}

/// Decodes results, checks those that decode together, and gives a verdict for each.
fn verdicts<T, R>(
    results: &[UncheckedResult],
    decode: impl Fn(&UncheckedResult) -> Decoded<T, R>,
    check: impl FnOnce(&[(T, R)]) -> Result<Vec<Result<(), ProverError>>, ProverError>,
) -> Vec<Result<(), ProverError>> {
    let (mut decoded, mut verdicts) = (Vec::new(), Vec::new());
    for result in results {
        match decode(result) {
            Ok(pair) => {
                decoded.push(pair);
                verdicts.push(None);
            }
            Err(error) => verdicts.push(Some(Err(error))),
        }
    }
    let count = decoded.len();
    let checked = check(&decoded).unwrap_or_else(|error| vec![Err(error); count]);
    let mut checked = checked.into_iter();
    let missing = || Err(ProverError::Retry("the check gave no verdict".to_owned()));
    let verdicts = verdicts.into_iter();
    verdicts
        .map(|of| of.unwrap_or_else(|| checked.next().unwrap_or_else(missing)))
        .collect()
}

/// The result as a worker sent it.
fn part_result(result: &UncheckedResult) -> Result<PartResult, ProverError> {
    let [(_, bytes)] = &result.outputs[..] else {
        return Err(ProverError::Permanent("it is not one message".to_owned()));
    };
    let found: PartResult = serde_json::from_slice(bytes).map_err(permanent)?;
    match found.job == result.task.id.block.to_string() {
        true => Ok(found),
        false => Err(ProverError::Permanent("it is of another job".to_owned())),
    }
}

fn require(found: &PartResult, part: usize, is_right: bool) -> Result<(), ProverError> {
    match found.part as usize == part && is_right {
        true => Ok(()),
        false => Err(ProverError::Permanent("it is of another part".to_owned())),
    }
}

/// The task's payload, which the coordinator made.
fn input(result: &UncheckedResult) -> Result<bytes::Bytes, ProverError> {
    result.input.to_program_input().map_err(ProverError::Retry)
}

/// A file can be mended: the task goes on once it is.
fn retry(failure: &Failure) -> ProverError {
    ProverError::Retry(failure.message().to_owned())
}

/// An error that is not the worker's.
fn ours(error: impl std::error::Error) -> ProverError {
    ProverError::Retry(error.to_string())
}
