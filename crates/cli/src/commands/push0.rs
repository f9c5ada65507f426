//! `proofmill dispatcher` and `collector` configured by the environment alone, and `proofmill import-env`

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proofmill_files::{Visibility, folder_of};
use proofmill_push0::import::Deployment;
use proofmill_push0::{Config, Environment, Notices, RunError, collector, dispatcher};
use proofmill_telemetry::console_line;

use crate::args::DrainArg;
use crate::args::cluster::{BusArgs, ImportEnv};
use crate::failure::Failure;
use crate::files::{FilePlan, OverwritePolicy};
use crate::progress::Screen;
use crate::{files, memory, output, signals};

const HELP: &str = "the variables are those of push0 (docs/push0.md); for a workflow on a cluster name \
                    its file and the bus";

/// Runs a dispatcher on plain push0 queues.
pub(crate) async fn run_dispatcher(drain: DrainArg) -> Result<(), Failure> {
    let config = environment()?;
    let screen = Screen::open();
    let shutdown = signals::listen(screen.clone(), drain)?;
    memory::start_releasing_pages();
    let ran = dispatcher::run(config, shutdown, notices(screen)).await;
    ran.map_err(failure)
}

/// Runs a collector on plain push0 queues, or a source of blocks for them.
pub(crate) async fn run_collector(drain: DrainArg) -> Result<(), Failure> {
    let config = environment()?;
    let screen = Screen::open();
    let shutdown = signals::listen(screen.clone(), drain)?;
    memory::start_releasing_pages();
    let ran = collector::run(config, shutdown, notices(screen)).await;
    ran.map_err(failure)
}

/// Refuses options of a workflow's role where no workflow is named: they would have no effect.
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
        let instead = "NATS_URL is used";
        console_line(format!(
            "note: --bus (PROOFMILL_BUS) is for the {role} of a workflow, and is ignored: {instead}"
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

/// Prints a role's notices on the screen.
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
    check_output(args)?;
    let deployment = Deployment::read(&args.from)?;
    let imported = proofmill_push0::import::to_workflow(&deployment)?;
    let screen = Screen::open();
    for remark in &imported.remarks {
        screen.note(&format!("note: {remark}"));
    }
    match &args.output {
        None => output::line(imported.workflow.trim_end()),
        Some(path) => files::write(
            path,
            visibility(&imported.workflow),
            imported.workflow.as_bytes(),
        ),
    }
}

/// Fails if the workflow file would overwrite a file that it is made from, or, without `--force`, any other file.
fn check_output(args: &ImportEnv) -> Result<(), Failure> {
    let Some(path) = &args.output else {
        return Ok(());
    };
    let read: Vec<PathBuf> = args.from.iter().flat_map(|named| read_for(named)).collect();
    let plan = FilePlan::default().writes("the workflow", path);
    let plan = read.iter().fold(plan, |plan, file| {
        plan.reads("a file of the deployment", file)
    });
    plan.check(if args.force {
        OverwritePolicy::Anything
    } else {
        OverwritePolicy::Nothing
    })
}

/// Files that may be read for a path on the command line: the path itself, and the Compose and `.env` files in its
/// folder.
fn read_for(named: &Path) -> Vec<PathBuf> {
    let folder = if named.is_dir() {
        named
    } else {
        folder_of(named)
    };
    let beside = std::fs::read_dir(folder).into_iter().flatten();
    let beside = beside.filter_map(|entry| Some(entry.ok()?.path()));
    let is_read = |file: &PathBuf| {
        let extension = file.extension().and_then(|extension| extension.to_str());
        matches!(extension, Some("yml" | "yaml" | "env")) || file.ends_with(".env")
    };
    beside.filter(is_read).chain([named.to_owned()]).collect()
}

/// Visibility of a workflow file. One that contains a URL is private, because URLs often contain access keys.
fn visibility(workflow: &str) -> Visibility {
    if workflow.contains("://") {
        Visibility::Private
    } else {
        Visibility::Public
    }
}
