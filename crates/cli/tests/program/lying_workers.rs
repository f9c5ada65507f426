//! Workers of a proof in parts that send false results, over a real server: each is named at once, and nobody else does
//! anything twice.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ark_bn254::{Fr, G1Projective};
use ark_ff::PrimeField;
use ark_std::UniformRand;
use ark_std::rand::rngs::OsRng;
use bytes::Bytes;
use proofmill_aggregation::Srs;
use proofmill_bus::{Connection, NatsOptions};
use proofmill_groth16::Bn254;
use proofmill_groth16::mirage::{Commitment, VerifyingKey};
use proofmill_nats_server::NatsServer;
use proofmill_orchestrator::cluster::{ProcessContext, run_dispatchers};
use proofmill_orchestrator::executor::{Context, Json, Prover, ProverError};
use proofmill_orchestrator::mill::Registry;
use proofmill_orchestrator::remote::Role;
use proofmill_orchestrator::shutdown;
use proofmill_partition::Partition;
use proofmill_partition::applications::Squarings;
use proofmill_partition::proof::distributed::{
    CommitTask, CommitmentKeys, Coordination, ProveTask, Worker,
};
use proofmill_partition::proof::{ClassKeys, Index, KeyForm};
use proofmill_workflow::{LocalHost, validate_file};
use serde_json::{Value, json};

use crate::partition::{VERIFY, squarings, workflow};
use crate::support::{PATIENCE, Running, eventually, finish, folder, proofmill, run};

const PARTS: usize = 24;

/// Longest time from a false answer until its worker is named.
const NAMED_WITHIN: Duration = Duration::from_secs(4);

/// What a worker sends instead of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    /// A commitment to nothing.
    RandomCommitment,
    /// The commitment of the part that it had before.
    OtherCommitment,
    /// The proof of the part that it had before, for a valid commitment.
    OtherProof,
    /// Its own part's number with another commitment in the message.
    OtherMessage,
    /// The proof of the same part for an earlier proof of the same witness.
    StaleProof,
    /// Nothing, for as long as it lives.
    NoAnswer,
}

/// The provers of a lying worker; it has the keys, and computes what it needs.
struct Liar {
    lie: Lie,
    keys: PathBuf,
    proves: bool,
    /// The first honest result, and the time of the first lie.
    before: &'static Mutex<(Option<Value>, Option<Instant>)>,
}

/// A prover of a stage that the liar does not work for.
struct Absent;

impl Prover for Absent {
    type Input = Bytes;
    type Output = Bytes;

    fn prove(&self, _: &Context, _: Bytes) -> Result<Bytes, ProverError> {
        Err(ProverError::Retry("not here".to_owned()))
    }
}

impl Liar {
    /// The honest result of a task.
    fn honest(&self, context: &Context, task: &[u8]) -> Value {
        let partition = Partition::<Fr>::load(&self.keys.join("partition")).expect("a partition");
        let job = context.first.to_string();
        if !self.proves {
            let task = CommitTask::<Bn254>::from_bytes(task).expect("a task");
            let keys = CommitmentKeys::read(&partition, &self.keys).expect("keys");
            let commitment = keys.commit(&partition, &task).expect("a commitment");
            let commitment = hex::encode(commitment.to_bytes());
            return json!({ "job": job, "part": task.part(), "commitment": commitment });
        }
        let keys = ClassKeys::<Bn254>::in_folder(self.keys.clone(), KeyForm::Plain);
        let worker = Worker {
            partition: &partition,
            keys: &keys,
        };
        let task = ProveTask::from_bytes(task).expect("a task");
        let blank = Squarings::blank(PARTS, 2, 1).expect("sizes");
        let proof = worker.prove(&blank, &task, &mut OsRng).expect("a proof");
        let commitment = hex::encode(task.commitment().to_bytes());
        json!({ "job": job, "part": task.part(), "commitment": commitment, "proof": hex::encode(proof.to_bytes()) })
    }
}

