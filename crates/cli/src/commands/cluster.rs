//! `proofmill coordinator`, `dispatcher`, `collector`, `sequencer` and `source`

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use proofmill_api::{AuditLog, Operations, Submissions, metrics, over_bus};
use proofmill_bus::Connection;
use proofmill_files::{DirectoryLock, make_private_directory};
use proofmill_orchestrator::cluster::{self, LedWorkflows, ProcessContext};
use proofmill_orchestrator::mill::Registry;
use proofmill_orchestrator::remote::Role;
use proofmill_orchestrator::shutdown::Level;
use proofmill_workflow::{Source, SourceKind, Workflow};
use tokio::task::JoinSet;

use crate::args::MetricsArg;
use crate::args::cluster::{Collector, Coordinator, Dispatcher, Sequencer, SourceRole};
use crate::commands::run::{bind, key_notes};
use crate::commands::{check, push0};
use crate::ethproofs;
use crate::failure::Failure;
use crate::progress::Screen;
use crate::provers::{Keys, PartitionProvers};
use crate::{bus, intake, memory, output, provers, signals, state};

pub(crate) async fn coordinator(args: Coordinator) -> Result<(), Failure> {
    let workflows = args
        .files
        .iter()
        .map(|file| load(file))
        .collect::<Result<Vec<_>, _>>()?;
    let name = process_name(args.role.name.as_deref());
    let connection = bus::connect(&args.bus, Role::Coordinator, &name).await?;
    memory::start_releasing_pages();
    let screen = Screen::open();
    let shutdown = signals::listen(screen.clone(), args.role.drain)?;
    let led_workflows = LedWorkflows::default();
    let mut roles = JoinSet::new();
    let mut serving = JoinSet::new();
    let metrics_workflows = metrics::Workflows::default();
    serve_metrics(&args.metrics, &metrics_workflows, &screen, &mut serving).await?;
    let mut reporters = Vec::new();
    for workflow in &workflows {
        let audit = audit_log(args.audit_log.as_deref(), &workflow.name)?;
        let keys = Keys::in_directory(&args.keys.keys);
        let partition = PartitionProvers::on(&connection, &args.keys.keys);
        let registry = provers::registry_with(keys, Arc::new(|_| {}), partition);
        let context = context(&connection, workflow, registry, None, &name).await?;
        serving.spawn(serve_control(context.clone(), led_workflows.clone(), audit));
        metrics_workflows.add(&context.plan.workflow);
        serving.spawn(lead_metrics(
            context.clone(),
            led_workflows.clone(),
            metrics_workflows.clone(),
        ));
        if let Some((reporter, lock)) = open_reporter(workflow)? {
            reporter.show(&context.plan.workflow, &metrics_workflows);
            let observing = reporter.observing();
            serving.spawn(report(context.clone(), led_workflows.clone(), observing));
            reporters.push((reporter, lock));
        }
        let (led_workflows, shutdown) = (led_workflows.clone(), shutdown.clone());
        roles.spawn(async move {
            context
                .or_refusal(cluster::lead(context.clone(), led_workflows, shutdown))
                .await
        });
    }
    screen.note(&format!("coordinator {name}: ready"));
    while let Some(ended) = roles.join_next().await {
        ended.map_err(|error| Failure::new(error.to_string()))??;
    }
    serving.shutdown().await;
    for (reporter, _lock) in reporters {
        reporter.finish().await;
    }
    Ok(())
}

/// The reporter of a workflow that this process may lead, and the lock of its folder: each process reports what it has seen as
/// the leader.
fn open_reporter(
    workflow: &Workflow,
) -> Result<Option<(ethproofs::Reporter, DirectoryLock)>, Failure> {
    if workflow.ethproofs.is_none() {
        return Ok(None);
    }
    let parent = Path::new(state::ROOT).join(&workflow.name);
    let (folder, lock) = first_free(&parent, "coordinator")?;
    let reporter = ethproofs::Reporter::start(workflow, &folder.join(ethproofs::FOLDER), None)?;
    Ok(reporter.map(|reporter| (reporter, lock)))
}

/// Reports the work of a workflow to Ethproofs whenever this process leads it.
async fn report(
    context: ProcessContext,
    led_workflows: LedWorkflows,
    observing: ethproofs::Observing,
) {
    loop {
        let handle = led_workflows
            .wait_until_leading(&context.plan.workflow)
            .await;
        observing.observe(&handle, context.blobs.clone()).await;
        handle.gone().await;
        wait_until_forgotten(&context, &led_workflows).await;
    }
}

/// The audit log of a workflow in the directory for audit logs.
fn audit_log(directory: Option<&Path>, workflow: &str) -> Result<Option<AuditLog>, Failure> {
    let Some(directory) = directory else {
        return Ok(None);
    };
    let directory = directory.join(workflow);
    make_private_directory(&directory).map_err(|error| {
        let directory = directory.display();
        Failure::new(format!("cannot keep an audit log in {directory}: {error}"))
    })?;
    Ok(Some(AuditLog::in_directory(&directory)))
}

