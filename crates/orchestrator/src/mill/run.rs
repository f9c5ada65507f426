//! Starting every role, and ending them in order.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use proofmill_bus::{BlobStore, Digest, EmbeddedLog};
use proofmill_workflow as file;
use tokio::task::{JoinHandle, JoinSet};

use super::options::{MillError, Options, SourceSummary, Summary};
use super::registry::{Registry, program_path};
use crate::coordinator::{self, Coordinator, CoordinatorError, CoordinatorGone, Handle};
use crate::dispatcher::{self, Dispatcher};
use crate::executor::process::{ProcessExecutor, ProcessSpec};
use crate::executor::{Executor, Program};
use crate::plan::{Plan, StageIx};
use crate::shutdown::{self, Level, Shutdown, Trigger};
use crate::sink::{self, Directory, Sink};
use crate::source::{self, Pace, Source};

/// Unreferenced blobs are removed once they are this old: a blob is written before the record that
/// refers to it.
const BLOB_GRACE: Duration = Duration::from_secs(600);

/// Between two removals of unreferenced blobs.
const BLOB_SWEEP: Duration = Duration::from_secs(300);

/// A source and how to run it.
type ReadySource = (Box<dyn Source>, source::Options);

/// A workflow that is open: its coordinator runs, so that it can be asked and told. Nothing is
/// proved before [`Mill::run`].
pub struct Mill {
    workflow: file::Workflow,
    registry: Registry,
    options: Options,
    log: Arc<EmbeddedLog>,
    blobs: Arc<BlobStore>,
    handle: Handle,
    coordinator: JoinHandle<Result<(), CoordinatorError>>,
    stop_coordinator: Trigger,
}

// === impl Mill ===

impl Mill {
    /// Opens the state, replays the log, starts the coordinator.
    pub async fn open(
        workflow: &file::Workflow,
        registry: Registry,
        options: Options,
    ) -> Result<Self, MillError> {
        let plan = Arc::new(Plan::compile(workflow, registry.strategies())?);
        let state = &options.state;
        make_private(state).map_err(|source| MillError::State {
            path: state.clone(),
            source,
        })?;
        let log = Arc::new(EmbeddedLog::open(
            state.join("log"),
            proofmill_bus::Options::default(),
        )?);
        let blobs = Arc::new(BlobStore::open(state.join("blobs"))?);
        let opened = Coordinator::open(plan, log.clone(), coordinator::Options::default()).await?;
        let (coordinator, handle) = opened;
        let (stop_coordinator, shutdown) = shutdown::channel();
        Ok(Self {
            workflow: workflow.clone(),
            registry,
            options,
            log,
            blobs,
            handle,
            coordinator: tokio::spawn(coordinator.run(shutdown)),
            stop_coordinator,
        })
    }

    /// The way to the coordinator.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Where large payloads are.
    pub fn blobs(&self) -> &Arc<BlobStore> {
        &self.blobs
    }

    /// Runs every role until the sources have ended and nothing moves, or until `shutdown`.
    pub async fn run(mut self, shutdown: Shutdown) -> Result<Summary, MillError> {
        let ran = self.run_roles(shutdown).await;
        // If the coordinator stopped, everything else only says so: its reason is the reason.
        let closed = self.close().await;
        match ran {
            Err(error) if error.is_gone() => Err(closed.err().unwrap_or(error)),
            Err(error) => Err(error),
            Ok(summary) => closed.map(|()| summary),
        }
    }