impl Liar {
    /// The proof of this part in another job of the same witness.
    fn stale_proof(&self, task: &[u8]) -> String {
        let part = ProveTask::<Bn254>::from_bytes(task).expect("a task").part();
        let partition = Partition::<Fr>::load(&self.keys.join("partition")).expect("a partition");
        let keys = ClassKeys::<Bn254>::in_folder(self.keys.clone(), KeyForm::Plain);
        let srs = Srs::load(&self.keys.join("string.srs")).expect("a string");
        let of_classes = (0..partition.classes().len()).map(|class| {
            let path = self.keys.join(format!("class-{class}.vk"));
            VerifyingKey::load(&path).expect("a key")
        });
        let index = Index::new(partition.clone(), of_classes.collect(), &srs).expect("an index");
        let circuit = Squarings::new(PARTS, 2, vec![Fr::from_be_bytes_mod_order(&[7; 32])]);
        let circuit = circuit.expect("a circuit");
        let earlier = Coordination::new(Arc::new(index), Arc::new(srs), circuit.clone(), &[1; 32]);
        let earlier = Arc::new(earlier.expect("traced"));
        let worker = Worker {
            partition: &partition,
            keys: &keys,
        };
        let to_commit = CommitmentKeys::read(&partition, &self.keys).expect("keys");
        let commitments = (0..PARTS).map(|part| {
            let task = earlier.commit_task(part).expect("a task");
            to_commit.commit(&partition, &task).expect("a commitment")
        });
        let challenged = earlier
            .challenge(commitments.collect())
            .expect("challenged");
        let task = challenged.prove_task(part).expect("a task");
        let proof = worker.prove(&circuit, &task, &mut OsRng).expect("a proof");
        hex::encode(proof.to_bytes())
    }
}

impl Prover for Liar {
    type Input = Bytes;
    type Output = Json<Value>;

    fn prove(&self, context: &Context, task: Bytes) -> Result<Json<Value>, ProverError> {
        if self.lie == Lie::NoAnswer {
            self.before.lock().expect("no panic").1 = Some(Instant::now());
            std::thread::sleep(PATIENCE);
        }
        let mut result = self.honest(context, &task);
        let mut before = self.before.lock().expect("no panic");
        let random = || {
            let point = (G1Projective::rand(&mut OsRng)).into();
            hex::encode(Commitment::<Bn254> { point }.to_bytes())
        };
        let first = before.0.clone();
        let lied = match (self.lie, self.proves, first) {
            (Lie::RandomCommitment, false, _) | (Lie::OtherMessage, true, _) => {
                result["commitment"] = random().into();
                true
            }
            (Lie::OtherCommitment, false, Some(first)) => {
                result["commitment"] = first["commitment"].clone();
                true
            }
            (Lie::OtherProof, true, Some(first)) => {
                result["proof"] = first["proof"].clone();
                true
            }
            (Lie::StaleProof, true, _) => {
                result["proof"] = self.stale_proof(&task).into();
                true
            }
            (lie, proves, None) => {
                if proves == (lie == Lie::OtherProof) {
                    before.0 = Some(result.clone());
                }
                false
            }
            _ => false,
        };
        if lied {
            before.1.get_or_insert_with(Instant::now);
        }
        Ok(Json(result))
    }
}

/// Runs a lying worker on the bus until the returned trigger is raised or dropped.
fn start_liar(
    here: &Path,
    url: &str,
    lie: Lie,
    before: &'static Mutex<(Option<Value>, Option<Instant>)>,
) -> (tokio::runtime::Runtime, shutdown::Trigger) {
    let mut registry = Registry::default();
    for name in [
        "partition.trace",
        "partition.challenge",
        "partition.aggregate",
    ] {
        registry.prover(name, |_| Ok(Absent));
    }
    for (name, proves) in [("partition.commit", false), ("partition.prove", true)] {
        let keys = here.join("keys");
        registry.prover(name, move |_| {
            Ok(Liar {
                lie,
                keys: keys.clone(),
                proves,
                before,
            })
        });
    }
    let host = LocalHost::new(registry.prover_names())
        .with_emission_checks(["partition.aggregate"])
        .with_result_checks(["partition.commit", "partition.prove"]);
    let (workflow, _) = validate_file(&here.join("parts.toml"), &host).expect("a workflow");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let (trigger, stopping) = shutdown::channel();
    let (url, state) = (url.to_owned(), here.join("liar"));
    runtime.spawn(async move {
        let options = NatsOptions {
            membership: Role::Dispatcher.membership(),
            connect_timeout: PATIENCE,
            ..NatsOptions::new(&url)
        };
        let connection = Connection::open(options).await.expect("the bus");
        let context = ProcessContext::open(connection, &workflow, registry, state, "mallory");
        let context = context.await.expect("a process");
        let stages = BTreeSet::from(["commit".to_owned(), "prove".to_owned()]);
        let ran = run_dispatchers(context, stages, BTreeMap::new(), stopping).await;
        ran.expect("it ends with its shutdown");
    });
    (runtime, trigger)
}

