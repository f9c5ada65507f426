//! A check of a result that takes longer than a lease lasts costs no attempt, of whatever worker.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use proofmill_bus::{Connection, NatsOptions};
use proofmill_nats_server::NatsServer;
use proofmill_orchestrator::cluster::{self, LedWorkflows, ProcessContext};
use proofmill_orchestrator::coordinator::{Handle, ResultCheck, UncheckedResult};
use proofmill_orchestrator::core::StageStatus;
use proofmill_orchestrator::executor::{Context, Json, Prover, ProverError};
use proofmill_orchestrator::mill::Registry;
use proofmill_orchestrator::shutdown;
use proofmill_workflow::{LocalHost, render, validate};
use serde_json::Value;

use crate::support::PATIENCE;

/// `T_ack` is longer than a machine stands still, and than a call waits before it is repeated.
const WORKFLOW: &str = r#"
    name = "checked"
    [[source]]
    name = "blocks"
    kind = "range"
    end = 2
    output = "blocks"
    [[dispatcher]]
    name = "prove"
    input = "blocks"
    output = "proofs"
    workers = 3
    t_ack = "10s"
    heartbeat = "1s"
    check_results = true
    executor = { kind = "native", prover = "held" }
    [sequencer]
    input = "proofs"
"#;

/// Time for which results are held back.
const HELD: Duration = Duration::from_secs(22);

/// Proves block 0 at once, whose check then lasts as long as the proof of block 1: until they are let go. Block 2 is proved
/// when both have begun, so that its result waits in the worker's process, behind the call with the first.
#[derive(Clone, Default)]
struct Held(Arc<(Mutex<State>, Condvar)>);

#[derive(Default)]
struct State {
    /// Checks and proofs that have begun to wait.
    waiting: usize,
    may_go_on: bool,
}

impl Held {
    fn wait(&self) {
        let (state, changed) = &*self.0;
        let mut state = state.lock().expect("not poisoned");
        state.waiting += 1;
        changed.notify_all();
        let waited = changed.wait_while(state, |state| !state.may_go_on);
        drop(waited.expect("not poisoned"));
    }

    /// Waits until the check and the proof have begun to wait.
    fn until_both_wait(&self) {
        let (state, changed) = &*self.0;
        let state = state.lock().expect("not poisoned");
        let waited = changed.wait_timeout_while(state, PATIENCE, |state| state.waiting < 2);
        assert!(!waited.expect("not poisoned").1.timed_out(), "both wait");
    }

    fn let_go(&self) {
        let (state, changed) = &*self.0;
        state.lock().expect("not poisoned").may_go_on = true;
        changed.notify_all();
    }
}

impl Prover for Held {
    type Input = Json<Value>;
    type Output = Json<Value>;

    fn prove(&self, context: &Context, input: Json<Value>) -> Result<Json<Value>, ProverError> {
        match context.task.block {
            1 => self.wait(),
            2 => self.until_both_wait(),
            _ => {}
        }
        Ok(input)
    }
}

impl ResultCheck for Held {
    fn check_results(&self, results: &[UncheckedResult]) -> Vec<Result<(), ProverError>> {
        if results.iter().any(|result| result.task.id.block == 0) {
            self.wait();
        }
        results.iter().map(|_| Ok(())).collect()
    }
}

async fn context(url: &str, held: &Held, state: &Path, name: &str) -> ProcessContext {
    let options = NatsOptions {
        connect_timeout: PATIENCE,
        // The leader stays the leader.
        lease_ttl: Duration::from_secs(60),
        ..NatsOptions::new(url)
    };
    let connection = Connection::open(options).await.expect("the bus");
    let mut registry = Registry::default();
    let held = held.clone();
    registry.checked_prover("held", move |_| Ok(held.clone()));
    let host = LocalHost::new(["held"]).with_result_checks(["held"]);
    let (workflow, _) = validate(WORKFLOW, Path::new("checked.toml"), &host)
        .unwrap_or_else(|faults| panic!("{}", render(&faults)));
    let context = ProcessContext::open(connection, &workflow, registry, state.join(name), name);
    context.await.expect("a process")
}

async fn prove_stage(leader: &Handle) -> StageStatus {
    let status = leader.operator().status().await.expect("a status");
    let mut stages = status.stages.into_iter();
    let prove = stages.find(|stage| &*stage.stage == "prove");
    prove.expect("its stage")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_that_outlasts_leases_costs_no_attempt() {
    let server = NatsServer::start();
    let folder = tempfile::tempdir().expect("a directory");
    let held = Held::default();
    let url = server.url();
    let open = |name: &'static str| context(&url, &held, folder.path(), name);
    let (_trigger, running) = shutdown::channel();
    let leading = LedWorkflows::default();
    tokio::spawn(cluster::lead(
        open("leader").await,
        leading.clone(),
        running.clone(),
    ));
    let leader = leading.wait_until_leading("checked").await;
    tokio::spawn(cluster::run_sources(open("source").await, running.clone()));
    let workers = open("workers").await;
    tokio::spawn(cluster::run_dispatchers(
        workers,
        Default::default(),
        BTreeMap::new(),
        running,
    ));
    let both = held.clone();
    let waiting = tokio::task::spawn_blocking(move || both.until_both_wait());
    waiting.await.expect("they wait");
    tokio::time::sleep(HELD).await;
    let during = prove_stage(&leader).await;
    held.let_go();
    let counters = during.counters;
    assert_eq!((counters.expired, counters.failed), (0, 0), "{during:?}");
    assert_eq!((during.leased, counters.completed), (3, 0), "{during:?}");
    let ending = async {
        while prove_stage(&leader).await.counters.completed < 3 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let ended = tokio::time::timeout(PATIENCE, ending).await;
    ended.expect("the results count");
    let counters = prove_stage(&leader).await.counters;
    assert_eq!((counters.leased, counters.failed), (3, 0), "{counters:?}");
}
