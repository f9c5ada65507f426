//! `bitcoin.prove` by a proving engine in this process.

use std::io::Cursor;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, join_all};
use proofmill_api::engine::in_process_endpoint;
use proofmill_bitcoin::Header;
use proofmill_bitcoin::{ChunkProof, ChunkTimings, Proof, chunk_statement, chunk_witness};
use proofmill_engine::{
    CircuitSource, Error, Generator, Handle, Options, Registration, Secret, Service,
    WitnessGenerator,
};
use proofmill_groth16::ProvingKeyInfo;
use proofmill_groth16::snarkjs::{CheckedKeyStore, proof_from_json};
use proofmill_orchestrator::executor::engine::{
    EngineJob, JobInput, RouteError, Router, failure, request_id, stopped,
};
use proofmill_orchestrator::executor::{Execution, Executor, Product, ProverError, Unfinished};
use proofmill_orchestrator::mill::Registry;
use proofmill_orchestrator::payload::Encoding;
use proofmill_orchestrator::record::Failure as Failed;
use proofmill_orchestrator::shutdown::{self, Level, Trigger};
use proofmill_r1cs::iden3::write_wtns;
use proofmill_workflow::EnginePriority;
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;

use super::bitcoin::{KeyFiles, OnProverEvent, ProverEvent, name_header};
use super::chunk::{ProvenChunk, split_headers};
use crate::failure::Failure;

/// Name of the engine's witness generator for headers.
const GENERATOR: &str = "bitcoin.headers";

/// Longest wait for the engine to report its circuit; it may answer slowly while it proves.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);

/// An engine for chunks of up to `slots` headers, usable once it is started.
#[derive(Clone)]
pub(crate) struct ChunkEngine {
    workflow: &'static str,
    slots: usize,
    started: Arc<OnceLock<Started>>,
}

/// The engine's circuit, and the router to it.
struct Started {
    circuit: String,
    router: Router,
}

/// A running engine.
pub(crate) struct RunningEngine {
    handle: Handle,
    trigger: Trigger,
    running: JoinHandle<Result<(), Error>>,
}

/// The executor of `bitcoin.prove` that uses the engine.
struct Prove {
    engine: ChunkEngine,
    on_event: OnProverEvent,
}

/// Input of the engine's generator, as JSON.
#[derive(Serialize, Deserialize)]
struct Inputs {
    /// The headers in hexadecimal, 80 bytes each.
    headers: String,
}

/// The engine's witness generator for headers.
struct HeaderWitness {
    slots: usize,
}

// === impl ChunkEngine ===

impl ChunkEngine {
    /// An engine for the tasks of `workflow`, not started yet.
    pub(crate) fn new(workflow: &'static str, slots: usize) -> Self {
        Self {
            workflow,
            slots,
            started: Arc::default(),
        }
    }

    /// Registers the engine as the executor of `bitcoin.prove`.
    pub(crate) fn register(&self, registry: &mut Registry, on_event: OnProverEvent) {
        let engine = self.clone();
        registry.executor("bitcoin.prove", move |_, _| {
            Ok(Arc::new(Prove {
                engine: engine.clone(),
                on_event: on_event.clone(),
            }))
        });
    }

    /// Starts the engine, with `workers` proofs under way at once. Jobs and results are kept in `state`, so accepted
    /// jobs continue after a crash.
    pub(crate) async fn start(
        &self,
        state: PathBuf,
        files: KeyFiles,
        workers: usize,
        accept_loss: bool,
    ) -> Result<RunningEngine, Failure> {
        let checksum = ProvingKeyInfo::of(&files.key)?.checksum;
        let checked = state.join("checked-keys");
        // The keys in the key directory were made by this program; a matching checksum is enough.
        CheckedKeyStore::in_directory(&checked).remember(&checksum, &files.key)?;
        let generator = HeaderWitness { slots: self.slots };
        let generator = Generator::Native(Arc::new(generator));
        let options = Options {
            state_dir: Some(state),
            accept_loss,
            partition_workers: workers,
            generators: [(GENERATOR.to_owned(), generator)].into(),
            checked_keys: Some(checked),
            ..Options::default()
        };
        let (service, handle) = Service::open(options).await?;
        let (trigger, shutdown) = shutdown::channel();
        let running = RunningEngine {
            handle: handle.clone(),
            trigger,
            running: tokio::spawn(service.run(shutdown)),
        };
        // The name contains the key's checksum: another key is another circuit.
        let circuit = format!(
            "header-chain-{}-{}",
            self.slots,
            hex::encode(&checksum[..8])
        );
        let source = CircuitSource::System {
            constraints: files.constraints,
            key: files.key,
        };
        let registration = Registration {
            name: circuit.clone(),
            source,
        };
        handle.register(registration).await?;
        let router = Router::new(&circuit, vec![in_process_endpoint(handle)], ANSWER_TIME_MAX);
        // `start` is called only once.
        let _ = self.started.set(Started { circuit, router });
        Ok(running)
    }
}

