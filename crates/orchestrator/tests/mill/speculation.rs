//! Several workers for one task: the effect on the tail latency, and the fate of the slower workers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use proofmill_bus::{BlobStore, MemoryLog};
use proofmill_orchestrator::conversation::{Reply, Target};
use proofmill_orchestrator::coordinator::{self, Coordinator};
use proofmill_orchestrator::dispatcher::{self, Dispatcher};
use proofmill_orchestrator::executor::{Execution, Executor, Product, Unfinished};
use proofmill_orchestrator::id::{Part, TaskId};
use proofmill_orchestrator::payload::Encoding;
use proofmill_orchestrator::plan::{Plan, QueueIx, StageIx};
use proofmill_orchestrator::shutdown::{self, Level};
use tokio::sync::mpsc;

use crate::support::{Background, PATIENCE, Script, one_stage, request, stage, workflow};

const FAST: Duration = Duration::from_millis(20);
const WORKERS: usize = 4;
/// Number of blocks after which the stage's typical duration is known.
const WARM_UP: u64 = 20;
const MEASURED: u64 = 120;

/// A prover that takes a given time, and stops earlier if its result is no longer wanted.
struct Timed(Duration);

impl Executor for Timed {
    fn execute(&self, batch: Vec<Execution>) -> BoxFuture<'_, Vec<Result<Product, Unfinished>>> {
        Box::pin(async move {
            let mut products = Vec::new();
            for execution in batch {
                tokio::select! {
                    () = tokio::time::sleep(self.0) => {}
                    () = execution.cancel.cancelled() => {}
                }
                products.push(Ok(Product {
                    outputs: vec![(Encoding::Json, "{}".into())],
                    fan_out: false,
                    ran: self.0,
                }));
            }
            products
        })
    }
}

/// 99th percentile of the time from acceptance to completion, with workers of which one is ten times slower
/// than the others. The clock of the runtime is paused: time passes only where everything waits for it, so the
/// machine's own speed plays no part.
async fn p99(settings: &str) -> Duration {
    let text = format!(
        r#"
        name = "tail"
        [[source]]
        name = "in"
        kind = "submit"
        output = "blocks"
        [[dispatcher]]
        name = "prove"
        input = "blocks"
        workers = {WORKERS}
        executor = {{ kind = "native", prover = "test" }}
        {settings}
    "#
    );
    let plan = Arc::new(Plan::compile(&workflow(&text), &BTreeMap::new()).expect("a plan"));
    let log = Arc::new(MemoryLog::new());
    let dir = tempfile::tempdir().expect("temporary directory");
    let blobs = Arc::new(BlobStore::open(dir.path()).expect("a store"));
    let (coordinator, handle) = Coordinator::open(plan, log, coordinator::Options::default())
        .await
        .expect("an empty log");
    let (stop, shutdown) = shutdown::channel();
    let run = tokio::spawn(coordinator.run(shutdown.clone()));
    let mut crew = Vec::new();
    for number in 0..WORKERS {
        let executor: Arc<dyn Executor> = Arc::new(Timed(match number {
            0 => FAST * 10,
            _ => FAST,
        }));
        let options = dispatcher::Options {
            name: format!("prove-{number}").into(),
            group: "prove".into(),
            labels: BTreeSet::new(),
            memory: 0,
            f_max: 1,
            heartbeat: Duration::from_secs(1),
        };
        let executors = Arc::new(BTreeMap::from([(StageIx(0), executor)]));
        let dispatcher = Dispatcher::new(options, executors, blobs.clone(), handle.worker());
        crew.push(tokio::spawn(dispatcher.run(shutdown.clone())));
    }
    let (observer, mut settled) = mpsc::unbounded_channel();
    handle.observe(observer).await.expect("it runs");
    let mut tick = tokio::time::interval(FAST + FAST / 2);
    for block in 0..WARM_UP + MEASURED {
        tick.tick().await;
        let submitted = handle.source().submit(request(QueueIx(0), block)).await;
        assert_eq!(submitted.expect("it runs"), Reply::Accepted);
    }
    let mut took = Vec::new();
    for _ in 0..WARM_UP + MEASURED {
        let next = tokio::time::timeout(PATIENCE, settled.recv()).await;
        let settled = next.expect("it goes on").expect("it runs");
        let timing = settled.timing.expect("a worker completed it");
        if settled.task.id.block >= WARM_UP {
            took.push(timing.waited + timing.leased);
        }
    }
    stop.raise(Level::Stop);
    for worker in crew {
        // The coordinator may have gone first.
        let _ = worker.await.expect("no panic");
    }
    run.await.expect("no panic").expect("no error");
    took.sort_unstable();
    took[took.len() * 99 / 100]
}

#[tokio::test(start_paused = true)]
async fn one_slow_worker_does_not_make_the_tail() {
    let plain = p99("").await;
    let hedged = p99("hedge = { percentile = 90, min = \"30ms\" }").await;
    let two_of_three = p99("copies = 3\naccept = 2").await;
    println!("P99 with one of {WORKERS} workers 10x slower ({FAST:?} a task):");
    println!("  one worker for each task  {plain:?}");
    println!("  hedged at P90             {hedged:?}");
    println!("  2 of 3                    {two_of_three:?}");
    assert!(plain >= FAST * 10, "{plain:?}");
    assert!(hedged < plain / 2, "{hedged:?} against {plain:?}");
    assert!(
        two_of_three < plain / 2,
        "{two_of_three:?} against {plain:?}"
    );
}

