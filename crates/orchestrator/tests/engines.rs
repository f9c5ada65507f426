//! Tests of the engine executor against scripted engines: the choice of an engine, and the outcome of each
//! task.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use proofmill_orchestrator::executor::engine::{
    Endpoint, EndpointError, EngineExecutor, EngineJob, EngineSnapshot, JobOutcome, ProofOutput,
    Ticket, Tier,
};
use proofmill_orchestrator::executor::{
    CancellationToken, Execution, Executor, Product, Resolved, Unfinished,
};
use proofmill_orchestrator::id::{Part, TaskId};
use proofmill_orchestrator::payload::{Encoding, Payload};
use proofmill_orchestrator::record::{Failure, TaskRecord};
use proofmill_workflow::{EngineAddress, EnginePriority, HttpUrl};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Time limit of every wait; no test takes as long unless it is stuck.
const STUCK: Duration = Duration::from_secs(90);

/// An engine whose behaviour the test controls completely.
struct Fake {
    name: &'static str,
    state: Mutex<State>,
    changed: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    down: bool,
    snapshot: Option<EngineSnapshot>,
    /// Errors with which the next submissions are answered, in order.
    refusals: VecDeque<EndpointError>,
    /// Whether jobs end with a proof at once.
    proves: bool,
    /// Priority and end of each job, by request id, which is also the job's id.
    jobs: BTreeMap<String, (EnginePriority, Option<JobOutcome>)>,
    submitted: Vec<String>,
    cancelled: Vec<(String, u32)>,
}

// === impl Fake ===

impl Fake {
    fn new(name: &'static str, tier: Option<Tier>) -> Arc<Self> {
        let snapshot = EngineSnapshot {
            tier,
            jobs: 0,
            draining: false,
        };
        let state = State {
            snapshot: Some(snapshot),
            ..State::default()
        };
        Arc::new(Self {
            name,
            state: Mutex::new(state),
            changed: watch::channel(()).0,
        })
    }

    /// An engine that proves every job.
    fn proving(name: &'static str, tier: Tier) -> Arc<Self> {
        let fake = Self::new(name, Some(tier));
        fake.change(|state| state.proves = true);
        fake
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.state.lock().unwrap());
        self.changed.send_replace(());
        changed
    }

    fn refuse(&self, errors: impl IntoIterator<Item = EndpointError>) {
        self.change(|state| state.refusals.extend(errors));
    }

    fn end(&self, job: &str, end: JobOutcome) {
        self.change(|state| state.jobs.get_mut(job).unwrap().1 = Some(end));
    }

    fn submitted(&self) -> Vec<String> {
        self.change(|state| state.submitted.clone())
    }

    /// Waits until the state satisfies `is`.
    async fn until(&self, is: impl Fn(&State) -> bool) {
        let mut changed = self.changed.subscribe();
        let wait = async {
            loop {
                changed.mark_unchanged();
                if is(&self.state.lock().unwrap()) {
                    return;
                }
                changed.changed().await.unwrap();
            }
        };
        let waited = tokio::time::timeout(STUCK, wait).await;
        waited.unwrap_or_else(|_| panic!("{} is stuck", self.name));
    }

    async fn until_jobs(&self, count: usize) -> Vec<String> {
        self.until(|state| state.jobs.len() >= count).await;
        self.change(|state| state.jobs.keys().cloned().collect())
    }
}

impl Endpoint for Fake {
    fn address(&self) -> &str {
        self.name
    }

    fn snapshot<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<EngineSnapshot, EndpointError>> {
        let snapshot = self.change(|state| match state.down {
            true => Err(EndpointError::Unavailable("nobody answers".to_owned())),
            false => Ok(state.snapshot.unwrap()),
        });
        Box::pin(std::future::ready(snapshot))
    }

