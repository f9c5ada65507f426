//! A running mill with durable state, through the library's public interface.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use bytes::Bytes;
use proofmill_bus::{BlobStore, Connection};
use proofmill_orchestrator::conversation::{Submit, Uniqueness};
use proofmill_orchestrator::coordinator::Handle;
use proofmill_orchestrator::core::{HostStatus, Routing, Settled};
use proofmill_orchestrator::id::Part;
use proofmill_orchestrator::message::Message;
use proofmill_orchestrator::mill::{Mill, Options, Registry, Summary};
use proofmill_orchestrator::payload::Payload;
use proofmill_orchestrator::plan::QueueIx;
use proofmill_orchestrator::port::SourcePort;
use proofmill_orchestrator::shutdown::{self, Level, Trigger};
use proofmill_orchestrator::sink::Emitted;
use proofmill_workflow::{LocalHost, Workflow, render, validate};
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::fleet::Fleet;
use super::state_disk::StateDisk;

/// Pause of [`RunningMill::settle`]: a little longer than a new leader waits for the others to
/// connect.
const SETTLING: Duration = Duration::from_millis(3200);

/// Longest wait for processes to join, and for a mill to finish its work.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running mill, and its other processes if it has a bus.
pub(crate) struct RunningMill {
    /// Port for submissions to the coordinator, through the bus if there is one.
    pub(crate) source: SourcePort,
    /// The handle of the coordinator, for reading its state.
    pub(crate) leader: Handle,
    pub(crate) blobs: Arc<BlobStore>,
    /// Tasks that have ended, each sent once its end is durable.
    pub(crate) settled: mpsc::UnboundedReceiver<Settled>,
    /// Emissions of the sequencer, after the sinks have them.
    pub(crate) emitted: mpsc::Receiver<Emitted>,
    stop: Trigger,
    run: JoinHandle<anyhow::Result<Summary>>,
    fleet: Option<Fleet>,
}

/// A workflow of one stage: tasks that are submitted to queue `tasks` are run by `dispatchers`
/// dispatchers with `executor`, an inline table of the workflow file.
pub(crate) fn one_stage(name: &str, dispatchers: u32, executor: &str) -> String {
    format!(
        r#"
        name = "{name}"
        [[source]]
        name = "bench"
        kind = "submit"
        output = "tasks"
        [[dispatcher]]
        name = "prove"
        input = "tasks"
        workers = {dispatchers}
        time_limit = "1m"
        executor = {executor}
        "#
    )
}

/// The workflow of [`one_stage`] with a sequencer, which emits the proofs in chain order. The
/// sequencer's table is the last one, so that a caller can add fields to it.
pub(crate) fn sequenced_stage(name: &str, dispatchers: u32, executor: &str) -> String {
    let stage = one_stage(name, dispatchers, executor);
    format!("{stage}output = \"proofs\"\n[sequencer]\ninput = \"proofs\"\n")
}

/// Whether an emitted payload names the block with which it was emitted.
pub(crate) fn is_block(emitted: &Emitted) -> bool {
    #[derive(Deserialize)]
    struct Payload {
        block: u64,
    }
    serde_json::from_slice::<Payload>(&emitted.bytes)
        .is_ok_and(|payload| payload.block == emitted.first)
}

/// Checks a workflow file's text as `proofmill check` does.
pub(crate) fn parse(text: &str, registry: &Registry) -> anyhow::Result<Workflow> {
    let host = LocalHost::new(registry.prover_names());
    match validate(text, Path::new("bench.toml"), &host) {
        Ok((workflow, _)) => Ok(workflow),
        Err(faults) => bail!("the experiment's workflow is wrong:\n{}", render(&faults)),
    }
}

// === impl RunningMill ===

impl RunningMill {
    /// Opens `state`, starts the roles of the workflow, and waits until the dispatchers have joined.
    /// With a bus, the dispatchers run in other processes, and collector processes are left to the
    /// caller.
    pub(crate) async fn start(
        workflow: &Workflow,
        registry: Registry,
        disk: &StateDisk,
        state: &Path,
    ) -> anyhow::Result<Self> {
        Self::start_routed(workflow, registry, disk, state, Routing::default()).await
    }

