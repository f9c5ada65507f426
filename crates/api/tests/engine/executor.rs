//! Tests of a dispatcher's tasks, proved by real engines over their sockets, and by one in this process.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use proofmill_api::engine::{endpoints, in_process_endpoint};
use proofmill_engine::{EventKind, JobState, Options, PipelineStage, Tier};
use proofmill_groth16::Bn254;
use proofmill_groth16::snarkjs::{inputs_from_json, proof_from_json};
use proofmill_orchestrator::executor::engine::{Endpoint, EngineExecutor};
use proofmill_orchestrator::executor::{
    CancellationToken, Execution, Executor, Product, Resolved, Unfinished,
};
use proofmill_orchestrator::id::{Part, TaskId};
use proofmill_orchestrator::payload::{Encoding, Payload};
use proofmill_orchestrator::record::{Failure, TaskRecord};
use proofmill_trace::{Recorder, Sampler, Span, TraceContext, install};
use proofmill_workflow::{EngineAddress, EngineExecutor as Table};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::engines::{BN254, Gate, options, until};
use crate::site::{Offer, Site, check};

fn table(sockets: Vec<PathBuf>) -> Table {
    Table {
        circuit: BN254.name(),
        endpoints: sockets.into_iter().map(EngineAddress::Socket).collect(),
        generator: None,
        priority: None,
        token: None,
        ca: None,
        verifying_key: None,
        patience: Duration::from_secs(60),
    }
}

fn stage(table: &Table, endpoints: Vec<Arc<dyn Endpoint>>) -> Arc<EngineExecutor> {
    Arc::new(EngineExecutor::new("test", table, None, endpoints))
}

type Running = (JoinHandle<Result<Product, Failure>>, CancellationToken);

/// Gives a stage the task to prove this witness.
fn begin(stage: &Arc<EngineExecutor>, witness: Vec<u8>) -> Running {
    begin_in(stage, witness, None)
}

/// The same, as an attempt at this place in a trace.
fn begin_in(stage: &Arc<EngineExecutor>, witness: Vec<u8>, trace: Option<TraceContext>) -> Running {
    let task = TaskRecord {
        id: TaskId {
            stage: "prove".into(),
            block: 1,
            part: Part::whole(),
        },
        queue: "in".into(),
        last: 1,
        group: None,
        needs: None,
        payload: Payload::binary(&b""[..]),
        at_ms: 0,
        origins: Default::default(),
        trace: proofmill_orchestrator::traces::TaskTrace::default(),
    };
    let cancel = CancellationToken::new();
    let execution = Execution {
        task: Arc::new(task),
        attempt: 1,
        input: Resolved::One(Encoding::Binary, witness.into()),
        trace,
        cancel: cancel.clone(),
    };
    let stage = stage.clone();
    let result = tokio::spawn(async move {
        let mut results = stage.execute(vec![execution]).await;
        results.pop().unwrap().map_err(attempt)
    });
    (result, cancel)
}

/// Checks that the result has a proof of the witness of `seed`, in snarkjs's format.
fn check_result(result: Result<Product, Failure>, seed: u64) {
    let product = result.unwrap();
    let result: Value = serde_json::from_slice(&product.outputs[0].1).unwrap();
    assert_eq!(result["curve"], json!("bn254"));
    let proof = proof_from_json::<Bn254>(result["proof"].to_string().as_bytes()).unwrap();
    let public = inputs_from_json::<<Bn254 as ark_ec::pairing::Pairing>::ScalarField>(
        result["public"].to_string().as_bytes(),
    );
    let made = proofmill_api::engine::proto::Proof {
        circuit_id: result["circuit_id"].as_str().unwrap().to_owned(),
        curve: "bn254".to_owned(),
        proof: proof.to_bytes(),
        public_inputs: public
            .unwrap()
            .iter()
            .map(|input| ark_ff::BigInteger::to_bytes_le(&ark_ff::PrimeField::into_bigint(*input)))
            .collect(),
        ..Default::default()
    };
    check(BN254, &made, seed);
}