    fn submit<'a>(
        &'a self,
        request: &'a str,
        job: &'a EngineJob,
    ) -> BoxFuture<'a, Result<Ticket, EndpointError>> {
        let ticket = self.change(|state| {
            if state.down {
                return Err(EndpointError::Unavailable("nobody answers".to_owned()));
            }
            state.submitted.push(request.to_owned());
            if let Some(error) = state.refusals.pop_front() {
                return Err(error);
            }
            let existing = state.jobs.contains_key(request);
            let end = state.proves.then(|| JobOutcome::Proved(proof_output()));
            let new = (job.priority, end);
            state.jobs.entry(request.to_owned()).or_insert(new);
            Ok(Ticket {
                job: request.to_owned(),
                existing,
            })
        });
        Box::pin(std::future::ready(ticket))
    }

    fn result<'a>(
        &'a self,
        job: &'a str,
        _: &'a EngineJob,
    ) -> BoxFuture<'a, Result<JobOutcome, EndpointError>> {
        Box::pin(async move {
            self.until(|state| state.down || state.jobs[job].1.is_some())
                .await;
            self.change(|state| match &state.jobs[job].1 {
                Some(end) if !state.down => Ok(end.clone()),
                _ => Err(EndpointError::Unavailable(
                    "the connection broke".to_owned(),
                )),
            })
        })
    }

    fn cancel<'a>(
        &'a self,
        job: &'a str,
        waiting: u32,
    ) -> BoxFuture<'a, Result<(), EndpointError>> {
        self.change(|state| {
            state.cancelled.push((job.to_owned(), waiting));
            state.jobs.get_mut(job).unwrap().1 = Some(JobOutcome::Cancelled);
        });
        Box::pin(std::future::ready(Ok(())))
    }
}

fn proof_output() -> ProofOutput {
    ProofOutput {
        circuit_id: "00".to_owned(),
        curve: "bn254".to_owned(),
        proof_json: r#"{"pi_a": ["1"]}"#.to_owned(),
        public_json: r#"["2"]"#.to_owned(),
    }
}

/// A stage whose tasks run on engines.
struct EngineStage(Arc<EngineExecutor>);

/// A running task of the stage.
struct Running {
    result: JoinHandle<Result<Product, Failure>>,
    cancel: CancellationToken,
}

// === impl EngineStage ===

impl EngineStage {
    fn new(engines: &[&Arc<Fake>], generator: Option<&str>) -> Self {
        Self::patient(engines, generator, STUCK)
    }

    fn patient(engines: &[&Arc<Fake>], generator: Option<&str>, patience: Duration) -> Self {
        let address = HttpUrl::try_new("http://127.0.0.1:1").unwrap();
        let engine = proofmill_workflow::EngineExecutor {
            circuit: "spend".to_owned(),
            endpoints: vec![EngineAddress::Tcp(address)],
            generator: generator.map(str::to_owned),
            priority: None,
            token: None,
            ca: None,
            verifying_key: None,
            patience,
        };
        let endpoints = engines
            .iter()
            .map(|fake| -> Arc<dyn Endpoint> { (*fake).clone() });
        let executor = EngineExecutor::new("test", &engine, None, endpoints.collect());
        Self(Arc::new(executor))
    }

    /// Gives the stage a task with a JSON payload.
    fn begin(&self, block: u64, payload: &str) -> Running {
        let bytes = payload.as_bytes().to_vec();
        self.begin_with(block, Resolved::One(Encoding::Json, bytes.into()))
    }

    fn begin_with(&self, block: u64, input: Resolved) -> Running {
        let task = TaskRecord {
            id: TaskId {
                stage: "prove".into(),
                block,
                part: Part::whole(),
            },
            queue: "in".into(),
            last: block,
            group: None,
            needs: None,
            payload: Payload::json(&b"0"[..]),
            at_ms: 0,
            origins: Default::default(),
            trace: proofmill_orchestrator::traces::TaskTrace::default(),
        };
        let cancel = CancellationToken::new();
        let execution = Execution {
            task: Arc::new(task),
            attempt: 1,
            input,
            trace: None,
            cancel: cancel.clone(),
        };
        let executor = self.0.clone();
        let result = tokio::spawn(async move {
            let mut results = executor.execute(vec![execution]).await;
            results.pop().unwrap().map_err(attempt)
        });
        Running { result, cancel }
    }
}

