//! Dispatchers in processes of their own: this very program, started anew.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::Context;
use proofmill_bus::{Connection, NatsOptions};
use proofmill_orchestrator::cluster::{Site, run_dispatchers};
use proofmill_orchestrator::shutdown;
use proofmill_workflow::Workflow;

use super::provers::registry;
use super::running::parse;

/// Processes that the dispatchers of an experiment are spread over, at most.
const PROCESSES: u32 = 4;

/// Arguments of the hidden `proofmill-bench role`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(long)]
    bus: String,
    #[arg(long)]
    prefix: String,
    #[arg(long)]
    replicas: usize,
    #[arg(long)]
    state: PathBuf,
    /// Dispatchers of each stage, in the workflow's order
    #[arg(long, value_delimiter = ',')]
    workers: Vec<usize>,
    workflow: PathBuf,
}

/// A process, killed when dropped.
pub(crate) struct Process(Child);

// === impl Process ===

impl Process {
    /// Kills it (SIGKILL).
    pub(crate) fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    /// An error if it has ended by itself; why, it has said.
    pub(crate) fn ensure_alive(&mut self) -> anyhow::Result<()> {
        match self.0.try_wait()? {
            None => Ok(()),
            Some(status) => anyhow::bail!("a process of dispatchers has ended: {status}"),
        }
    }

    /// Its number.
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Starts the workflow's dispatchers, spread over a few processes.
pub(crate) fn spawn(
    workflow: &Workflow,
    bus: &NatsOptions,
    state: &Path,
) -> anyhow::Result<Vec<Process>> {
    let file = state.join("bench.toml");
    std::fs::write(&file, workflow.document().text()).context("cannot write the workflow")?;
    let most = workflow.dispatchers.iter().map(|stage| stage.workers).max();
    let processes = most.unwrap_or(1).min(PROCESSES);
    (0..processes)
        .map(|process| {
            let workers = workflow.dispatchers.iter().map(|stage| {
                let share = stage.workers / processes;
                let more = u32::from(process < stage.workers % processes);
                (share + more).to_string()
            });
            let workers: Vec<String> = workers.collect();
            start(
                &file,
                bus,
                &state.join(format!("role-{process}")),
                &workers.join(","),
            )
        })
        .collect()
}

/// Starts one process.
fn start(file: &Path, bus: &NatsOptions, state: &Path, workers: &str) -> anyhow::Result<Process> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let child = Command::new(program)
        .arg("role")
        .args(["--bus", &bus.servers.join(",")])
        .args(["--prefix", &bus.prefix])
        .args(["--replicas", &bus.replicas.to_string()])
        .args(["--workers", workers])
        .arg("--state")
        .arg(state)
        .arg(file)
        .stdin(Stdio::piped())
        .spawn()
        .context("cannot start a dispatcher")?;
    Ok(Process(child))
}

/// Is such a process: until it is killed, or its parent has gone.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(&args.workflow)?;
    let registry = registry();
    let workflow = parse(&text, &registry)?;
    let mut options = NatsOptions::new(&args.bus);
    options.prefix.clone_from(&args.prefix);
    options.replicas = args.replicas;
    let connection = Connection::open(options).await?;
    let name = format!("role-{}", std::process::id());
    let site = Site::open(connection, &workflow, registry, args.state.clone(), &name).await?;
    let workers: BTreeMap<String, usize> = workflow
        .dispatchers
        .iter()
        .map(|stage| stage.name.clone())
        .zip(args.workers.iter().copied())
        .collect();
    let (_trigger, shutdown) = shutdown::channel();
    let parent_gone = tokio::task::spawn_blocking(|| {
        // Standard input ends with the parent.
        std::io::copy(&mut std::io::stdin(), &mut std::io::sink())
    });
    tokio::select! {
        ended = run_dispatchers(site, Default::default(), workers, shutdown) => Ok(ended?),
        _ = parent_gone => std::process::exit(0),
    }
}
