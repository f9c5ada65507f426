//! `proofmill dispatcher` and `collector` by the environment alone, and `proofmill import-env`

use proofmill_push0::import::Deployment;
use proofmill_push0::{Environment, collector, dispatcher};

use crate::args::cluster::ImportEnv;
use crate::failure::Failure;
use crate::progress::Screen;
use crate::{memory, output, signals, state};

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