// === impl Running ===

impl Running {
    async fn end(self) -> Result<Product, Failure> {
        let ended = tokio::time::timeout(STUCK, self.result).await;
        ended.expect("it is stuck").unwrap()
    }

    async fn proved(self) -> Value {
        let product = self.end().await.unwrap();
        assert!(!product.fan_out);
        serde_json::from_slice(&product.outputs[0].1).unwrap()
    }

    async fn failed(self) -> Failure {
        self.end().await.unwrap_err()
    }

    fn cancel(&self) {
        self.cancel.cancel();
    }
}

fn exhausted(ms: u64) -> EndpointError {
    EndpointError::Exhausted {
        why: "the queue is full".to_owned(),
        retry_after: Duration::from_millis(ms),
    }
}

#[tokio::test]
async fn the_engine_with_the_hot_key_proves_and_the_result_has_the_proof() {
    let (cold, hot) = (
        Fake::proving("cold", Tier::Cold),
        Fake::proving("hot", Tier::Hot),
    );
    let stage = EngineStage::new(&[&cold, &hot], Some("mul"));
    let result = stage.begin(7, r#"{"a": 3}"#).proved().await;
    let expected = json!({
        "circuit_id": "00",
        "curve": "bn254",
        "proof": {"pi_a": ["1"]},
        "public": ["2"],
    });
    assert_eq!(result, expected);
    assert_eq!(cold.submitted(), [""; 0]);
    let [request] = &hot.submitted()[..] else {
        panic!("one request");
    };
    assert!(request.starts_with("prove/7-"), "{request}");
}

#[tokio::test]
async fn the_same_task_is_the_same_request_and_another_payload_is_another() {
    let engine = Fake::proving("a", Tier::Hot);
    for payload in ["1", "1", "2"] {
        // Another process, without the state of the one before.
        let stage = EngineStage::new(&[&engine], Some("mul"));
        stage.begin(7, payload).proved().await;
    }
    let submitted = engine.submitted();
    assert_eq!(submitted[0], submitted[1]);
    assert_ne!(submitted[0], submitted[2]);
}

#[tokio::test]
async fn an_engine_without_room_is_passed_by() {
    let (full, other) = (
        Fake::proving("full", Tier::Hot),
        Fake::proving("other", Tier::Cold),
    );
    full.refuse([exhausted(60_000)]);
    let stage = EngineStage::new(&[&full, &other], Some("mul"));
    stage.begin(1, "1").proved().await;
    stage.begin(2, "2").proved().await;
    assert_eq!((full.submitted().len(), other.submitted().len()), (1, 2));
}

#[tokio::test]
async fn where_all_are_full_a_task_waits_without_having_failed() {
    let engine = Fake::proving("a", Tier::Hot);
    engine.refuse([exhausted(1), exhausted(5)]);
    let stage = EngineStage::patient(&[&engine], Some("mul"), Duration::from_millis(1));
    stage.begin(1, "1").proved().await;
    assert_eq!(engine.submitted().len(), 3);
}

#[tokio::test]
async fn when_an_engine_dies_another_proves_and_the_job_left_behind_is_stopped() {
    let (dies, other) = (
        Fake::new("dies", Some(Tier::Hot)),
        Fake::proving("other", Tier::Cold),
    );
    let stage = EngineStage::new(&[&dies, &other], Some("mul"));
    let task = stage.begin(1, "1");
    let left = dies.until_jobs(1).await;
    dies.change(|state| state.down = true);
    task.proved().await;
    assert_eq!(other.submitted(), left);
    dies.change(|state| state.down = false);
    dies.until(|state| !state.cancelled.is_empty()).await;
    let cancelled = dies.change(|state| state.cancelled.clone());
    assert_eq!(cancelled, [(left[0].clone(), 0)]);
}

#[tokio::test]
async fn an_only_engine_that_comes_back_is_asked_for_the_same_job() {
    let engine = Fake::new("a", Some(Tier::Hot));
    let stage = EngineStage::new(&[&engine], Some("mul"));
    let task = stage.begin(1, "1");
    let job = engine.until_jobs(1).await.remove(0);
    engine.change(|state| state.down = true);
    engine.change(|state| {
        state.down = false;
        state.jobs.get_mut(&job).unwrap().1 = Some(JobOutcome::Proved(proof_output()));
    });
    task.proved().await;
    assert!(engine.submitted().iter().all(|request| *request == job));
    assert!(engine.change(|state| state.cancelled.is_empty()));
}

#[tokio::test]
async fn a_circuit_that_no_engine_has_is_a_failure_for_good_only_if_all_answer() {
    let (lacks, down) = (Fake::new("lacks", None), Fake::new("down", None));
    let patience = Duration::from_millis(20);
    let stage = EngineStage::patient(&[&lacks, &down], Some("mul"), patience);
    let failure = stage.begin(1, "1").failed().await;
    assert!(failure.permanent, "{failure:?}");
    assert!(failure.reason.contains("lacks: it has no such circuit"));
    assert!(failure.reason.contains("no engine has circuit spend"));

    down.change(|state| state.down = true);
    let stage = EngineStage::patient(&[&lacks, &down], Some("mul"), patience);
    let failure = stage.begin(1, "1").failed().await;
    assert!(!failure.permanent, "{failure:?}");
    assert!(failure.reason.contains("down: nobody answers"));
}

#[tokio::test]
async fn a_malformed_job_is_a_failure_for_good_whoever_is_silent() {
    let (strict, down) = (
        Fake::new("strict", Some(Tier::Hot)),
        Fake::new("down", Some(Tier::Hot)),
    );
    down.change(|state| state.down = true);
    strict.refuse([EndpointError::Invalid("of another circuit".to_owned())]);
    let stage = EngineStage::new(&[&strict, &down], Some("mul"));
    let failure = stage.begin(1, "1").failed().await;
    assert!(failure.permanent, "{failure:?}");
    assert!(failure.reason.ends_with("strict: of another circuit"));
}

#[tokio::test]
async fn what_one_engine_cannot_do_another_does() {
    let (unable, able) = (
        Fake::new("unable", Some(Tier::Hot)),
        Fake::proving("able", Tier::Cold),
    );
    let why = || EndpointError::Unable("no witness generator".to_owned());
    unable.refuse([why(), why()]);
    let stage = EngineStage::new(&[&unable, &able], Some("mul"));
    stage.begin(1, "1").proved().await;
    let stage = EngineStage::new(&[&unable], Some("mul"));
    let failure = stage.begin(2, "1").failed().await;
    assert!(failure.permanent, "{failure:?}");
}

#[tokio::test]
async fn a_proof_that_fails_at_two_engines_has_failed_and_its_id_is_spent() {
    let engines = ["a", "b", "c"].map(|name| Fake::new(name, Some(Tier::Hot)));
    let [a, b, c] = &engines;
    let stage = EngineStage::new(&[a, b, c], Some("mul"));
    let task = stage.begin(1, "1");
    for engine in [a, b] {
        let job = engine.until_jobs(1).await.remove(0);
        engine.end(&job, JobOutcome::Failed("it does not verify".to_owned()));
    }
    let failure = task.failed().await;
    assert!(!failure.permanent, "{failure:?}");
    assert_eq!(
        failure.reason,
        "a: it does not verify; b: it does not verify"
    );
    assert_eq!(c.submitted(), [""; 0]);

    // The next attempt is another job at the same engine.
    a.change(|state| state.proves = true);
    stage.begin(1, "1").proved().await;
    let submitted = a.submitted();
    assert_eq!(submitted[0], submitted[1]);
    assert_eq!(submitted[2], format!("{}.1", submitted[0]));
}

#[tokio::test]
async fn a_task_that_is_cancelled_stops_its_job() {
    let engine = Fake::new("a", Some(Tier::Hot));
    let stage = EngineStage::new(&[&engine], Some("mul"));
    let (task, copy) = (stage.begin(1, "1"), stage.begin(1, "1"));
    engine.until(|state| state.submitted.len() == 2).await;
    let job = engine.until_jobs(1).await.remove(0);
    task.cancel();
    assert_eq!(task.failed().await.reason, "cancelled");
    // The copy still waits for the job.
    assert!(engine.change(|state| state.cancelled.is_empty()));
    copy.cancel();
    copy.failed().await;
    let cancelled = engine.change(|state| state.cancelled.clone());
    assert_eq!(cancelled, [(job, 1)]);
}

#[tokio::test]
async fn copies_of_a_task_race_at_different_engines() {
    let (a, b) = (
        Fake::new("a", Some(Tier::Hot)),
        Fake::new("b", Some(Tier::Cold)),
    );
    let stage = EngineStage::new(&[&a, &b], Some("mul"));
    let first = stage.begin(1, "1");
    let at_a = a.until_jobs(1).await;
    let second = stage.begin(1, "1");
    assert_eq!(b.until_jobs(1).await, at_a);
    b.end(&at_a[0], JobOutcome::Proved(proof_output()));
    second.proved().await;
    first.cancel();
    first.failed().await;
    assert_eq!(a.change(|state| state.cancelled.len()), 1);
}

#[tokio::test]
async fn the_lowest_block_goes_first() {
    let engine = Fake::new("a", Some(Tier::Hot));
    let stage = EngineStage::new(&[&engine], Some("mul"));
    let mut tasks = Vec::new();
    for (count, block) in [5, 6, 4].into_iter().enumerate() {
        tasks.push(stage.begin(block, "1"));
        engine.until_jobs(count + 1).await;
    }
    let priorities = engine.change(|state| {
        let jobs = state.jobs.values();
        jobs.map(|(priority, _)| *priority).collect::<Vec<_>>()
    });
    let (high, normal) = (EnginePriority::High, EnginePriority::Normal);
    // In the order of their blocks.
    assert_eq!(priorities, [high, high, normal]);
}

#[tokio::test]
async fn payloads_that_are_no_witness_say_so_and_not_what_they_are() {
    let engine = Fake::proving("a", Tier::Hot);
    let witness = EngineStage::new(&[&engine], None);
    for payload in [r#"{"secret": 4711}"#, r#""4711 is no base64""#] {
        let failure = witness.begin(1, payload).failed().await;
        assert!(failure.permanent);
        assert!(failure.reason.contains("no witness"), "{}", failure.reason);
        assert!(!failure.reason.contains("4711"), "{}", failure.reason);
    }
    let binary = || Resolved::One(Encoding::Binary, vec![1, 2, 3].into());
    witness.begin_with(1, binary()).proved().await;
    witness.begin(1, r#""AQID""#).proved().await;
    let submitted = engine.submitted();
    assert_eq!(submitted[0], submitted[1], "the same bytes");
    let inputs = EngineStage::new(&[&engine], Some("mul"));
    let failure = inputs.begin_with(1, binary()).failed().await;
    assert!(failure.permanent && failure.reason.contains("binary"));
}

/// The failed attempt in `unfinished`; an engine's failure must never count as this machine's.
fn attempt(unfinished: Unfinished) -> Failure {
    match unfinished {
        Unfinished::Failed(failure) => failure,
        Unfinished::Machine(failure) => panic!("{failure}"),
    }
}
