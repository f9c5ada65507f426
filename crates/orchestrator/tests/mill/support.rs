//! Mills for tests, and scripted provers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use proofmill_bus::OpenError;
use proofmill_orchestrator::conversation::{Reply, Submit, Uniqueness};
use proofmill_orchestrator::coordinator::Handle;
use proofmill_orchestrator::core::Core;
use proofmill_orchestrator::executor::{Context, Json, Prover, ProverError};
use proofmill_orchestrator::id::Part;
use proofmill_orchestrator::message::Message;
use proofmill_orchestrator::mill::{BlobSweep, Mill, MillError, Options, Registry, Summary};
use proofmill_orchestrator::payload::{Encoding, Payload};
use proofmill_orchestrator::plan::QueueIx;
use proofmill_orchestrator::shutdown::{self, Trigger};
use proofmill_orchestrator::sink::Emitted;
use proofmill_orchestrator::source::{self, SourceMessage};
use proofmill_workflow::{LocalHost, Workflow, render, validate};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Time limit of every wait; no test takes as long unless it is stuck.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// Script and log of the prover `test`.
#[derive(Clone, Default)]
pub(crate) struct Script(Arc<(Mutex<State>, Condvar)>);

#[derive(Default)]
struct State {
    /// Blocks below this one may pass.
    open_below: u64,
    /// Blocks that fail for good.
    cursed: BTreeSet<u64>,
    /// Number of times that each block was begun.
    begun: BTreeMap<u64, u32>,
    /// Stages and blocks in the order in which they were begun.
    order: Vec<(String, u64)>,
    cancelled: u32,
}

struct Scripted(Script);

// === impl Script ===

impl Script {
    /// A script under which no block passes until it is opened.
    pub(crate) fn closed() -> Self {
        Self::default()
    }