    async fn run_roles(&mut self, mut shutdown: Shutdown) -> Result<Summary, MillError> {
        let (stop_services, services) = shutdown::channel();
        let (stop_sink, sink_shutdown) = shutdown::channel();
        let dispatchers = self.dispatchers()?;
        let scratch = self.scratch();
        if self.runs_programs() {
            ProcessExecutor::sweep(&scratch)
                .await
                .map_err(|source| MillError::Process {
                    stage: "(programs left by an earlier run)".into(),
                    source,
                })?;
        }
        let sources = self.sources()?;
        let sinks = self.sinks()?;

        let sink_options = sink::Options {
            sinks,
            stream: self.options.stream.take(),
        };
        let mut sink = tokio::spawn(sink::run(
            sink_options,
            self.handle.clone(),
            self.blobs.clone(),
            sink_shutdown,
        ));
        let mut sweeping = JoinSet::new();
        sweeping.spawn(sweep_blobs(self.handle.clone(), self.blobs.clone()));
        let mut working: JoinSet<Result<(), CoordinatorGone>> = JoinSet::new();
        for dispatcher in dispatchers {
            working.spawn(dispatcher.run(services.clone()));
        }
        let mut sourcing = JoinSet::new();
        for (source, options) in sources {
            let name = options.name.to_string();
            let (handle, blobs) = (self.handle.clone(), self.blobs.clone());
            let services = services.clone();
            sourcing.spawn(async move {
                (
                    name,
                    source::run(source, options, handle, blobs, services).await,
                )
            });
        }

        let mut summaries = BTreeMap::new();
        let mut failure: Option<MillError> = None;
        let idle = self.handle.clone();
        let gone = self.handle.clone();
        let stay = self.options.stay;
        let ended = async {
            while let Some(joined) = sourcing.join_next().await {
                match joined {
                    Ok((name, Ok(summary))) => {
                        summaries.insert(name, SourceSummary::from(summary));
                    }
                    Ok((_, Err(error))) => return Err(MillError::from(error)),
                    Err(error) => return Err(MillError::Panicked(error.to_string())),
                }
            }
            if stay {
                std::future::pending::<()>().await;
            }
            idle.when_idle().await.map_err(MillError::from)
        };
        tokio::select! {
            result = ended => failure = result.err(),
            () = gone.gone() => return Err(CoordinatorGone.into()),
            joined = &mut sink => {
                failure = Some(match joined {
                    Ok(_) => CoordinatorGone.into(),
                    Err(error) => MillError::Panicked(error.to_string()),
                });
            }
            () = shutdown.reached(Level::Drain) => {}
        }
        let interrupted = shutdown.level() > Level::Run;

        self.handle.drain().await?;
        stop_services.raise(Level::Drain);
        let mut drained = true;
        loop {
            tokio::select! {
                joined = working.join_next() => match joined {
                    None => break,
                    Some(Err(error)) => failure = Some(MillError::Panicked(error.to_string())),
                    Some(Ok(_)) => {}
                },
                () = shutdown.reached(Level::Stop), if drained => {
                    drained = false;
                    stop_services.raise(Level::Stop);
                }
            }
        }
        // A source that was told to finish has its last acknowledgements to take.
        loop {
            let joined = tokio::select! {
                joined = sourcing.join_next() => joined,
                () = shutdown.reached(Level::Stop) => break,
            };
            match joined {
                None => break,
                Some(Ok((name, Ok(summary)))) => {
                    summaries.insert(name, SourceSummary::from(summary));
                }
                Some(Ok((_, Err(error)))) => {
                    failure.get_or_insert(error.into());
                }
                Some(Err(error)) => {
                    failure.get_or_insert(MillError::Panicked(error.to_string()));
                }
            }
        }
        // What is complete by now still leaves, unless there is a hurry.
        if drained && failure.is_none() {
            tokio::select! {
                drained = self.handle.when_drained() => drained?,
                () = shutdown.reached(Level::Stop) => {}
            }
        }
        sweeping.abort_all();
        let status = self.handle.status().await?;
        stop_sink.raise(Level::Stop);
        match failure {
            Some(failure) => Err(failure),
            None => Ok(Summary {
                status,
                sources: summaries,
                interrupted,
            }),
        }
    }

    /// Stops the coordinator and closes the log: what was accepted is durable when this returns.
    pub async fn close(self) -> Result<(), MillError> {
        self.stop_coordinator.raise(Level::Stop);
        let stopped = match self.coordinator.await {
            Ok(stopped) => stopped.map_err(MillError::from),
            Err(error) => Err(MillError::Panicked(error.to_string())),
        };
        let closed = self.log.close().await;
        stopped?;
        closed.map_err(|failure| CoordinatorError::Log(failure).into())
    }

    fn scratch(&self) -> PathBuf {
        self.options.state.join("scratch")
    }

    fn runs_programs(&self) -> bool {
        let mut stages = self.workflow.dispatchers.iter();
        stages.any(|stage| matches!(stage.executor, file::Executor::Process(_)))
    }

