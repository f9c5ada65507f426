//! Verification: emitted results have been verified against the submitted messages, and are checked again at
//! the sink.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use proofmill_orchestrator::executor::{Context, Produced, Prover, ProverError};
use proofmill_orchestrator::mill::{Mill, MillError, Options, Registry};
use proofmill_orchestrator::payload::Encoding;
use proofmill_orchestrator::shutdown;
use proofmill_orchestrator::sink::{EmissionCheck, Emitted, VerifiedResult};
use proofmill_orchestrator::source::{self, SourceMessage};
use proofmill_orchestrator::{conversation::Uniqueness, id::Part};
use proofmill_workflow::{LocalHost, Workflow, render, validate};
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;

use crate::support::PATIENCE;

const WORKFLOW: &str = r#"
    name = "verified"
    [[source]]
    name = "blocks"
    kind = "range"
    end = 7
    output = "blocks"
    [[dispatcher]]
    name = "prove"
    input = "blocks"
    output = "proofs"
    workers = 2
    executor = { kind = "native", prover = "copy" }
    [[dispatcher]]
    name = "verify"
    input = "proofs"
    output = "verified"
    verify = true
    executor = { kind = "native", prover = "judge" }
    [[collector]]
    name = "gather"
    inputs = ["verified"]
    output = "groups"
    strategy = { kind = "sequential", n = 2 }
    [sequencer]
    input = "groups"
"#;

/// A verifier for "proofs" that are copies of their input: it returns the proof's digest as JSON, if that is
/// the digest of its origin.
struct Judge;

/// A prover that returns its input, except for one block, where it returns a false result.
struct Worker {
    lies_at: Option<u64>,
    /// Whether it returns a digest as JSON, as the judge does.
    judges: bool,
}

fn digest(bytes: &[u8]) -> Bytes {
    format!("\"{}\"", hex::encode(Sha256::digest(bytes))).into()
}

impl Prover for Judge {
    type Input = Bytes;
    type Output = Produced;

    fn prove(&self, context: &Context, input: Bytes) -> Result<Produced, ProverError> {
        let origin = context.origin()?;
        let found: [u8; 32] = Sha256::digest(&input).into();
        assert_eq!((origin.first, origin.last), (context.first, context.last));
        match found == origin.digest {
            true => Ok(Produced::One(Encoding::Json, digest(&input))),
            false => Err(ProverError::Permanent("it is of something else".into())),
        }
    }
}

impl EmissionCheck for Judge {
    fn check(&self, passed: &[VerifiedResult]) -> Vec<Result<(), ProverError>> {
        let verdict = |one: &VerifiedResult| {
            let expected = format!("\"{}\"", hex::encode(one.origin.digest));
            match one.bytes == expected {
                true => Ok(()),
                false => Err(ProverError::Permanent("it is of something else".into())),
            }
        };
        passed.iter().map(verdict).collect()
    }
}

impl Prover for Worker {
    type Input = Bytes;
    type Output = Produced;

    fn prove(&self, context: &Context, input: Bytes) -> Result<Produced, ProverError> {
        let input = match self.lies_at == Some(context.first) {
            true => Bytes::from_static(b"{\"block\":99}"),
            false => input,
        };
        let bytes = match self.judges {
            true => digest(&input),
            false => input,
        };
        Ok(Produced::One(Encoding::Json, bytes))
    }
}

/// Provers of which each returns a false result for one block, or none.
fn registry(prover_lies_at: Option<u64>, verifier_lies_at: Option<u64>) -> Registry {
    let mut registry = Registry::default();
    registry.prover("copy", move |_| {
        Ok(Worker {
            lies_at: prover_lies_at,
            judges: false,
        })
    });
    registry.verifier("judge", |_| Ok(Judge));
    if verifier_lies_at.is_some() {
        // The check at the sink is independent of this prover.
        registry.prover("judge", move |_| {
            Ok(Worker {
                lies_at: verifier_lies_at,
                judges: true,
            })
        });
    }
    registry
}

fn workflow(text: &str) -> Workflow {
    let host = LocalHost::new(["copy", "judge"]).with_emission_checks(["judge"]);
    match validate(text, Path::new("test.toml"), &host) {
        Ok((workflow, _)) => workflow,
        Err(faults) => panic!("{}", render(&faults)),
    }
}

