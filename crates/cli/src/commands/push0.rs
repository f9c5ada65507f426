//! `proofmill dispatcher` and `collector` by the environment alone, and `proofmill import-env`

use std::path::{Path, PathBuf};

use proofmill_push0::import::Deployment;
use proofmill_push0::{Environment, collector, dispatcher};
use proofmill_r1cs::iden3::{Visibility, folder_of};

use crate::args::cluster::ImportEnv;
use crate::failure::Failure;
use crate::files::{Plan, Replace};
use crate::progress::Screen;
use crate::{files, memory, output, signals};

const HELP: &str = "the variables are those of push0 (docs/push0.md); for a workflow on a cluster name \
                    its file and the bus";

/// A dispatcher on plain queues.
pub(crate) async fn run_dispatcher() -> Result<(), Failure> {
    let config = Environment::read(|name| std::env::var(name).ok())
        .map_err(|error| Failure::usage(error.to_string()).help(HELP))?;
    let shutdown = signals::listen(Screen::open())?;
    memory::settle();
    Ok(dispatcher::run(config, shutdown).await?)
}

/// A collector on plain queues, or a source of blocks for them.
pub(crate) async fn run_collector() -> Result<(), Failure> {
    let config = Environment::read(|name| std::env::var(name).ok())
        .map_err(|error| Failure::usage(error.to_string()).help(HELP))?;
    let shutdown = signals::listen(Screen::open())?;
    memory::settle();
    Ok(collector::run(config, shutdown).await?)
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

/// That the workflow file overwrites none of the files that it is made from, and nothing else unless
/// that is wanted.
fn check_output(args: &ImportEnv) -> Result<(), Failure> {
    let Some(path) = &args.output else {
        return Ok(());
    };
    let read = read_for(&args.from);
    let plan = Plan::default().writes("the workflow", path);
    let plan = read.iter().fold(plan, |plan, file| {
        plan.reads("a file of the deployment", file)
    });
    plan.check(if args.force {
        Replace::Anything
    } else {
        Replace::Nothing
    })
}

/// The files that are read for one that the command line names: it, what lies beside it, or in it.
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

/// Who may read a workflow: what asks an endpoint has its address, and keys are often a part of that.
fn visibility(workflow: &str) -> Visibility {
    if workflow.contains("://") {
        Visibility::Private
    } else {
        Visibility::Public
    }
}