/// Serves operators' requests about a workflow over the bus whenever this process leads it.
async fn serve_control(
    context: ProcessContext,
    led_workflows: LedWorkflows,
    audit: Option<AuditLog>,
) {
    loop {
        let handle = led_workflows
            .wait_until_leading(&context.plan.workflow)
            .await;
        let operations = Operations::new(handle.operator(), handle.source(), context.blobs.clone())
            .with_workflow(context.workflow.clone());
        let operations = match &audit {
            Some(audit) => operations.with_audit(audit.clone()),
            None => operations,
        };
        tokio::select! {
            served = over_bus::serve(
                &context.connection,
                &context.blobs,
                &context.plan.workflow,
                &context.name,
                operations,
            ) => {
                if let Err(error) = served {
                    tracing::warn!(%error, "cannot answer questions over the bus");
                }
                handle.gone().await;
            }
            () = handle.gone() => {}
        }
        wait_until_forgotten(&context, &led_workflows).await;
    }
}

/// Serves metrics, if they are asked for.
async fn serve_metrics(
    args: &MetricsArg,
    workflows: &metrics::Workflows,
    screen: &Screen,
    serving: &mut JoinSet<()>,
) -> Result<(), Failure> {
    let Some(address) = args.metrics else {
        return Ok(());
    };
    let listener = bind("metrics", address).await?;
    let address = listener.local_addr()?;
    screen.note(&format!("metrics on http://{address}/metrics"));
    serving.spawn(metrics::serve(listener, workflows.clone()));
    Ok(())
}

/// Shows a workflow on the metrics page whenever this process leads it.
async fn lead_metrics(
    context: ProcessContext,
    led_workflows: LedWorkflows,
    workflows: metrics::Workflows,
) {
    loop {
        let handle = led_workflows
            .wait_until_leading(&context.plan.workflow)
            .await;
        workflows.lead(&handle).await;
        handle.gone().await;
        wait_until_forgotten(&context, &led_workflows).await;
    }
}

