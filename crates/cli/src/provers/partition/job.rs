//! A job: the witness of a circuit in parts, and the coordinator's steps of its proof.

use proofmill_partition::with_partition_curve;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ark_ec::pairing::Pairing;
use bytes::Bytes;
use proofmill_aggregation::Srs;
use proofmill_groth16::mirage::Commitment;
use proofmill_groth16::snarkjs::inputs_to_json;
use proofmill_orchestrator::executor::ProverError;
use proofmill_partition::PartitionedCircuit;
use proofmill_partition::proof::distributed::{ChallengedProof, Coordination, ProvedParts};
use proofmill_partition::proof::{Index, PartitionCurve, PartitionProof, VerifyingKey};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use zeroize::Zeroizing;

use super::messages::{PartResult, WholeProof, bytes_of};
use super::shards::Leaders;
use super::shared::Shared;
use crate::circuit_folder::{AnyCircuit, CircuitSizes, Folder};
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
    /// Reads the keys, unless they are read.
    fn prepare(&self) -> Result<(), ProverError>;

    /// The number of parts.
    fn parts(&self) -> Result<usize, ProverError>;

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

    /// Verifies a whole proof. The circuit is not traced for it.
    fn verify(&self, proof: &WholeProof) -> Result<(), ProverError>;
}

/// A job over one curve. What a step needs besides is read or made when the first step needs it.
struct OpenJob<E: PartitionCurve> {
    path: PathBuf,
    job: Job,
    seed: Zeroizing<[u8; 32]>,
    sizes: CircuitSizes,
    keys: Shared<(), Arc<JobKeys<E>>>,
    coordination: Shared<(), Arc<JobCoordination<E>>>,
    statement: Shared<(), Arc<Statement<E>>>,
}

type JobCoordination<E> = Coordination<E, JobCircuit<E>>;
type JobCircuit<E> = AnyCircuit<<E as Pairing>::ScalarField>;

/// The keys that tasks are made with, and the aggregate.
struct JobKeys<E: PartitionCurve> {
    index: Arc<Index<E>>,
    srs: Arc<Srs<E>>,
}

/// The verifying key and the public inputs of the whole proof.
struct Statement<E: PartitionCurve> {
    key: VerifyingKey<E>,
    public_inputs: Vec<E::ScalarField>,
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

    /// The job's steps. Reads the job at the process's first call.
    pub(super) fn steps(&self) -> Result<Arc<dyn JobSteps>, ProverError> {
        let open = || open(&self.path).map_err(|failure| retry(&self.path, &failure));
        self.jobs.get(&self.path, open)
    }

    /// Reads the job and the keys.
    pub(super) fn prepare(&self) -> Result<(), ProverError> {
        self.steps()?.prepare()
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
    let description = Folder::at(&job.keys).description()?;
    let opened = with_partition_curve!(description.curve()?, E => {
        let steps: Arc<dyn JobSteps> = Arc::new(OpenJob::<E> {
            path: path.to_owned(),
            job,
            seed,
            sizes: description.circuit,
            keys: Shared::default(),
            coordination: Shared::default(),
            statement: Shared::default(),
        });
        steps
    });
    Ok(opened?)
}

// === impl OpenJob ===

impl<E: PartitionCurve> OpenJob<E> {
    /// The keys, which are read at the first call.
    fn keys(&self) -> Result<Arc<JobKeys<E>>, ProverError> {
        let read = || {
            let folder = Folder::at(&self.job.keys);
            let (index, srs) = folder.index::<E>(folder.partition()?)?;
            let (index, srs) = (Arc::new(index), Arc::new(srs));
            Ok::<_, Failure>(Arc::new(JobKeys { index, srs }))
        };
        self.keys.get(&(), read).map_err(|why| self.retry(&why))
    }

