//! The roles of the processes of a [`Fleet`](super::Fleet).

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use clap::ValueEnum;
use proofmill_bus::{Connection, NatsOptions};
use proofmill_orchestrator::cluster::{self, LedWorkflows, ProcessContext};
use proofmill_orchestrator::shutdown::{self, Level, Shutdown};
use tokio::signal::unix::{SignalKind, signal};

use super::provers::registry;
use super::running::parse;

/// Line that a coordinator prints on standard output when it becomes the leader.
pub(super) const LEADS_LINE: &str = "leads";
/// Line that a coordinator prints when it is no longer the leader.
const STANDBY_LINE: &str = "stands by";

/// Role of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// Leads, or stands by; says on standard output which
    Coordinator,
    /// Runs dispatchers
    Dispatcher,
    /// Keeps partitions of the collectors
    Collector,
}

/// Arguments of the hidden `proofmill-bench role`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(value_enum)]
    role: Role,
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

impl Args {
    /// A runtime with as many threads as `proofmill` gives the same role.
    pub(crate) fn runtime(&self) -> std::io::Result<tokio::runtime::Runtime> {
        let mut builder = match self.role {
            Role::Coordinator => tokio::runtime::Builder::new_multi_thread(),
            Role::Dispatcher | Role::Collector => tokio::runtime::Builder::new_current_thread(),
        };
        builder.enable_all().build()
    }
}

/// Runs the role until the process is killed, gets SIGTERM, or its parent is gone.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(&args.workflow)?;
    let registry = registry();
    let workflow = parse(&text, &registry)?;
    let mut options = NatsOptions::new(&args.bus);
    options.prefix.clone_from(&args.prefix);
    options.replicas = args.replicas;
    let connection = Connection::open(options).await?;
    let name = process_name(std::process::id());
    let context =
        ProcessContext::open(connection, &workflow, registry, args.state.clone(), &name).await?;
    let workers: BTreeMap<String, usize> = workflow
        .dispatchers
        .iter()
        .map(|stage| stage.name.clone())
        .zip(args.workers.iter().copied())
        .collect();
    let (trigger, shutdown) = shutdown::channel();
    let mut term = signal(SignalKind::terminate()).context("cannot listen for signals")?;
    let parent_gone = tokio::task::spawn_blocking(|| {
        // The parent holds the other end of standard input, which therefore ends with it.
        std::io::copy(&mut std::io::stdin(), &mut std::io::sink())
    });
    let ending = async {
        if term.recv().await.is_some() {
            trigger.raise(Level::Drain);
        }
        // Dropping the trigger would stop everything at once.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        ended = run_role(args.role, context, workers, shutdown) => ended?,
        () = ending => {}
        _ = parent_gone => {}
    }
    // Returning would wait for the thread that reads standard input.
    std::process::exit(0);
}

async fn run_role(
    role: Role,
    context: ProcessContext,
    workers: BTreeMap<String, usize>,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    match role {
        Role::Dispatcher => {
            cluster::run_dispatchers(context, Default::default(), workers, shutdown).await?;
        }
        Role::Collector => cluster::run_collectors(context, Default::default(), shutdown).await?,
        Role::Coordinator => {
            let leading = LedWorkflows::default();
            let workflow = context.workflow.name.clone();
            tokio::select! {
                led = cluster::lead(context, leading.clone(), shutdown) => led?,
                printed = print_leadership(&leading, &workflow) => printed?,
            }
        }
    }
    Ok(())
}

/// Prints a line at each change of this process's leadership, until the process ends.
async fn print_leadership(leading: &LedWorkflows, workflow: &str) -> anyhow::Result<()> {
    let print_line = |word: &str| {
        let mut out = std::io::stdout();
        writeln!(out, "{word}")?;
        out.flush()
    };
    loop {
        leading.wait_until_leading(workflow).await;
        print_line(LEADS_LINE)?;
        leading.wait_until_standby(workflow).await;
        print_line(STANDBY_LINE)?;
    }
}

/// Name of a process on the bus.
pub(super) fn process_name(id: u32) -> String {
    format!("role-{id}")
}
