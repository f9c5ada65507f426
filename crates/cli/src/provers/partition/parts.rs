//! The keys of parts, with which workers commit and prove, and the coordinator checks.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use ark_std::rand::rngs::OsRng;
use proofmill_groth16::mirage::Commitment;
use proofmill_groth16::{Proof, with_curve};
use proofmill_orchestrator::coordinator::UncheckedResult;
use proofmill_orchestrator::executor::ProverError;
use proofmill_partition::Partition;
use proofmill_partition::proof::distributed::{Checker, CommitTask, ProveTask, Worker};
use proofmill_partition::proof::{ClassKeys, Index, KeyForm, PartitionCurve};
use serde::Deserialize;
use serde_json::Value;

use super::job::permanent;
use super::messages::{PartResult, bytes_of};
use super::shared::Shared;
use crate::circuit_folder::{AnyCircuit, CircuitSizes, Folder};
use crate::failure::Failure;

/// Keys by their folder and the digest of their partition: the stages of a process load a folder's keys once.
pub(super) type LoadedKeys = Shared<(PathBuf, String), Arc<dyn PartWork>>;

/// The keys that a stage's parameters name; they are read when first needed.
pub(super) struct WorkerKeys {
    /// The folder, and the digest of the partition that the keys must be of, hexadecimal.
    name: (PathBuf, String),
    loaded: Arc<LoadedKeys>,
}

/// Work on parts, over any curve. Everything that processes exchange is bytes.
pub(super) trait PartWork: Send + Sync {
    /// Commits to a part.
    fn commit(&self, job: String, task: &[u8]) -> Result<PartResult, ProverError>;

    /// Proves a part.
    fn prove(&self, job: String, task: &[u8]) -> Result<PartResult, ProverError>;

    /// Checks commitments, one verdict for each.
    fn check_commitments(&self, results: &[UncheckedResult]) -> Vec<Result<(), ProverError>>;

    /// Checks proofs, one verdict for each.
    fn check_proofs(&self, results: &[UncheckedResult]) -> Vec<Result<(), ProverError>>;
}

/// Keys over one curve.
struct Parts<E: PartitionCurve> {
    folder: Folder,
    partition: Partition<E::ScalarField>,
    keys: ClassKeys<E>,
    blank: AnyCircuit<E::ScalarField>,
    /// What checks need besides, once there was one.
    index: OnceLock<Index<E>>,
}

/// A decoded result with its task, or the fault of the result.
type Decoded<T, R> = Result<(T, R), ProverError>;

// === impl WorkerKeys ===

impl WorkerKeys {
    /// The keys that a stage's parameters name.
    pub(super) fn of(params: &Value, loaded: &Arc<LoadedKeys>) -> Result<Self, String> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Params {
            keys: PathBuf,
            partition: String,
        }
        let params = Params::deserialize(params).map_err(|error| error.to_string())?;
        Ok(Self {
            name: (params.keys, params.partition),
            loaded: Arc::clone(loaded),
        })
    }

    /// The work that the keys allow. Reads them at the process's first call.
    pub(super) fn work(&self) -> Result<Arc<dyn PartWork>, ProverError> {
        let (folder, partition) = &self.name;
        self.loaded.get(&self.name, || {
            open(folder, partition).map_err(|failure| {
                let (folder, why) = (folder.display(), failure.message());
                ProverError::Retry(format!("keys {folder}: {why}"))
            })
        })
    }
}

fn open(path: &Path, expected: &str) -> Result<Arc<dyn PartWork>, Failure> {
    let folder = Folder::at(path);
    let description = folder.description()?;
    let curve = description.curve()?;
    with_curve!(curve, E => parts::<E>(folder, &description.circuit, expected))
}

fn parts<E: PartitionCurve>(
    folder: Folder,
    circuit: &CircuitSizes,
    expected: &str,
) -> Result<Arc<dyn PartWork>, Failure> {
    let partition = folder.partition::<E::ScalarField>()?;
    let found = hex::encode(partition.digest());
    if found != expected {
        return Err(Failure::new(format!(
            "they are of partition {found}, the workflow of {expected}"
        ))
        .help("copy the folder that `proofmill partition setup` made to every machine"));
    }
    let keys = ClassKeys::in_folder(folder.path().to_owned(), KeyForm::Plain);
    let held = keys.read_all(&partition)?;
    Ok(Arc::new(Parts::<E> {
        blank: circuit.without_witness(&folder)?,
        folder,
        keys: held,
        partition,
        index: OnceLock::new(),
    }))
}

// === impl Parts ===

impl<E: PartitionCurve> Parts<E> {
    const fn worker(&self) -> Worker<'_, E> {
        Worker {
            partition: &self.partition,
            keys: &self.keys,
        }
    }

    fn checker(&self) -> Result<Checker<'_, E>, ProverError> {
        let index = match self.index.get() {
            Some(index) => index,
            None => {
                let made = self.folder.index::<E>(self.partition.clone());
                let (index, _) =
                    made.map_err(|why| ProverError::Retry(why.message().to_owned()))?;
                self.index.get_or_init(|| index)
            }
        };
        Ok(Checker {
            index,
            keys: &self.keys,
        })
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
    fn commit(&self, job: String, task: &[u8]) -> Result<PartResult, ProverError> {
        let task = CommitTask::from_bytes(task).map_err(permanent)?;
        let commitment = self.worker().commit(&task).map_err(permanent)?;
        Ok(PartResult {
            job,
            part: task.part() as u32,
            commitment: hex::encode(commitment.to_bytes()),
            proof: None,
        })
    }

    fn prove(&self, job: String, task: &[u8]) -> Result<PartResult, ProverError> {
        let task = ProveTask::from_bytes(task).map_err(permanent)?;
        let proof = self.worker().prove(&self.blank, &task, &mut OsRng);
        Ok(PartResult {
            job,
            part: task.part() as u32,
            commitment: hex::encode(task.commitment().to_bytes()),
            proof: Some(hex::encode(proof.map_err(permanent)?.to_bytes())),
        })
    }

    fn check_commitments(&self, results: &[UncheckedResult]) -> Vec<Result<(), ProverError>> {
        verdicts(results, Self::commitment, |decoded| {
            let verdicts = self.checker()?.check_commitments(decoded, &mut OsRng);
            let verdicts = verdicts.map_err(ours)?;
            Ok(verdicts
                .into_iter()
                .map(|of| of.map_err(permanent))
                .collect())
        })
    }

    fn check_proofs(&self, results: &[UncheckedResult]) -> Vec<Result<(), ProverError>> {
        verdicts(results, Self::proof, |decoded| {
            let verdicts = self.checker()?.check_proofs(decoded, &mut OsRng);
            Ok(verdicts
                .into_iter()
                .map(|of| of.map_err(permanent))
                .collect())
        })
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

/// An error that is not the worker's.
fn ours(error: impl std::error::Error) -> ProverError {
    ProverError::Retry(error.to_string())
}