async fn open(text: &str, registry: Registry, state: &Path) -> (Mill, mpsc::Receiver<Emitted>) {
    let (stream, emitted) = mpsc::channel(64);
    let options = Options {
        bus: crate::bus(state).await,
        stream: Some(stream),
        ..Options::in_directory(state)
    };
    let mill = Mill::open(&workflow(text), registry, options).await;
    (mill.expect("a mill"), emitted)
}

/// Runs a mill until it ends by itself. Returns the number of dead letters, and the first blocks of the
/// emitted messages.
async fn run(
    mill: Mill,
    mut emitted: mpsc::Receiver<Emitted>,
) -> (Result<usize, MillError>, Vec<u64>) {
    let (_trigger, shutdown) = shutdown::channel();
    let ran = tokio::time::timeout(PATIENCE, mill.run(shutdown)).await;
    let ran = ran.expect("it ends").map(|summary| summary.status.dead);
    let mut left = Vec::new();
    while let Some(emitted) = emitted.recv().await {
        left.push(emitted.first);
    }
    (ran, left)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_verified_leaves_and_a_provers_lie_is_a_dead_letter() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let (mill, emitted) = open(WORKFLOW, registry(None, None), dir.path()).await;
    let (ran, left) = run(mill, emitted).await;
    assert_eq!(ran.expect("it comes to its end"), 0);
    assert_eq!(left, [0, 2, 4, 6]);

    let dir = tempfile::tempdir().expect("temporary directory");
    let (mill, emitted) = open(WORKFLOW, registry(Some(5), None), dir.path()).await;
    let (ran, left) = run(mill, emitted).await;
    assert_eq!(ran.expect("nothing more can be done"), 1, "a dead letter");
    assert_eq!(left, [0, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verifiers_lie_in_a_group_stops_the_emission_and_trust_lets_it_pass() {
    let dir = tempfile::tempdir().expect("temporary directory");
    // The second run, after a restart, changes nothing.
    for expected in [vec![0, 2], vec![]] {
        let (mill, emitted) = open(WORKFLOW, registry(None, Some(5)), dir.path()).await;
        let (ran, left) = run(mill, emitted).await;
        let Err(MillError::Refused(refused)) = ran else {
            panic!("{ran:?}");
        };
        assert_eq!((refused.first, refused.last), (4, 5));
        assert!(
            refused.why.starts_with("stage \"verify\" has passed"),
            "{refused}"
        );
        assert_eq!(left, expected);
    }

    let dir = tempfile::tempdir().expect("temporary directory");
    let trusting = format!("trust_verifiers = true\n{WORKFLOW}");
    let (mill, emitted) = open(&trusting, registry(None, Some(5)), dir.path()).await;
    let (ran, left) = run(mill, emitted).await;
    ran.expect("it comes to its end");
    assert_eq!(left, [0, 2, 4, 6]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_submitted_behind_the_verifiers_does_not_leave() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let text = WORKFLOW.replace("kind = \"range\"\n    end = 7", "kind = \"submit\"");
    let (mill, emitted) = open(&text, registry(None, None), dir.path()).await;
    for block in 0..2 {
        let message = SourceMessage {
            first: block,
            last: block,
            part: Part::whole(),
            encoding: Encoding::Json,
            bytes: Bytes::from_static(b"\"a lie\""),
            needs: None,
            uniqueness: Uniqueness::Multiple,
            next: 0,
            caller: None,
        };
        let queue = mill
            .handle()
            .plan()
            .queue_named("verified")
            .expect("a queue");
        let (handle, blobs) = (mill.handle(), Arc::clone(mill.blobs()));
        let submitted =
            source::submit(&handle.source(), &blobs, &"client".into(), queue, message).await;
        submitted.expect("an answer");
    }
    let (ran, left) = run(mill, emitted).await;
    let Err(MillError::Refused(refused)) = ran else {
        panic!("{ran:?}");
    };
    assert_eq!(refused.first, 0);
    assert!(
        refused.why.contains("no verifying stage has passed it"),
        "{refused}"
    );
    assert_eq!(left, [] as [u64; 0]);
}
