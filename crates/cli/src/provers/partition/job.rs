//! A job: the witness of a circuit in parts, and the coordinator's steps of its proof.

use proofmill_partition::with_partition_curve;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use proofmill_groth16::mirage::Commitment;
use proofmill_groth16::snarkjs::inputs_to_json;
use proofmill_orchestrator::executor::ProverError;
use proofmill_partition::proof::distributed::{ChallengedProof, Coordination, ProvedParts};
use proofmill_partition::proof::{PartitionCurve, PartitionProof, VerifyingKey};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use zeroize::Zeroizing;

use super::messages::{PartResult, WholeProof, bytes_of};
use super::shards::Leaders;
use super::shared::Shared;
use crate::circuit_folder::{AnyCircuit, Folder};
use crate::failure::Failure;
use crate::files::{read, write_together};

/// Largest file of a job, in bytes.
const JOB_BYTES_MAX: usize = 1 << 16;

/// The file that describes a job. It is secret: with the proof, the seed would reveal the witness.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Job {
    /// Folder with the keys.
    pub(crate) keys: PathBuf,
    /// File with the witness.
    pub(crate) witness: PathBuf,
    /// Path of the proof.
    pub(crate) proof: PathBuf,
    /// Path of the public inputs.
    pub(crate) public: PathBuf,
    /// Seed of the proof's randomness, 32 bytes, hexadecimal.
    pub(crate) seed: String,
}

/// The steps of jobs by the paths of their files: the stages of a process trace a job's circuit once.
pub(super) type Jobs = Shared<PathBuf, Arc<dyn JobSteps>>;

/// The path of a job's file, and its steps once it is read.
pub(super) struct JobFile {
    path: PathBuf,
    jobs: Arc<Jobs>,
}

/// The coordinator's steps of one job, over any curve. Everything that processes exchange is bytes.
pub(super) trait JobSteps: Send + Sync {
    /// The number of parts.
    fn parts(&self) -> usize;

    /// The task of committing to each part.
    fn commit_tasks(&self) -> Result<Vec<Bytes>, ProverError>;

    /// The task of proving each part, from the commitments to all parts.
    fn prove_tasks(&self, commitments: &[PartResult]) -> Result<Vec<Bytes>, ProverError>;

    /// The proof of all parts, from theirs, also in the job's files. Workers that `leaders` lead make it, if they can.
    fn aggregate(
        &self,
        proofs: &[PartResult],
        leaders: Option<&Leaders>,
    ) -> Result<WholeProof, ProverError>;

    /// Verifies a whole proof.
    fn verify(&self, proof: &WholeProof) -> Result<(), ProverError>;
}

/// A job over one curve, after its trace.
struct TracedJob<E: PartitionCurve> {
    job: Job,
    coordination: Arc<Coordination<E, AnyCircuit<E::ScalarField>>>,
}

// === impl JobFile ===

impl JobFile {
    /// The job that a stage's parameters name.
    pub(super) fn of(params: &Value, jobs: &Arc<Jobs>) -> Result<Self, String> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Params {
            job: PathBuf,
        }
        let params = Params::deserialize(params).map_err(|error| error.to_string())?;
        Ok(Self {
            path: params.job,
            jobs: Arc::clone(jobs),
        })
    }

    /// The job's steps. Reads the keys and traces the circuit at the process's first call.
    pub(super) fn steps(&self) -> Result<Arc<dyn JobSteps>, ProverError> {
        let open = || open(&self.path).map_err(|failure| retry(&self.path, &failure));
        self.jobs.get(&self.path, open)
    }
}

/// A file can be mended: the job goes on once it is.
fn retry(path: &Path, failure: &Failure) -> ProverError {
    ProverError::Retry(format!("job {}: {}", path.display(), failure.message()))
}

fn open(path: &Path) -> Result<Arc<dyn JobSteps>, Failure> {
    let bytes = read(path, JOB_BYTES_MAX).map_err(Failure::new)?;
    let bytes = Zeroizing::new(bytes);
    let job: Job = serde_json::from_slice(&bytes)?;
    let seed = Zeroizing::new(hex::decode(&job.seed).unwrap_or_default());
    let seed: Zeroizing<[u8; 32]> = Zeroizing::new(
        seed[..]
            .try_into()
            .map_err(|_| Failure::new("its seed is not 32 bytes in hexadecimal"))?,
    );
    let folder = Folder::at(&job.keys);
    let description = folder.description()?;
    let witness = description.circuit.read_witness(&job.witness)?;
    let curve = description.curve()?;
    with_partition_curve!(curve, E => {
        let (index, srs) = folder.index::<E>(folder.partition()?)?;
        let circuit = description.circuit.with_witness(&folder, &witness)?;
        let coordination = Coordination::new(Arc::new(index), Arc::new(srs), circuit, &seed)?;
        let steps: Arc<dyn JobSteps> = Arc::new(TracedJob::<E> {
            job,
            coordination: Arc::new(coordination),
        });
        Ok(steps)
    })?
}