    fn dispatchers(&self) -> Result<Vec<Dispatcher>, MillError> {
        let plan = self.handle.plan();
        let scratch = self.scratch();
        let mut executors: BTreeMap<String, BTreeMap<StageIx, Arc<dyn Executor>>> = BTreeMap::new();
        for stage in &self.workflow.dispatchers {
            let Some(ix) = plan.stage_named(&stage.name) else {
                continue;
            };
            let executor: Arc<dyn Executor> = match &stage.executor {
                file::Executor::Process(process) => Arc::new(program(stage, process, &scratch)?),
                file::Executor::Native { prover, params } => {
                    let made = self.registry.make_executor(stage, prover, params);
                    let what = || format!("dispatcher {:?}", stage.name);
                    made.map_err(|why| MillError::Setup { what: what(), why })?
                }
            };
            executors
                .entry(stage.group.clone())
                .or_default()
                .insert(ix, executor);
        }
        let executors: BTreeMap<String, _> = executors
            .into_iter()
            .map(|(group, stages)| (group, Arc::new(stages)))
            .collect();
        let mut dispatchers = Vec::new();
        for stage in &self.workflow.dispatchers {
            let configured = usize::try_from(stage.workers).unwrap_or(usize::MAX);
            let workers = self
                .options
                .workers
                .get(&stage.name)
                .copied()
                .unwrap_or(configured);
            for number in 0..workers {
                let options = dispatcher::Options {
                    name: format!("{}-{number}", stage.name).into(),
                    group: stage.group.as_str().into(),
                    labels: stage.labels.iter().cloned().collect::<BTreeSet<_>>(),
                    memory: stage.memory_available.unwrap_or(u64::MAX),
                    f_max: stage.f_max as usize,
                    heartbeat: stage.policy.heartbeat,
                };
                dispatchers.push(Dispatcher::new(
                    options,
                    executors[&stage.group].clone(),
                    self.blobs.clone(),
                    self.handle.clone(),
                ));
            }
        }
        Ok(dispatchers)
    }

    fn sources(&self) -> Result<Vec<ReadySource>, MillError> {
        if !self.options.run_sources {
            return Ok(Vec::new());
        }
        let plan = self.handle.plan();
        let mut sources = Vec::new();
        for stage in &self.workflow.sources {
            let setup = |why: String| MillError::Setup {
                what: format!("source {:?}", stage.name),
                why,
            };
            let source: Box<dyn Source> = match &stage.kind {
                file::SourceKind::Submit => continue,
                file::SourceKind::Range {
                    start,
                    end,
                    chunk,
                    payload,
                } => {
                    let payload = payload.clone();
                    let make = move |first, last| {
                        serde_json::to_vec(&payload.render(first, last))
                            .unwrap_or_default()
                            .into()
                    };
                    Box::new(source::Range::new(*start, *end, u64::from(*chunk), make))
                }
                file::SourceKind::Jsonl { file } => Box::new(source::Jsonl::new(file)),
                kind => match self.registry.make_source(kind) {
                    Some(made) => made.map_err(setup)?,
                    None => {
                        return Err(setup("this program has no source of this kind".to_owned()));
                    }
                },
            };
            let outputs = stage
                .outputs
                .iter()
                .filter_map(|queue| plan.queue_named(queue));
            let options = source::Options {
                name: stage.name.as_str().into(),
                outputs: outputs.collect(),
                pace: stage.rate.map(|rate| Pace::new(rate.interval())),
            };
            sources.push((source, options));
        }
        Ok(sources)
    }

    fn sinks(&mut self) -> Result<Vec<Box<dyn Sink>>, MillError> {
        let mut sinks = std::mem::take(&mut self.options.sinks);
        let directory = self
            .workflow
            .sequencer
            .as_ref()
            .and_then(|s| s.directory.as_ref());
        if let Some(directory) = directory {
            sinks.insert(
                0,
                Box::new(Directory::open(&self.options.state.join(directory))?),
            );
        }
        Ok(sinks)
    }
}

fn program(
    stage: &file::Dispatcher,
    process: &file::ProcessExecutor,
    scratch: &Path,
) -> Result<Program, MillError> {
    let mut spec = ProcessSpec::new(program_path(&process.program));
    spec.args.clone_from(&process.args);
    spec.env.clone_from(&process.env);
    spec.input_flag.clone_from(&process.input_flag);
    spec.output_flag.clone_from(&process.output_flag);
    spec.time_limit = stage.time_limit;
    spec.memory_limit = process.memory_limit;
    // Kept with every attempt, in a record of the log.
    spec.capture_limit = 16 * 1024;
    let executor =
        ProcessExecutor::new(spec, scratch.to_owned()).map_err(|source| MillError::Process {
            stage: stage.name.clone(),
            source,
        })?;
    Ok(Program::new(executor, stage.fan_out))
}

/// Makes a directory that only this user can look into.
fn make_private(path: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

async fn sweep_blobs(coordinator: Handle, blobs: Arc<BlobStore>) {
    loop {
        let Ok(live) = coordinator.live_blobs().await else {
            return;
        };
        let live: HashSet<Digest> = live.into_iter().map(Digest::from).collect();
        if let Err(error) = blobs.sweep(&live, BLOB_GRACE).await {
            tracing::warn!(%error, "cannot remove unreferenced blobs");
        }
        tokio::time::sleep(BLOB_SWEEP).await;
    }
}