/// Whether a partition's products begin.
fn multiplies(kind: &EventKind) -> bool {
    let began = PipelineStage::Prove;
    matches!(kind, EventKind::Began { stage, .. } if *stage == began)
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_engine_with_the_hot_key_is_killed_another_proves() {
    let gate = Gate::closed();
    let gated = Options {
        interference: Some(gate.clone()),
        ..options()
    };
    let hot = Site::with(gated, Offer::default()).await;
    let cold = Site::open().await;
    hot.handle
        .preload(BN254.circuit(), Tier::Hot)
        .await
        .unwrap();
    let table = table(vec![cold.socket(), hot.socket()]);
    let stage = stage(&table, endpoints(&table));

    let mut events = hot.handle.events();
    let (result, _cancel) = begin(&stage, BN254.wtns(7));
    until(&mut events, multiplies).await;
    assert_eq!(cold.handle.load().await.unwrap().jobs, 0);
    hot.kill().await;
    gate.open();
    check_result(result.await.unwrap(), 7);

    // A repeated task gets the same proof, from the engine that made it.
    let (again, _cancel) = begin(&stage, BN254.wtns(7));
    check_result(again.await.unwrap(), 7);
    let counts = cold.handle.status().await.unwrap().counts;
    assert_eq!((counts.accepted, counts.repeated), (1, 1));
    cold.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_task_stops_its_job_unless_another_process_waits_for_it() {
    let gate = Gate::closed();
    let gated = Options {
        interference: Some(gate.clone()),
        ..options()
    };
    let site = Site::with(gated, Offer::default()).await;
    let table = table(vec![site.socket()]);
    let stage = stage(&table, endpoints(&table));
    let mut events = site.handle.events();
    let (result, cancel) = begin(&stage, BN254.vector(7));
    until(&mut events, multiplies).await;
    let job = site.handle.status().await.unwrap().jobs[0].id;
    {
        let mut other = std::pin::pin!(site.handle.await_result(job));
        tokio::select! {
            biased;
            ended = &mut other => panic!("{ended:?}"),
            () = std::future::ready(()) => {}
        }
        cancel.cancel();
        assert_eq!(result.await.unwrap().unwrap_err().reason, "cancelled");
        let view = site.handle.job(job).await.unwrap();
        assert_eq!(view.state, JobState::Running);
    }
    let (result, cancel) = begin(&stage, BN254.vector(7));
    while site.handle.status().await.unwrap().counts.repeated == 0 {
        tokio::task::yield_now().await;
    }
    cancel.cancel();
    result.await.unwrap().unwrap_err();
    let ended = site.handle.await_result(job).await.unwrap();
    assert_eq!(ended.state, JobState::Cancelled);
    gate.open();
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_in_this_process_proves_like_a_remote_one() {
    let site = Site::open().await;
    let table = table(vec![site.socket()]);
    let endpoint = in_process_endpoint(site.handle.clone());
    let stage = stage(&table, vec![endpoint]);
    check_result(begin(&stage, BN254.wtns(7)).0.await.unwrap(), 7);
    let wrong = begin(&stage, BN254.wrong_vector(7)).0.await.unwrap();
    assert!(!wrong.unwrap_err().permanent);
    let mut short = BN254.vector(7);
    short.truncate(32);
    let failure = begin(&stage, short).0.await.unwrap().unwrap_err();
    assert!(failure.permanent, "{failure:?}");
    assert!(
        failure.reason.contains("a vector of 32 bytes"),
        "{failure:?}"
    );
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_in_this_process_and_a_remote_one_make_the_same_spans() {
    let (recorder, mut ended) = Recorder::new(1 << 16, Sampler::default());
    install(recorder).expect("this process has no other recorder");
    let mut spans: Vec<Span> = Vec::new();
    let site = Site::open().await;
    let table = table(vec![site.socket()]);
    let local = vec![in_process_endpoint(site.handle.clone())];
    let mut seen = Vec::new();
    for (place, trace, endpoints) in [(7, "a1", local), (8, "b2", endpoints(&table))] {
        let stage = stage(&table, endpoints);
        let parent = format!("00-{}-00f067aa0ba902b7-01", trace.repeat(16));
        let context = TraceContext::parse(&parent, ["rojo=1"]).unwrap();
        let result = begin_in(&stage, BN254.wtns(place), Some(context.clone()));
        check_result(result.0.await.unwrap(), place);
        while let Ok(span) = ended.try_recv() {
            spans.push(span);
        }
        let of_trace = spans.iter().filter(|span| span.trace == context.trace());
        let described = of_trace.map(|span| {
            assert_eq!(span.parent, Some(context.span()));
            let names = span.attributes.iter().map(|(name, _)| *name);
            (span.name.clone(), names.collect(), span.state.clone())
        });
        let described: Vec<(String, Vec<&str>, _)> = described.collect();
        seen.push(described);
    }
    let stages = PipelineStage::ALL.map(|stage| format!("engine.{stage}"));
    let names: Vec<&String> = seen[0].iter().map(|(name, ..)| name).collect();
    assert_eq!(names, stages.iter().collect::<Vec<_>>());
    assert_eq!(seen[0], seen[1]);
    site.stop().await;
}

/// The failed attempt: faults of an engine must not count as faults of this machine.
fn attempt(unfinished: Unfinished) -> Failure {
    match unfinished {
        Unfinished::Failed(failure) => failure,
        Unfinished::Machine(failure) => panic!("{failure}"),
    }
}