// === impl TracedJob ===

impl<E: PartitionCurve> TracedJob<E> {
    fn challenge(
        &self,
        results: &[PartResult],
    ) -> Result<ChallengedProof<E, AnyCircuit<E::ScalarField>>, ProverError> {
        let commitments = results.iter().map(|result| {
            let bytes = bytes_of("commitment", &result.commitment)?;
            Commitment::from_bytes(&bytes).map_err(permanent)
        });
        let commitments = commitments.collect::<Result<Vec<_>, _>>()?;
        self.coordination.challenge(commitments).map_err(permanent)
    }

    fn tasks(
        &self,
        task: impl Fn(usize) -> Result<Vec<u8>, ProverError>,
    ) -> Result<Vec<Bytes>, ProverError> {
        (0..self.parts())
            .map(|part| task(part).map(Bytes::from))
            .collect()
    }
}

impl<E: PartitionCurve> JobSteps for TracedJob<E> {
    fn parts(&self) -> usize {
        self.coordination.num_parts()
    }

    fn commit_tasks(&self) -> Result<Vec<Bytes>, ProverError> {
        self.tasks(|part| {
            let task = self.coordination.commit_task(part).map_err(permanent)?;
            Ok(task.to_bytes())
        })
    }

    fn prove_tasks(&self, commitments: &[PartResult]) -> Result<Vec<Bytes>, ProverError> {
        let challenged = self.challenge(commitments)?;
        self.tasks(|part| {
            let task = challenged.prove_task(part).map_err(permanent)?;
            Ok(task.to_bytes())
        })
    }

    fn aggregate(
        &self,
        proofs: &[PartResult],
        leaders: Option<&Leaders>,
    ) -> Result<WholeProof, ProverError> {
        let challenged = self.challenge(proofs)?;
        let encoded = proofs.iter().map(PartResult::proved_bytes);
        let encoded = encoded.collect::<Result<Vec<_>, _>>()?;
        let parts = ProvedParts::<E>::from_bytes(&encoded.concat()).map_err(permanent)?;
        let proof = challenged.aggregate_by(|index, srs, statement| {
            let by_workers =
                leaders.and_then(|leaders| leaders.aggregate(index, srs, statement, &encoded));
            by_workers.map_or_else(
                || {
                    index
                        .parts()
                        .aggregate(srs, statement, parts.proofs(), parts.d())
                },
                Ok,
            )
        });
        let proof = proof.map_err(permanent)?;
        let inputs = self.coordination.public_inputs();
        let (encoded, public) = (proof.to_bytes(), inputs_to_json(inputs));
        let files: [(&Path, &[u8]); 2] = [
            (&self.job.public, public.as_bytes()),
            (&self.job.proof, &encoded),
        ];
        write_together(&files)
            .map_err(|failure| ProverError::Retry(failure.message().to_owned()))?;
        Ok(WholeProof {
            public: inputs.iter().map(ToString::to_string).collect(),
            proof: hex::encode(encoded),
        })
    }

    fn verify(&self, proof: &WholeProof) -> Result<(), ProverError> {
        let inputs = self.coordination.public_inputs();
        let shown = inputs.iter().map(ToString::to_string);
        if !shown.eq(proof.public.iter().cloned()) {
            let why = "it is of other public inputs than the job's";
            return Err(ProverError::Permanent(why.to_owned()));
        }
        let key: &VerifyingKey<E> = self.coordination.index().verifying_key();
        let proof = PartitionProof::from_bytes(&bytes_of("proof", &proof.proof)?);
        let proof = proof.map_err(permanent)?;
        key.verify(inputs, &proof).map_err(permanent)
    }
}

/// An error that another attempt would meet again.
pub(super) fn permanent(error: impl std::error::Error) -> ProverError {
    ProverError::Permanent(error.to_string())
}