    /// Starts a mill like [`RunningMill::start`], with `routing` as the rule that assigns messages to
    /// collectors.
    pub(crate) async fn start_routed(
        workflow: &Workflow,
        registry: Registry,
        disk: &StateDisk,
        state: &Path,
        routing: Routing,
    ) -> anyhow::Result<Self> {
        let (stream, emitted) = mpsc::channel(1024);
        let mut options = Options {
            keep_running: true,
            routing,
            stream: Some(stream),
            ..Options::in_directory(state)
        };
        let bus = disk.bus(state);
        if let Some(bus) = &bus {
            options.bus = Some(Connection::open(bus.clone()).await?);
            let stages = workflow.dispatchers.iter();
            options.workers = stages.map(|stage| (stage.name.clone(), 0)).collect();
        }
        let mill = Mill::open(workflow, registry, options).await?;
        let (leader, blobs) = (mill.handle().clone(), mill.blobs().clone());
        let (observer, settled) = mpsc::unbounded_channel();
        leader.observe(observer).await?;
        let (stop, listener) = shutdown::channel();
        let run = tokio::spawn(async move { Ok(mill.run(listener).await?) });
        let (source, mut fleet) = match bus {
            None => (leader.source(), None),
            Some(bus) => {
                let mut fleet = Fleet::new(workflow, bus, state)?;
                fleet.start_dispatchers(workflow)?;
                let plan = leader.plan().clone();
                (fleet.submitter(blobs.clone(), plan).await?, Some(fleet))
            }
        };
        let workers: u32 = workflow.dispatchers.iter().map(|stage| stage.workers).sum();
        while leader.operator().status().await?.workers < workers as usize {
            if run.is_finished() {
                break;
            }
            if let Some(fleet) = &mut fleet {
                fleet.ensure_alive()?;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(Self {
            source,
            leader,
            blobs,
            settled,
            emitted,
            stop,
            run,
            fleet,
        })
    }

    /// The processes of the other roles.
    pub(crate) fn fleet(&mut self) -> anyhow::Result<&mut Fleet> {
        let fleet = self.fleet.as_mut();
        fleet.context("roles in processes of their own need --bus jetstream")
    }

    /// Waits until `count` processes keep partitions of collectors, and returns how many each keeps.
    pub(crate) async fn wait_for_collectors(
        &self,
        count: usize,
    ) -> anyhow::Result<Vec<HostStatus>> {
        let began = Instant::now();
        loop {
            let hosts = self.leader.operator().status().await?.hosts;
            if hosts.len() == count {
                return Ok(hosts);
            }
            anyhow::ensure!(
                began.elapsed() < PATIENCE,
                "{} collectors are there, not {count}",
                hosts.len()
            );
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// The queue called `name`.
    pub(crate) fn queue(&self, name: &str) -> anyhow::Result<QueueIx> {
        let queue = self.leader.plan().queue_named(name);
        queue.with_context(|| format!("the workflow has no queue {name:?}"))
    }

    /// The next task that a worker completed.
    pub(crate) async fn next_completed(&mut self) -> anyhow::Result<Settled> {
        loop {
            let settled = self.settled.recv().await.context("the mill has stopped")?;
            if settled.completed {
                return Ok(settled);
            }
        }
    }

    /// Waits until the mill is idle: no task is left that could run.
    pub(crate) async fn wait_until_idle(&self) -> anyhow::Result<()> {
        let idle = timeout(PATIENCE, self.leader.when_idle()).await;
        Ok(idle.context("the mill does not come to rest")??)
    }

    /// Waits until the leader notices at once that a process has gone. A leader that has just
    /// connected first gives all processes time to connect.
    pub(crate) async fn settle(&self) {
        tokio::time::sleep(SETTLING).await;
    }

    /// Takes the stream of emissions. `emitted` is an empty, closed stream afterwards.
    pub(crate) fn take_emitted(&mut self) -> mpsc::Receiver<Emitted> {
        let (_, nothing) = mpsc::channel(1);
        std::mem::replace(&mut self.emitted, nothing)
    }

    /// Takes the stream of ended tasks, which ends with the mill. `settled` is an empty, closed stream
    /// afterwards.
    pub(crate) fn take_settled(&mut self) -> mpsc::UnboundedReceiver<Settled> {
        let (_, nothing) = mpsc::unbounded_channel();
        std::mem::replace(&mut self.settled, nothing)
    }

    /// Ends the mill at once, with its unfinished work.
    pub(crate) fn abandon(self) {
        self.run.abort();
    }

    /// Drains and closes the mill, whose state is on disk when this returns.
    pub(crate) async fn finish(self) -> anyhow::Result<Summary> {
        self.stop.raise(Level::Drain);
        let ended = self.run.await.context("the mill panicked")?;
        // Only now: until the mill has ended, it needs the processes.
        drop(self.fleet);
        ended
    }
}

/// A message of one block with a JSON payload, from a producer of the experiment.
pub(crate) fn json_message(queue: QueueIx, block: u64, json: impl Into<Bytes>) -> Submit {
    Submit {
        producer: "bench".into(),
        queue,
        message: Message {
            first: block,
            last: block,
            part: Part::whole(),
            payload: Payload::json(json),
            needs: None,
            grouping: Vec::new(),
        },
        uniqueness: Uniqueness::Multiple,
        source_next: None,
        caller: None,
    }
}
