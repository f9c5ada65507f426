//! `proofmill dispatcher` and `collector` by the environment alone, and `proofmill import-env`

use std::sync::Arc;

use proofmill_push0::import::Deployment;
use proofmill_push0::{Config, Environment, Notices, RunError, collector, dispatcher};
use proofmill_telemetry::console_line;

use crate::args::DrainArg;
use crate::args::cluster::{BusArgs, ImportEnv};
use crate::failure::Failure;
use crate::progress::Screen;
use crate::{memory, output, signals, state};

const HELP: &str = "the variables are those of push0 (docs/push0.md); for a workflow on a cluster name \
                    its file and the bus";

/// A dispatcher on plain queues.
pub(crate) async fn run_dispatcher(drain: DrainArg) -> Result<(), Failure> {
    let config = environment()?;
    let screen = Screen::open();
    let shutdown = signals::listen(screen.clone(), drain)?;
    memory::settle();
    let ran = dispatcher::run(config, shutdown, notices(screen)).await;
    ran.map_err(failure)
}

/// A collector on plain queues, or a source of blocks for them.
pub(crate) async fn run_collector(drain: DrainArg) -> Result<(), Failure> {
    let config = environment()?;
    let screen = Screen::open();
    let shutdown = signals::listen(screen.clone(), drain)?;
    memory::settle();
    let ran = collector::run(config, shutdown, notices(screen)).await;
    ran.map_err(failure)
}

/// Refuses what is for a workflow's role where no workflow is named: it would be passed over.
pub(crate) fn refuse_workflow_options(
    role: &str,
    bus: &BusArgs,
    workers: &[(String, usize)],
) -> Result<(), Failure> {
    let named = format!("name its file: proofmill {role} workflow.toml");
    if let Some((stage, count)) = workers.first() {
        let message = format!(
            "--workers {stage}={count} is for the {role} of a workflow, and no workflow is named"
        );
        return Err(Failure::usage(message).help(named));
    }
    if bus.url.is_none() {
        return Ok(());
    }
    if std::env::var_os("NATS_URL").is_some_and(|url| !url.is_empty()) {
        // It may be in the environment of everything on this machine.
        let instead = "what is used is NATS_URL";
        console_line(format!(
            "note: --bus (PROOFMILL_BUS) is for the {role} of a workflow, and not obeyed: {instead}"
        ));
        return Ok(());
    }
    let message = format!("--bus is for the {role} of a workflow, and no workflow is named");
    Err(Failure::usage(message).help(format!(
        "{named} --bus URL; in push0's place the server is in NATS_URL (docs/push0.md)"
    )))
}

fn environment() -> Result<Config, Failure> {
    Environment::read(|name| std::env::var(name).ok())
        .map_err(|error| failure(RunError::Environment(error)))
}

/// What a role says of itself goes to the screen.
fn notices(screen: Screen) -> Notices {
    Arc::new(move |text| screen.note(text))
}

fn failure(error: RunError) -> Failure {
    match error {
        RunError::Environment(error) => Failure::usage(error.to_string()).help(HELP),
        error => error.into(),
    }
}

/// A deployment's environments as a workflow.
pub(crate) fn import(args: &ImportEnv) -> Result<(), Failure> {
    let deployment = Deployment::read(&args.from)?;
    let imported = proofmill_push0::import::to_workflow(&deployment)?;
    let screen = Screen::open();
    for remark in &imported.remarks {
        screen.note(&format!("note: {remark}"));
    }
    match &args.output {
        None => output::line(imported.workflow.trim_end()),
        Some(path) if path.exists() && !args.force => Err(Failure::usage(format!(
            "{} is there already",
            path.display()
        ))
        .help("name another file with -o, or overwrite it with --force")),
        Some(path) => state::write_whole(path, imported.workflow.as_bytes()),
    }
}