    /// A script under which every block passes.
    pub(crate) fn open() -> Self {
        let script = Self::default();
        script.open_below(u64::MAX);
        script
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.0.0.lock().expect("not poisoned"));
        self.0.1.notify_all();
        changed
    }

    /// Lets blocks below `block` pass.
    pub(crate) fn open_below(&self, block: u64) {
        self.with(|state| state.open_below = block);
    }

    /// Makes a block fail for good, or stops that.
    pub(crate) fn curse(&self, block: u64, cursed: bool) {
        self.with(|state| {
            if cursed {
                state.cursed.insert(block)
            } else {
                state.cursed.remove(&block)
            }
        });
    }

    /// Number of times that each block was begun.
    pub(crate) fn begun(&self) -> BTreeMap<u64, u32> {
        self.with(|state| state.begun.clone())
    }

    /// Stages and blocks in the order in which they were begun.
    pub(crate) fn order(&self) -> Vec<(String, u64)> {
        self.with(|state| state.order.clone())
    }

    /// Number of tasks whose cancellation the prover noticed.
    pub(crate) fn cancelled(&self) -> u32 {
        self.with(|state| state.cancelled)
    }

    /// Waits until it is so; fails the test if it never comes to `what`.
    pub(crate) async fn until(&self, what: &str, is: impl Fn(&Self) -> bool) {
        let began = Instant::now();
        while !is(self) {
            assert!(began.elapsed() < PATIENCE, "it never comes to: {what}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// A registry with the prover `test`, which returns its input.
    pub(crate) fn registry(&self) -> Registry {
        let mut registry = Registry::default();
        let script = self.clone();
        registry.prover("test", move |_| Ok(Scripted(script.clone())));
        registry
    }
}

impl Prover for Scripted {
    type Input = Json<Value>;
    type Output = Json<Value>;

    fn prove(&self, context: &Context, input: Json<Value>) -> Result<Json<Value>, ProverError> {
        let block = context.first;
        let (state, changed) = &*self.0.0;
        let mut state = state.lock().expect("not poisoned");
        *state.begun.entry(block).or_default() += 1;
        state.order.push((context.task.stage.to_string(), block));
        loop {
            if context.cancel.is_cancelled() {
                state.cancelled += 1;
                return Err(ProverError::Retry("cancelled".into()));
            }
            if block < state.open_below {
                break;
            }
            state = changed
                .wait_timeout(state, Duration::from_millis(5))
                .expect("not poisoned")
                .0;
        }
        if state.cursed.contains(&block) {
            return Err(ProverError::Permanent(format!("block {block} is cursed")));
        }
        Ok(input)
    }
}

/// A mill that runs in the background.
pub(crate) struct Background {
    pub(crate) handle: Handle,
    pub(crate) mill_blobs: Arc<proofmill_bus::BlobStore>,
    pub(crate) emitted: mpsc::Receiver<Emitted>,
    pub(crate) stop: Trigger,
    pub(crate) run: JoinHandle<Result<Summary, MillError>>,
}

/// Text of a workflow of one stage: messages submitted to `blocks` pass `prove`, which runs the prover `test`, and its
/// `proofs` are emitted. Further settings of the stage are in `stage`; those of the sequencer, and further sections,
/// in `sequencer`.
pub(crate) fn one_stage(name: &str, stage: &str, sequencer: &str) -> String {
    format!(
        r#"
        name = "{name}"
        [[source]]
        name = "in"
        kind = "submit"
        output = "blocks"
        [[dispatcher]]
        name = "prove"
        input = "blocks"
        output = "proofs"
        executor = {{ kind = "native", prover = "test" }}
        {stage}
        [sequencer]
        input = "proofs"
        {sequencer}
        "#
    )
}

pub(crate) fn workflow(text: &str) -> Workflow {
    match validate(text, Path::new("test.toml"), &LocalHost::new(["test"])) {
        Ok((workflow, _)) => workflow,
        Err(faults) => panic!("{}", render(&faults)),
    }
}

/// Opens a mill. Retries while an earlier one that was dropped still holds the directory.
pub(crate) async fn open(
    workflow: &Workflow,
    script: &Script,
    options: impl Fn() -> Options,
) -> Mill {
    let began = Instant::now();
    loop {
        let mut options = options();
        options.bus = crate::bus(&options.state).await;
        match Mill::open(workflow, script.registry(), options).await {
            Ok(mill) => return mill,
            Err(MillError::Open(OpenError::Locked(_)) | MillError::AlreadyLed { .. })
                if began.elapsed() < PATIENCE =>
            {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

// === impl Background ===

impl Background {
    /// Starts a mill; with `keep_running` it keeps running when it is idle.
    pub(crate) async fn start(
        text: &str,
        script: &Script,
        state: &Path,
        keep_running: bool,
    ) -> Self {
        Self::start_with(text, script, state, keep_running, BlobSweep::default()).await
    }

    /// Starts a mill that keeps running, with `sweep` as its schedule for blobs.
    #[allow(
        dead_code,
        reason = "the mills over JetStream have no directory of blobs"
    )]
    pub(crate) async fn start_sweeping(
        text: &str,
        script: &Script,
        state: &Path,
        sweep: BlobSweep,
    ) -> Self {
        Self::start_with(text, script, state, true, sweep).await
    }

    async fn start_with(
        text: &str,
        script: &Script,
        state: &Path,
        keep_running: bool,
        blob_sweep: BlobSweep,
    ) -> Self {
        let (stream, emitted) = mpsc::channel(1024);
        let options = || Options {
            keep_running,
            blob_sweep,
            stream: Some(stream.clone()),
            ..Options::in_directory(state)
        };
        let mill = open(&workflow(text), script, options).await;
        drop(stream);
        let (handle, mill_blobs) = (mill.handle().clone(), mill.blobs().clone());
        let (stop, shutdown) = shutdown::channel();
        let run = tokio::spawn(mill.run(shutdown));
        Self {
            handle,
            mill_blobs,
            emitted,
            stop,
            run,
        }
    }

    /// Waits for a run that ends by itself or was told to end, and returns its summary.
    pub(crate) async fn ended(self) -> Summary {
        let joined = tokio::time::timeout(PATIENCE, self.run)
            .await
            .expect("the run ends");
        joined.expect("no panic").expect("no error")
    }

    /// Drops the mill without a shutdown, as in a crash.
    pub(crate) async fn crash(self) {
        self.run.abort();
        assert!(
            self.run.await.is_err_and(|error| error.is_cancelled()),
            "it was still running"
        );
    }

    /// Submits a JSON payload and waits for the reply.
    pub(crate) async fn submit(&self, queue: &str, block: u64, json: impl Into<Bytes>) -> Reply {
        let queue = self
            .handle
            .plan()
            .queue_named(queue)
            .expect("a queue of the workflow");
        let message = message(block, json);
        source::submit(
            &self.handle.source(),
            &self.mill_blobs,
            &"test".into(),
            queue,
            message,
        )
        .await
        .expect("an answer")
    }

    /// Waits for the next emitted message.
    pub(crate) async fn next(&mut self) -> Emitted {
        let emitted = tokio::time::timeout(PATIENCE, self.emitted.recv()).await;
        emitted.expect("something leaves").expect("the mill runs")
    }

    /// Waits until the core satisfies a condition.
    pub(crate) async fn until(
        &self,
        what: &str,
        is: impl Fn(&Core) -> bool + Send + Sync + 'static,
    ) {
        let is = Arc::new(is);
        let began = Instant::now();
        loop {
            let is = is.clone();
            if self
                .handle
                .examine(move |core| is(core))
                .await
                .expect("the coordinator runs")
            {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "it never comes to: {what}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

/// A JSON message about one block.
pub(crate) fn message(block: u64, json: impl Into<Bytes>) -> SourceMessage {
    SourceMessage {
        first: block,
        last: block,
        part: Part::whole(),
        encoding: Encoding::Json,
        bytes: json.into(),
        needs: None,
        uniqueness: Uniqueness::Multiple,
        next: 0,
        caller: None,
    }
}

/// A message for `queue` with the payload `{}`.
pub(crate) fn request(queue: QueueIx, block: u64) -> Submit {
    Submit {
        producer: "test".into(),
        queue,
        message: Message {
            first: block,
            last: block,
            part: Part::whole(),
            payload: Payload::json(&b"{}"[..]),
            needs: None,
            grouping: Vec::new(),
        },
        uniqueness: Uniqueness::Multiple,
        source_next: None,
        caller: None,
    }
}

/// Counters and numbers of a stage.
pub(crate) fn stage<'a>(
    status: &'a proofmill_orchestrator::core::Status,
    name: &str,
) -> &'a proofmill_orchestrator::core::StageStatus {
    status
        .stages
        .iter()
        .find(|stage| &*stage.stage == name)
        .expect("a stage of the workflow")
}