/// Whether a process runs: it exists, and is not a zombie that its parent has not reaped yet.
fn runs(pid: &str) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    let state = stat.rsplit(')').next().unwrap_or_default().trim_start();
    !matches!(state.as_bytes().first(), Some(b'Z' | b'X') | None)
}

fn pids(dir: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(dir.join("pids")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

async fn until(what: &str, is: impl Fn() -> bool) {
    let began = Instant::now();
    while !is() {
        assert!(began.elapsed() < PATIENCE, "it never comes to: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The first copy waits for the other one, and wins; the other sleeps until it is killed.
const RACE: &str = r#"
if mkdir "$DIR/won" 2>/dev/null; then
  while [ ! -s "$DIR/pids" ]; do sleep 0.01; done
  cp "$2" "$4"
else
  sleep 1000 & printf '%s\n%s\n' $$ $! > "$DIR/new"; mv "$DIR/new" "$DIR/pids"; wait
fi
"#;

fn race(dir: &Path, settings: &str) -> String {
    format!(
        r#"
        name = "race"
        [[source]]
        name = "in"
        kind = "submit"
        output = "blocks"
        [[dispatcher]]
        name = "prove"
        input = "blocks"
        output = "proofs"
        {settings}
        executor = {{ kind = "process", program = "/bin/sh", args = ["-c", '''{RACE}''', "x"], env = {{ DIR = {dir:?} }} }}
        [sequencer]
        input = "proofs"
    "#
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn the_loser_of_a_race_is_killed_with_its_children() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let text = race(dir.path(), "workers = 2\ncopies = 2");
    let mut mill = Background::start(&text, &Script::open(), &dir.path().join("state"), true).await;
    assert_eq!(mill.submit("blocks", 0, "{}").await, Reply::Accepted);
    assert_eq!(mill.next().await.first, 0);
    let losers = pids(dir.path());
    assert_eq!(losers.len(), 2, "the shell and its child");
    until("the loser is gone", || !losers.iter().any(|pid| runs(pid))).await;
    let status = mill.handle.operator().status().await.expect("it runs");
    let counters = stage(&status, "prove").counters;
    assert_eq!(
        (counters.leased, counters.completed, counters.failed),
        (2, 1, 0)
    );
    mill.stop.raise(Level::Stop);
    mill.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_block_is_killed_and_can_be_retried() {
    let dir = tempfile::tempdir().expect("temporary directory");
    std::fs::create_dir(dir.path().join("won")).expect("a directory");
    let text = race(dir.path(), "");
    let mut mill = Background::start(&text, &Script::open(), &dir.path().join("state"), true).await;
    assert_eq!(mill.submit("blocks", 0, "{}").await, Reply::Accepted);
    until("it sleeps", || pids(dir.path()).len() == 2).await;
    let sleepers = pids(dir.path());
    assert!(sleepers.iter().all(|pid| runs(pid)));

    let handle = &mill.handle;
    assert_eq!(
        handle
            .operator()
            .cancel(Target::Block(7))
            .await
            .expect("it runs"),
        Reply::NotFound
    );
    assert_eq!(
        handle
            .operator()
            .cancel(Target::Block(0))
            .await
            .expect("it runs"),
        Reply::Accepted
    );
    until("it is gone", || !sleepers.iter().any(|pid| runs(pid))).await;
    let task = TaskId {
        stage: "prove".into(),
        block: 0,
        part: Part::whole(),
    };
    let dead = task.clone();
    let reason = handle
        .examine(move |core| core.dead_letter(&dead).map(|dead| dead.reason.clone()))
        .await
        .expect("it runs");
    assert_eq!(reason.as_deref(), Some("cancelled by an operator"));
    assert_eq!(
        handle
            .operator()
            .cancel(Target::Task(task.clone()))
            .await
            .expect("it runs"),
        Reply::NotFound
    );
    assert_eq!(
        handle
            .operator()
            .cancel(Target::All)
            .await
            .expect("it runs"),
        Reply::NotFound
    );

    std::fs::remove_dir(dir.path().join("won")).expect("it is there");
    assert_eq!(
        handle.operator().retry_dead(task).await.expect("it runs"),
        Reply::Accepted
    );
    assert_eq!(mill.next().await.first, 0);
    mill.stop.raise(Level::Stop);
    mill.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_results_of_three_go_on_as_an_array() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let text = one_stage("two", "workers = 3\ncopies = 3\naccept = 2", "");
    let mut mill = Background::start(&text, &Script::open(), dir.path(), true).await;
    for block in 0..10 {
        assert_eq!(
            mill.submit("blocks", block, "{\"a\":1}").await,
            Reply::Accepted
        );
    }
    for block in 0..10 {
        let emitted = mill.next().await;
        assert_eq!(emitted.first, block);
        assert_eq!(&emitted.bytes[..], b"[{\"a\":1},{\"a\":1}]");
    }
    mill.stop.raise(Level::Stop);
    mill.ended().await;
}