    /// The coordination. Traces the circuit at the first call.
    fn coordination(&self) -> Result<Arc<JobCoordination<E>>, ProverError> {
        let keys = self.keys()?;
        let trace = || {
            let (index, srs) = (Arc::clone(&keys.index), Arc::clone(&keys.srs));
            let circuit = self.circuit()?;
            let coordination = Coordination::new(index, srs, circuit, &self.seed)?;
            let public_inputs = coordination.public_inputs().to_vec();
            let key = keys.index.verifying_key().clone();
            let statement = Arc::new(Statement { key, public_inputs });
            self.statement.get(&(), || Ok::<_, Failure>(statement))?;
            Ok::<_, Failure>(Arc::new(coordination))
        };
        self.coordination
            .get(&(), trace)
            .map_err(|why| self.retry(&why))
    }

    /// The verifying key and the public inputs. In a process that does not trace the circuit they are read at the first
    /// call.
    fn statement(&self) -> Result<Arc<Statement<E>>, ProverError> {
        let read = || {
            let key = Folder::at(&self.job.keys).verifying_key()?;
            let public_inputs = self.circuit()?.public_inputs();
            Ok::<_, Failure>(Arc::new(Statement { key, public_inputs }))
        };
        self.statement
            .get(&(), read)
            .map_err(|why| self.retry(&why))
    }

    /// The circuit with its witness.
    fn circuit(&self) -> Result<JobCircuit<E>, Failure> {
        let witness = self.sizes.read_witness(&self.job.witness)?;
        self.sizes
            .with_witness(&Folder::at(&self.job.keys), &witness)
    }

    fn retry(&self, failure: &Failure) -> ProverError {
        retry(&self.path, failure)
    }

    fn challenge(
        &self,
        results: &[PartResult],
    ) -> Result<ChallengedProof<E, JobCircuit<E>>, ProverError> {
        let commitments = results.iter().map(|result| {
            let bytes = bytes_of("commitment", &result.commitment)?;
            Commitment::from_bytes(&bytes).map_err(permanent)
        });
        let commitments = commitments.collect::<Result<Vec<_>, _>>()?;
        self.coordination()?
            .challenge(commitments)
            .map_err(permanent)
    }
}

/// A task for each of so many parts.
fn tasks(
    parts: usize,
    task: impl Fn(usize) -> Result<Vec<u8>, ProverError>,
) -> Result<Vec<Bytes>, ProverError> {
    (0..parts).map(|part| task(part).map(Bytes::from)).collect()
}

impl<E: PartitionCurve> JobSteps for OpenJob<E> {
    fn prepare(&self) -> Result<(), ProverError> {
        self.keys().map(drop)
    }

    fn parts(&self) -> Result<usize, ProverError> {
        Ok(self.keys()?.index.partition().num_parts())
    }

    fn commit_tasks(&self) -> Result<Vec<Bytes>, ProverError> {
        let coordination = self.coordination()?;
        tasks(coordination.num_parts(), |part| {
            let task = coordination.commit_task(part).map_err(permanent)?;
            Ok(task.to_bytes())
        })
    }

    fn prove_tasks(&self, commitments: &[PartResult]) -> Result<Vec<Bytes>, ProverError> {
        let challenged = self.challenge(commitments)?;
        tasks(commitments.len(), |part| {
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
        let inputs = &self.statement()?.public_inputs;
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
        let statement = self.statement()?;
        let inputs = &statement.public_inputs;
        let shown = inputs.iter().map(ToString::to_string);
        if !shown.eq(proof.public.iter().cloned()) {
            let why = "it is of other public inputs than the job's";
            return Err(ProverError::Permanent(why.to_owned()));
        }
        let proof = PartitionProof::from_bytes(&bytes_of("proof", &proof.proof)?);
        let proof = proof.map_err(permanent)?;
        statement.key.verify(inputs, &proof).map_err(permanent)
    }
}

/// An error that another attempt would meet again.
pub(super) fn permanent(error: impl std::error::Error) -> ProverError {
    ProverError::Permanent(error.to_string())
}
