//! Results that the coordinator checks before they count.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use proofmill_orchestrator::conversation::{
    Lease, Output, Reply, WorkerCommand, WorkerEvent, WorkerJoin, WorkerResult,
};
use proofmill_orchestrator::coordinator::{ResultCheck, UncheckedResult};
use proofmill_orchestrator::executor::{Context, Json, Prover, ProverError};
use proofmill_orchestrator::mill::{Mill, Options, Registry};
use proofmill_orchestrator::payload::Payload;
use proofmill_orchestrator::shutdown;
use proofmill_workflow::{LocalHost, render, validate};
use serde::Deserialize;
use tokio::sync::mpsc;

use crate::support::PATIENCE;

const WORKFLOW: &str = r#"
    name = "checked"
    [[source]]
    name = "blocks"
    kind = "range"
    end = 39
    output = "blocks"
    [[dispatcher]]
    name = "square"
    input = "blocks"
    output = "squares"
    workers = 4
    check_results = true
    executor = { kind = "native", prover = "square" }
    [sequencer]
    input = "squares"
"#;

/// A source's message about a block.
#[derive(Deserialize)]
struct Block {
    block: u64,
}

/// Squares its block's number, except for its first calls about blocks from 5 on.
#[derive(Clone)]
struct Square {
    lies_left: Arc<AtomicUsize>,
    panics: bool,
    prover: Arc<Prepared>,
    check: Arc<Prepared>,
}

/// Preparations of the prover, or of its check. Tasks and checks here wait for the first one.
#[derive(Default)]
struct Prepared {
    count: Mutex<usize>,
    changed: Condvar,
}

impl Prepared {
    fn add(&self) {
        *self.count.lock().expect("not poisoned") += 1;
        self.changed.notify_all();
    }

    fn wait(&self) {
        let count = self.count.lock().expect("not poisoned");
        let waited = self.changed.wait_while(count, |count| *count == 0);
        drop(waited.expect("not poisoned"));
    }

    fn count(&self) -> usize {
        *self.count.lock().expect("not poisoned")
    }
}

impl Prover for Square {
    type Input = Json<Block>;
    type Output = Json<u64>;

    fn prepare(&self) {
        self.prover.add();
        assert!(!self.panics, "a preparation that panics");
    }

    fn prove(
        &self,
        _: &Context,
        Json(Block { block: n }): Json<Block>,
    ) -> Result<Json<u64>, ProverError> {
        self.prover.wait();
        let take = |left: usize| left.checked_sub(1);
        let lies = n >= 5
            && self
                .lies_left
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, take)
                .is_ok();
        Ok(Json(if lies { 7 } else { n * n }))
    }
}

impl ResultCheck for Square {
    fn prepare(&self) {
        self.check.add();
        assert!(!self.panics, "a preparation that panics");
    }

    fn check_results(&self, results: &[UncheckedResult]) -> Vec<Result<(), ProverError>> {
        self.check.wait();
        let verdict = |result: &UncheckedResult| {
            let input = result.input.to_program_input().expect("an input");
            let Block { block: n } = serde_json::from_slice(&input).expect("a block");
            let square: Option<u64> = serde_json::from_slice(&result.outputs[0].1).ok();
            assert!(!self.panics || square != Some(7), "a check that panics");
            match square == Some(n * n) {
                true => Ok(()),
                false => Err(ProverError::Permanent("it is no square".into())),
            }
        };
        results.iter().map(verdict).collect()
    }
}