/// Waits until `led_workflows` no longer lists a leadership that has ended.
async fn wait_until_forgotten(context: &ProcessContext, led_workflows: &LedWorkflows) {
    while led_workflows
        .handle(&context.plan.workflow)
        .is_some_and(|handle| handle.is_gone())
    {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub(crate) async fn dispatcher(args: Dispatcher) -> Result<(), Failure> {
    let Some(file) = &args.file else {
        push0::refuse_workflow_options("dispatcher", &args.bus, &args.workers.workers)?;
        return push0::run_dispatcher(args.role.drain).await;
    };
    let workflow = load(file)?;
    let name = process_name(args.role.name.as_deref());
    let connection = bus::connect(&args.bus, Role::Dispatcher, &name).await?;
    let screen = Screen::open();
    let keys = Keys::in_directory(&args.keys.keys);
    let partition = PartitionProvers::on(&connection, &args.keys.keys);
    let registry = provers::registry_with(keys, key_notes(&screen), partition.clone());
    let (state, _lock) = match args.state {
        Some(state) => lock_directory(&state)?.ok_or_else(|| {
            Failure::new(format!("{} is used by another process", state.display()))
                .help("name another directory with --state")
        })?,
        None => first_free(&Path::new(state::ROOT).join(&workflow.name), "dispatcher")?,
    };
    let context = context(&connection, &workflow, registry, Some(state), &name).await?;
    let shutdown = signals::listen(screen.clone(), args.role.drain)?;
    screen.note(&format!("dispatcher {name}: ready"));
    memory::start_releasing_pages();
    let stages: BTreeSet<String> = args.stages.into_iter().collect();
    let workers: BTreeMap<String, usize> = args.workers.workers.into_iter().collect();
    let run = stages.clone();
    let shards = partition.serve_shards(
        &workflow,
        |stage| run.is_empty() || run.contains(&stage.name),
        &name,
    );
    let dispatchers = cluster::run_dispatchers(context.clone(), stages, workers, shutdown);
    tokio::select! {
        ended = context.or_refusal(dispatchers) => Ok(ended?),
        Err(failure) = shards => Err(failure),
    }
}

pub(crate) async fn collector(args: Collector) -> Result<(), Failure> {
    let Some(file) = &args.file else {
        push0::refuse_workflow_options("collector", &args.bus, &[])?;
        return push0::run_collector(args.role.drain).await;
    };
    let workflow = load(file)?;
    let name = process_name(args.role.name.as_deref());
    let connection = bus::connect(&args.bus, Role::Collector, &name).await?;
    let registry = provers::registry(Path::new(""));
    let context = context(&connection, &workflow, registry, None, &name).await?;
    let screen = Screen::open();
    let shutdown = signals::listen(screen.clone(), args.role.drain)?;
    screen.note(&format!("collector {name}: ready"));
    memory::start_releasing_pages();
    let stages: BTreeSet<String> = args.stages.into_iter().collect();
    let running = cluster::run_collectors(context.clone(), stages, shutdown);
    Ok(context.or_refusal(running).await?)
}

pub(crate) async fn sequencer(args: Sequencer) -> Result<(), Failure> {
    let workflow = load(&args.file)?;
    let name = process_name(args.role.name.as_deref());
    let connection = bus::connect(&args.bus, Role::Sequencer, &name).await?;
    let registry = provers::registry(&args.keys.keys);
    let context = context(&connection, &workflow, registry, args.state, &name).await?;
    let screen = Screen::open();
    let shutdown = signals::listen(screen.clone(), args.role.drain)?;
    let mut serving = JoinSet::new();
    serve_metrics(
        &args.metrics,
        &metrics::Workflows::default(),
        &screen,
        &mut serving,
    )
    .await?;
    screen.note(&format!("sequencer {name}: ready"));
    memory::start_releasing_pages();
    let running = cluster::run_sequencer(context.clone(), Vec::new(), shutdown);
    Ok(context.or_refusal(running).await?)
}

pub(crate) async fn source(args: SourceRole) -> Result<(), Failure> {
    let workflow = load(&args.file)?;
    let name = process_name(args.role.name.as_deref());
    let connection = bus::connect(&args.bus, Role::Source, &name).await?;
    let registry = provers::registry(Path::new(""));
    let context = context(&connection, &workflow, registry, None, &name).await?;
    let screen = Screen::open();
    let intake = intake::open(&args.intake, &screen).await?;
    let shutdown = signals::listen(screen.clone(), args.role.drain)?;
    let mut serving = JoinSet::new();
    serve_metrics(
        &args.metrics,
        &metrics::Workflows::default(),
        &screen,
        &mut serving,
    )
    .await?;
    screen.note(&format!("source {name}: ready"));
    memory::start_releasing_pages();
    let running = async {
        let Some(intake) = intake else {
            return cluster::run_sources(context.clone(), shutdown).await;
        };
        let intake_running = cluster::run_submissions(context.clone(), |port| {
            let submissions = Submissions::new(port, context.blobs.clone());
            let mut draining = shutdown.clone();
            intake.serve(submissions, async move {
                draining.reached(Level::Drain).await;
            })
        });
        let submits = |source: &Source| source.kind == SourceKind::Submit;
        if workflow.sources.iter().all(submits) {
            intake_running.await?;
            return Ok(BTreeMap::new());
        }
        let sources_running = cluster::run_sources(context.clone(), shutdown.clone());
        let ((), summaries) = tokio::try_join!(intake_running, sources_running)?;
        Ok(summaries)
    };
    let summaries = context.or_refusal(running).await?;
    for (name, source) in &summaries {
        let left = if source.ended { "" } else { "; more to come" };
        screen.note(&format!(
            "source {name}: {} accepted, {} known already, {} rejected{left}",
            source.accepted, source.duplicates, source.rejected
        ));
    }
    if args.json {
        output::line(serde_json::to_string(&summaries)?)?;
    }
    if summaries.values().all(|source| source.ended) {
        Ok(())
    } else {
        let message = "stopped before the sources ended; nothing is lost";
        Err(Failure::interrupted(message).help("run the same command again to go on"))
    }
}

pub(crate) fn load(file: &Path) -> Result<Workflow, Failure> {
    let (workflow, warnings) =
        check::validate(file).map_err(|found| check::refused(file, &found))?;
    check::warn(&warnings);
    Ok(workflow)
}

async fn context(
    connection: &Connection,
    workflow: &Workflow,
    registry: Registry,
    state: Option<PathBuf>,
    name: &str,
) -> Result<ProcessContext, Failure> {
    let state = state.unwrap_or_else(|| Path::new(state::ROOT).join(&workflow.name));
    let opened = ProcessContext::open(connection.clone(), workflow, registry, state, name);
    Ok(opened.await?)
}

/// A unique name for this process: the machine's name, the process id and a random number, so that it also differs from
/// the name of an earlier process of the same command.
pub(crate) fn process_name(machine: Option<&str>) -> String {
    use std::hash::{BuildHasher, RandomState};
    let machine = machine.map(str::to_owned).unwrap_or_else(|| {
        let system = rustix::system::uname();
        system.nodename().to_string_lossy().into_owned()
    });
    let plain = machine.chars().map(|character| {
        let fits = character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
        if fits { character } else { '-' }
    });
    let plain: String = plain.take(40).collect();
    let random = RandomState::new().hash_one(std::process::id()) as u16;
    format!("{plain}-{}-{random:04x}", std::process::id())
}

/// Locks the first directory `ROLE-N` in `parent` that no other process holds.
fn first_free(parent: &Path, role: &str) -> Result<(PathBuf, DirectoryLock), Failure> {
    let mut number = 1_u32;
    loop {
        if let Some(locked) = lock_directory(&parent.join(format!("{role}-{number}")))? {
            return Ok(locked);
        }
        number += 1;
    }
}

/// Makes `directory` and locks it until the lock is dropped. `None` if another process holds the lock.
fn lock_directory(directory: &Path) -> Result<Option<(PathBuf, DirectoryLock)>, Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(format!("cannot use {}: {error}", directory.display()))
    };
    make_private_directory(directory).map_err(failed)?;
    let lock = DirectoryLock::acquire(directory).map_err(failed)?;
    Ok(lock.ok().map(|lock| (directory.to_owned(), lock)))
}