// === impl RunningEngine ===

impl RunningEngine {
    /// The engine, to ask it.
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Stops the engine; waits for steps that are being computed.
    pub(crate) async fn end(self) -> Result<(), Failure> {
        self.trigger.raise(Level::Stop);
        Ok(self.running.await??)
    }
}

// === impl Prove ===

impl Prove {
    async fn run(&self, execution: Execution) -> Result<Product, Failed> {
        let began = Instant::now();
        let proven = self.prove(execution).await;
        let proven = proven.map_err(|error| failure(&error, began.elapsed()))?;
        Ok(Product {
            outputs: vec![(Encoding::Binary, proven.into())],
            fan_out: false,
            ran: began.elapsed(),
        })
    }

    async fn prove(&self, execution: Execution) -> Result<Vec<u8>, RouteError> {
        let not_started = || RouteError::Retry("the engine was not started".to_owned());
        let Started { circuit, router } = self.engine.started.get().ok_or_else(not_started)?;
        let Execution {
            task,
            input,
            trace,
            cancel,
            ..
        } = execution;
        let (first, last) = (task.id.block, task.last);
        let bytes = input.to_program_input().map_err(RouteError::Permanent)?;
        let headers = split_headers(&bytes).map_err(RouteError::Permanent)?;
        let statement = chunk_statement(self.engine.slots, &headers);
        let statement = statement.map_err(|error| match name_header(first, error) {
            ProverError::Permanent(why) => RouteError::Permanent(why),
            ProverError::Retry(why) => RouteError::Retry(why),
            ProverError::Machine(failure) => RouteError::Retry(failure.to_string()),
        })?;
        let unwritten = |error: serde_json::Error| RouteError::Permanent(error.to_string());
        let json = serde_json::to_vec(&Inputs {
            headers: hex::encode(&bytes),
        });
        let job = EngineJob {
            circuit: circuit.clone(),
            priority: EnginePriority::Normal,
            input: JobInput::Inputs {
                generator: GENERATOR.to_owned(),
                json: json.map_err(unwritten)?.into(),
            },
            trace,
        };
        let request = request_id(self.engine.workflow, &task.id, last, &job);
        (self.on_event)(ProverEvent::Proving { first, last });
        let began = Instant::now();
        let made = router.prove(&request, &job, stopped(&cancel, None));
        let made = made.await?;
        let unreadable =
            |error| RouteError::Retry(format!("the engine's proof is malformed: {error}"));
        let proof: Proof = proof_from_json(made.proof_json.as_bytes()).map_err(unreadable)?;
        (self.on_event)(ProverEvent::Proved {
            first,
            last,
            took: began.elapsed(),
        });
        let chunk = ChunkProof {
            statement,
            proof,
            timings: ChunkTimings::default(),
        };
        Ok(ProvenChunk::encode(&bytes, &chunk))
    }
}

impl Executor for Prove {
    fn execute(&self, batch: Vec<Execution>) -> BoxFuture<'_, Vec<Result<Product, Unfinished>>> {
        let run = |execution| async { self.run(execution).await.map_err(Unfinished::from) };
        Box::pin(join_all(batch.into_iter().map(run)))
    }
}

// === impl HeaderWitness ===

impl WitnessGenerator for HeaderWitness {
    fn generate(&self, inputs: &[u8]) -> Result<Secret, String> {
        let inputs: Inputs =
            serde_json::from_slice(inputs).map_err(|_| "the inputs are no headers".to_owned())?;
        let bytes = hex::decode(inputs.headers)
            .map_err(|_| "the headers are not hexadecimal".to_owned())?;
        let headers: Vec<Header> = split_headers(&bytes)?;
        let witness = chunk_witness(self.slots, &headers).map_err(|error| error.to_string())?;
        let file = write_wtns(Cursor::new(Vec::new()), witness.z());
        let file = file.map_err(|error| error.to_string())?;
        Ok(Secret::new(file.into_inner()))
    }
}