async fn run(lies: usize, panics: bool) -> (Vec<u64>, usize) {
    let mut registry = Registry::default();
    let [prover, check] = [(); 2].map(|()| Arc::new(Prepared::default()));
    let square = Square {
        lies_left: Arc::new(AtomicUsize::new(lies)),
        panics,
        prover: prover.clone(),
        check: check.clone(),
    };
    registry.checked_prover("square", move |_| Ok(square.clone()));
    let host = LocalHost::new(["square"]).with_result_checks(["square"]);
    let (workflow, _) = validate(WORKFLOW, Path::new("test.toml"), &host)
        .unwrap_or_else(|faults| panic!("{}", render(&faults)));
    let dir = tempfile::tempdir().expect("temporary directory");
    let (stream, mut emitted) = mpsc::channel(64);
    let options = Options {
        bus: crate::bus(dir.path()).await,
        stream: Some(stream),
        ..Options::in_directory(dir.path())
    };
    let mill = Mill::open(&workflow, registry, options).await;
    let mill = mill.expect("a mill");
    let (_trigger, shutdown) = shutdown::channel();
    let ran = tokio::time::timeout(PATIENCE, mill.run(shutdown)).await;
    let status = ran.expect("it ends").expect("no failure").status;
    // Once, although four dispatchers share the prover.
    assert_eq!([prover.count(), check.count()], [1, 1]);
    let mut squares = Vec::new();
    while let Some(emitted) = emitted.recv().await {
        squares.push(serde_json::from_slice(&emitted.bytes).expect("a number"));
    }
    (squares, status.distrusted.len())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_false_result_does_not_count_and_its_worker_gets_nothing_more() {
    let squares: Vec<u64> = (0..40).map(|n| n * n).collect();
    assert_eq!(run(0, false).await, (squares.clone(), 0));
    // Three of four workers lie, one after the other.
    assert_eq!(run(3, false).await, (squares.clone(), 3));
    // A result that makes the check panic is a false one.
    assert_eq!(run(1, true).await, (squares, 1));
}

/// A stage whose checks wait, for workers of a test.
const GATED: &str = r#"
    name = "gated"
    [[source]]
    name = "blocks"
    kind = "submit"
    output = "blocks"
    [[dispatcher]]
    name = "square"
    input = "blocks"
    output = "squares"
    check_results = true
    executor = { kind = "native", prover = "gated" }
    [sequencer]
    input = "squares"
"#;

/// A check that waits until it is prepared, which the test does.
struct Gated(Arc<Prepared>);

impl Prover for Gated {
    type Input = Json<Block>;
    type Output = Json<u64>;

    fn prove(&self, _: &Context, _: Json<Block>) -> Result<Json<u64>, ProverError> {
        Err(ProverError::Permanent("the test is the worker".into()))
    }
}

impl ResultCheck for Gated {
    fn check_results(&self, results: &[UncheckedResult]) -> Vec<Result<(), ProverError>> {
        self.0.wait();
        results.iter().map(|_| Ok(())).collect()
    }
}

/// The next assignment that a worker gets.
async fn assigned(inbox: &mut mpsc::UnboundedReceiver<WorkerCommand>) -> Lease {
    let assigned = async {
        loop {
            match inbox.recv().await.expect("the coordinator runs") {
                WorkerCommand::Assign(mut leases) => return leases.remove(0),
                other => drop(other),
            }
        }
    };
    let assigned = tokio::time::timeout(PATIENCE, assigned).await;
    assigned.expect("an assignment")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_comes_back_while_its_result_is_checked_gets_tasks_again() {
    let check = Arc::new(Prepared::default());
    let mut registry = Registry::default();
    let gate = check.clone();
    registry.checked_prover("gated", move |_| Ok(Gated(gate.clone())));
    let host = LocalHost::new(["gated"]).with_result_checks(["gated"]);
    let (workflow, _) = validate(GATED, Path::new("test.toml"), &host)
        .unwrap_or_else(|faults| panic!("{}", render(&faults)));
    let dir = tempfile::tempdir().expect("temporary directory");
    let options = Options {
        bus: crate::bus(dir.path()).await,
        ..Options::in_directory(dir.path())
    };
    let mill = Mill::open(&workflow, registry, options).await;
    let mill = mill.expect("a mill");
    let handle = mill.handle();
    let queue = handle.plan().queue_named("blocks").expect("a queue");
    for block in 0..2 {
        let request = crate::support::request(queue, block);
        let reply = handle.source().submit(request).await.expect("it runs");
        assert_eq!(reply, Reply::Accepted);
    }
    let worker = handle.ports().worker();
    let join = || WorkerJoin {
        worker: "w".into(),
        group: "square".into(),
        labels: Default::default(),
        memory: 0,
        slots: 1,
    };
    let (to_worker, mut inbox) = mpsc::unbounded_channel();
    worker.join(join(), to_worker).await.expect("it runs");
    let lease = assigned(&mut inbox).await;
    assert_eq!(lease.task.id.block, 0);
    let result = WorkerEvent::Complete(WorkerResult {
        worker: "w".into(),
        lease: lease.reference(),
        outputs: vec![Output {
            element: None,
            payload: Payload::json("0"),
            grouping: Vec::new(),
        }],
        ran: Duration::ZERO,
    });
    // Its connection breaks while the result is checked, and is there again before the check has ended.
    let lost = WorkerEvent::Lost { worker: "w".into() };
    for event in [result, lost] {
        worker.send_event(event).await.expect("it runs");
    }
    let (to_worker, mut inbox) = mpsc::unbounded_channel();
    worker.join(join(), to_worker).await.expect("it runs");
    check.add();
    assert_eq!(assigned(&mut inbox).await.task.id.block, 1);
    let counters = handle.operator().status().await.expect("it runs").stages;
    let square = &counters[0].counters;
    assert_eq!((square.completed, square.failed), (1, 0));
    mill.close().await.expect("closed");
}
