//! The dispatchers and sources that a workflow describes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proofmill_bus::BlobStore;
use proofmill_workflow as file;

use super::options::MillError;
use super::registry::{Registry, program_path};
use crate::dispatcher::{self, Dispatcher};
use crate::executor::engine::EngineExecutor;
use crate::executor::{Executor, Program};
use crate::plan::StageIx;
use crate::port::Ports;
use crate::source::{self, Pace, Source};
use proofmill_process::{ProcessExecutor, ProcessSpec, Sandbox};

/// A source with its options.
pub(crate) type ReadySource = (Box<dyn Source>, source::Options);

/// Everything needed to make the roles.
pub(crate) struct Roles<'a> {
    pub(crate) workflow: &'a file::Workflow,
    pub(crate) registry: &'a Registry,
    /// The directory for all files on this machine.
    pub(crate) state: &'a Path,
    /// The ports to the coordinator.
    pub(crate) ports: &'a Ports,
    pub(crate) blobs: &'a Arc<BlobStore>,
}

impl Roles<'_> {
    /// The directory for the scratch directories of programs.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.state.join("scratch")
    }

    /// Ends programs that an earlier run left running.
    pub(crate) async fn sweep_programs(&self) -> Result<(), MillError> {
        let mut stages = self.workflow.dispatchers.iter();
        if !stages.any(|stage| matches!(stage.executor, file::Executor::Process(_))) {
            return Ok(());
        }
        let swept = ProcessExecutor::sweep(&self.scratch()).await;
        swept.map(|_| ()).map_err(|source| MillError::Process {
            stage: "(programs left by an earlier run)".into(),
            source,
        })
    }

    /// The dispatchers of each stage, as many as `workers` states, else the workflow. `name` makes
    /// a dispatcher's name from "STAGE-NUMBER". If `stages` is given, only for these stages.
    pub(crate) fn dispatchers(
        &self,
        workers: &BTreeMap<String, usize>,
        stages: Option<&BTreeSet<String>>,
        name: &dyn Fn(&str) -> String,
    ) -> Result<Vec<Dispatcher>, MillError> {
        let plan = self.ports.plan();
        let scratch = self.scratch();
        let mut executors: BTreeMap<String, BTreeMap<StageIx, Arc<dyn Executor>>> = BTreeMap::new();
        for stage in &self.workflow.dispatchers {
            let Some(ix) = plan.stage_named(&stage.name) else {
                continue;
            };
            let executor = executor(&self.workflow.name, stage, self.registry, &scratch)?;
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
            if stages.is_some_and(|stages| !stages.contains(&stage.name)) {
                continue;
            }
            let configured = usize::try_from(stage.workers).unwrap_or(usize::MAX);
            let workers = workers.get(&stage.name).copied().unwrap_or(configured);
            for number in 0..workers {
                let options = dispatcher::Options {
                    name: name(&format!("{}-{number}", stage.name)).into(),
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
                    self.ports.worker(),
                ));
            }
        }
        Ok(dispatchers)
    }

    /// The sources, except those that only accept submissions.
    pub(crate) fn sources(&self) -> Result<Vec<ReadySource>, MillError> {
        let stages = self.workflow.sources.iter();
        let made = stages.map(|stage| self.source(stage));
        made.filter_map(Result::transpose).collect()
    }

    /// One of the workflow's sources; `None` if it only accepts submissions.
    pub(crate) fn source(&self, stage: &file::Source) -> Result<Option<ReadySource>, MillError> {
        let setup = |why: String| MillError::Setup {
            what: format!("source {:?}", stage.name),
            why,
        };
        let source: Box<dyn Source> = match &stage.kind {
            file::SourceKind::Submit => return Ok(None),
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
            file::SourceKind::Ethereum {
                rpc,
                from,
                confirmations,
                poll,
                full,
                payload,
                reorg_depth,
            } => {
                let options = source::ethereum::Options {
                    rpc: rpc.clone(),
                    from: *from,
                    confirmations: *confirmations,
                    poll: *poll,
                    full: *full,
                    payload: payload.clone(),
                    reorg_depth: *reorg_depth as usize,
                };
                let made = source::ethereum::Ethereum::new(options);
                Box::new(made.map_err(|error| setup(error.to_string()))?)
            }
            file::SourceKind::Jsonl { file } => Box::new(source::Jsonl::new(file)),
            kind => match self.registry.make_source(kind) {
                Some(made) => made.map_err(setup)?,
                None => {
                    return Err(setup("this program has no source of this kind".to_owned()));
                }
            },
        };
        let plan = self.ports.plan();
        let outputs = stage
            .outputs
            .iter()
            .filter_map(|queue| plan.queue_named(queue));
        let options = source::Options {
            name: stage.name.as_str().into(),
            outputs: outputs.collect(),
            pace: stage.rate.map(|rate| Pace::new(rate.interval())),
        };
        Ok(Some((source, options)))
    }
}

/// The executor of a stage of the workflow with this name; programs have their scratch directories in `scratch`.
pub(crate) fn executor(
    workflow: &str,
    stage: &file::Dispatcher,
    registry: &Registry,
    scratch: &Path,
) -> Result<Arc<dyn Executor>, MillError> {
    Ok(match &stage.executor {
        file::Executor::Process(process) => Arc::new(program(stage, process, scratch)?),
        file::Executor::Native { prover, params } => {
            let made = registry.make_executor(stage, prover, params);
            made.map_err(|why| setup(stage, why))?
        }
        file::Executor::Engine(engine) => {
            let endpoints = registry.make_endpoints(engine);
            let endpoints = endpoints.map_err(|why| setup(stage, why))?;
            let limit = stage.time_limit;
            Arc::new(EngineExecutor::new(workflow, engine, limit, endpoints))
        }
    })
}

fn setup(stage: &file::Dispatcher, why: String) -> MillError {
    MillError::Setup {
        what: format!("dispatcher {:?}", stage.name),
        why,
    }
}

/// The confinement of a program, from the workflow file's. `proofmill-process` does not know the file.
pub(super) fn sandbox(sandbox: file::Sandbox) -> Sandbox {
    match sandbox {
        file::Sandbox::Basic => Sandbox::Basic,
        file::Sandbox::Strict { pids_limit } => Sandbox::Strict {
            pids_limit,
            cgroup: None,
        },
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
    spec.inherit_env.clone_from(&process.inherit_env);
    spec.sandbox = sandbox(process.sandbox);
    spec.input_flag.clone_from(&process.input_flag);
    spec.output_flag.clone_from(&process.output_flag);
    spec.time_limit = stage.time_limit;
    spec.memory_limit = process.memory_limit;
    // The captured output is kept with every attempt, in a record of the log.
    spec.capture_limit = 16 * 1024;
    let executor =
        ProcessExecutor::new(spec, scratch.to_owned()).map_err(|source| MillError::Process {
            stage: stage.name.clone(),
            source,
        })?;
    Ok(Program::new(executor, stage.fan_out))
}