/// Runs the scenario again where the name comes late: a machine that stalls delays it once, a slow product each time.
fn a_lie_is_named(lie: Lie) {
    let mut took = Vec::new();
    while took.len() < 2 {
        match time_until_named(lie) {
            Some(late) if late >= NAMED_WITHIN => took.push(late),
            _ => return,
        }
    }
    panic!("{lie:?}: named after {took:?}");
}

/// Runs a lying worker and honest ones to the proof. Returns the time from the first lie until its worker was named, if
/// there was an answer to name it for.
fn time_until_named(lie: Lie) -> Option<Duration> {
    let server = NatsServer::start();
    let folder = folder();
    let here = folder.path();
    squarings(here, PARTS);
    workflow(here);
    let with_bus = |args: &[&str]| {
        let mut command = proofmill(here);
        command.env("PROOFMILL_BUS", server.url()).args(args);
        command
    };
    let status = || {
        let told = finish(&mut with_bus(&[
            "status",
            "--workflow",
            "partition",
            "--json",
        ]));
        (told.code == Some(0)).then(|| told.json())
    };
    let start = |args: &[&str]| Running::start(&mut with_bus(args));
    let _coordinator = start(&["coordinator", "parts.toml"]);
    // The liar comes first, so that it gets tasks of both steps.
    let before: &'static Mutex<_> = Box::leak(Box::new(Mutex::new((None, None))));
    let (runtime, trigger) = start_liar(here, &server.url(), lie, before);
    eventually("the liar", || {
        (status()?["workers"].as_u64()? > 0).then_some(())
    });
    let _source = start(&["source", "parts.toml"]);
    let _sequencer = start(&["sequencer", "parts.toml"]);
    let trusted = [
        "dispatcher",
        "parts.toml",
        "--stage",
        "trace",
        "--stage",
        "challenge",
        "--stage",
        "aggregate",
    ];
    let _own = start(&trusted);
    let worker = [
        "dispatcher",
        "parts.toml",
        "--stage",
        "commit",
        "--stage",
        "prove",
    ];
    // Until the liar has lied, it is alone with its step: it may wait long for its turn of the processor.
    let workers: Vec<Running> = match lie {
        Lie::RandomCommitment | Lie::OtherCommitment => Vec::new(),
        Lie::OtherProof | Lie::OtherMessage | Lie::StaleProof => vec![start(&worker[..4])],
        Lie::NoAnswer => Vec::new(),
    };
    let took = if lie == Lie::NoAnswer {
        eventually("its task", || before.lock().expect("no panic").1);
        None
    } else {
        let named = eventually("the liar's name", || {
            let status = status()?;
            let distrusted = status["distrusted"].as_array()?.first()?.clone();
            Some((distrusted, Instant::now()))
        });
        let (distrusted, at) = named;
        assert_eq!(distrusted["user"], "parts.mallory", "{lie:?}: {distrusted}");
        let lied = before.lock().expect("no panic").1.expect("it has lied");
        Some(at.saturating_duration_since(lied))
    };
    let _honest: Vec<Running> = (0..3).map(|_| start(&worker)).collect();
    eventually("the proof", || here.join("proof").exists().then_some(()));
    run(here, VERIFY).succeeded();
    let status = eventually("an answer", status);
    for stage in status["stages"].as_array().expect("stages") {
        let counters = &stage["counters"];
        if matches!(stage["stage"].as_str(), Some("commit" | "prove")) {
            assert_eq!(counters["completed"], PARTS, "{lie:?}: {stage}");
            assert!(counters["failed"].as_u64() <= Some(1), "{lie:?}: {stage}");
        }
    }
    drop((workers, trigger));
    runtime.shutdown_background();
    took
}

#[test]
fn a_worker_that_sends_a_random_commitment_is_named() {
    a_lie_is_named(Lie::RandomCommitment);
}

#[test]
fn a_worker_that_sends_another_parts_commitment_is_named() {
    a_lie_is_named(Lie::OtherCommitment);
}

#[test]
fn a_worker_that_sends_another_parts_proof_is_named() {
    a_lie_is_named(Lie::OtherProof);
}

#[test]
fn a_worker_that_sends_a_proof_for_another_commitment_is_named() {
    a_lie_is_named(Lie::OtherMessage);
}

#[test]
fn a_worker_that_sends_a_stale_proof_is_named() {
    a_lie_is_named(Lie::StaleProof);
}

/// Its parts go to others after a while; there is no answer to name it for.
#[test]
fn a_worker_that_does_not_answer_holds_nobody_up() {
    a_lie_is_named(Lie::NoAnswer);
}
