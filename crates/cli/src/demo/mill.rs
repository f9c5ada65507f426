//! The demo's mill: its workflow, its engine, and the display while it runs.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use proofmill_api::engine::WatchedEngine;
use proofmill_api::metrics::Workflows;
use proofmill_orchestrator::core::Settled;
use proofmill_orchestrator::mill::{Options, Summary};
use proofmill_orchestrator::shutdown::Shutdown;
use proofmill_workflow::{Workflow, render};
use tokio::sync::{mpsc, oneshot};

use super::prepare::Chain;
use super::show::{self, Totals};
use super::{ENGINE, PROOFS, WORKFLOW};
use crate::args::Demo;
use crate::commands::run::{print_losses, serve_control};
use crate::failure::Failure;
use crate::progress::{Screen, counted, span};
use crate::provers::{
    ChunkEngine, KeyFiles, Keys, OnProverEvent, PartitionProvers, ProverEvent, registry_with,
};
use crate::state;

/// Name of the stage that proves.
const PROVING_STAGE: &str = "prove";

/// Counts and times of the proofs that this run made and verified.
#[derive(Debug, Default)]
pub(super) struct ProofStats {
    pub(super) proved: u64,
    pub(super) proving: Duration,
}

/// Headers, keys and further sinks of a mill.
pub(super) struct Setting<'a> {
    pub(super) chain: &'a Chain,
    pub(super) keys: &'a Keys,
    pub(super) totals: Totals,
    /// Tables of further sinks, in the format of workflow files.
    pub(super) sink: String,
}

/// Result of a mill that has ended.
pub(super) struct Outcome {
    pub(super) summary: Summary,
    pub(super) stats: ProofStats,
    /// Number of chunks emitted out of order.
    pub(super) out_of_order: u64,
    /// Orchestration overhead of each completed task, in milliseconds, sorted.
    pub(super) overheads: Vec<f64>,
}

/// Proves, verifies and emits the chunks that are left, until all are emitted or a signal stops the mill. Closes the
/// screen.
pub(super) async fn run(
    args: &Demo,
    setting: Setting<'_>,
    files: KeyFiles,
    screen: &Screen,
    shutdown: Shutdown,
) -> Result<Outcome, Failure> {
    let Setting {
        chain,
        keys,
        totals,
        sink,
    } = setting;
    let slots = args.chunk as usize;
    let stats = Arc::new(Mutex::new(ProofStats::default()));
    let on_event = on_event(screen, &stats);
    let text = workflow_text(args, chain, &chain.keep(&args.state)?) + &sink;
    let file = args.state.join("demo.toml");
    let workflow = Workflow::parse(&text, &file).map_err(|found| Failure::new(render(&found)))?;
    let (emitted_sender, emitted) = mpsc::channel(64);
    let options = || Options {
        stream: Some(emitted_sender.clone()),
        accept_loss: args.accept_loss,
        ..Options::in_directory(&args.state)
    };
    let mut registry = registry_with(keys.clone(), on_event.clone(), PartitionProvers::alone());
    let engine = ChunkEngine::new(WORKFLOW, slots);
    engine.register(&mut registry, on_event);
    let mill = state::open(&workflow, &registry, options).await?;
    print_losses(&mill);
    drop(emitted_sender);
    state::save(&args.state, &workflow, &file)?;
    // Start the engine only now that this process holds the state directory.
    let engine = engine
        .start(
            args.state.join(ENGINE),
            files,
            args.workers as usize,
            args.accept_loss,
        )
        .await?;
    let watched = WatchedEngine::here(engine.handle().clone(), vec![PROVING_STAGE.to_owned()]);
    let ports = (&args.metrics, &args.console);
    let servers = serve_control(
        &mill,
        &args.state,
        ports,
        vec![watched],
        Workflows::default(),
        screen,
    )
    .await?;
    let (settled_sender, settled) = mpsc::unbounded_channel();
    mill.handle().observe(settled_sender).await?;
    let order = tokio::spawn(show::emissions(emitted, screen.clone()));
    let overheads = tokio::spawn(overheads(settled, screen.clone()));
    let (last_status, last) = oneshot::channel();
    let operator = mill.handle().operator();
    let view = tokio::spawn(show::bars(operator, last, screen.clone(), totals));
    let result = mill.run(shutdown).await;
    if let Ok(summary) = &result {
        // The task of the bars may have ended already.
        let _ = last_status.send(summary.status.clone());
    } else {
        view.abort();
    }
    // The task was aborted or has ended; its result does not matter.
    let _ = view.await;
    servers.end().await;
    let engine = engine.end().await;
    screen.close();
    let summary = result?;
    engine?;
    let stats = std::mem::take(&mut *stats.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(Outcome {
        summary,
        stats,
        out_of_order: order.await.unwrap_or(0),
        overheads: overheads.await.unwrap_or_default(),
    })
}

/// The demo as a workflow file; `proofmill check --graph` can draw it.
fn workflow_text(args: &Demo, chain: &Chain, file: &str) -> String {
    // The source's name depends on the headers, so a corrected header file is a new source that
    // starts from the beginning.
    let Chain { name, start, .. } = chain;
    let Demo { chunk, workers, .. } = args;
    format!(
        r#"name = "{WORKFLOW}"

[[source]]
name = "{name}"
kind = "headers"
file = "{file}"
start = {start}
chunk = {chunk}
output = "chunks"

[[dispatcher]]
name = "{PROVING_STAGE}"
input = "chunks"
output = "proofs"
workers = {workers}
executor = {{ kind = "native", prover = "bitcoin.prove", params = {{ slots = {chunk} }} }}

[[dispatcher]]
name = "verify"
input = "proofs"
output = "verified"
batch = 16
verify = true
executor = {{ kind = "native", prover = "bitcoin.verify", params = {{ slots = {chunk} }} }}

[sequencer]
input = "verified"
start = {start}
directory = "{PROOFS}"
"#
    )
}

fn on_event(screen: &Screen, stats: &Arc<Mutex<ProofStats>>) -> OnProverEvent {
    let (screen, stats) = (screen.clone(), stats.clone());
    Arc::new(move |event| match event {
        ProverEvent::Keys(_) => {}
        ProverEvent::Proving { first, last } => {
            tracing::info!(first, last, "proving");
            screen.line(&format!("proving blocks {first} to {last}"));
        }
        ProverEvent::Proved { first, last, took } => {
            let mut stats = stats.lock().unwrap_or_else(PoisonError::into_inner);
            stats.proved += 1;
            stats.proving += took;
            tracing::info!(first, last, took_ms = took.as_millis() as u64, "proved");
            screen.line(&format!(
                "proved blocks {first} to {last} in {}",
                span(took)
            ));
        }
        ProverEvent::Verified { count, took } => {
            tracing::info!(
                count,
                took_ms = took.as_millis() as u64,
                "verified together"
            );
            let proofs = counted(count, "proof");
            screen.line(&format!("verified {proofs} in {} ms", took.as_millis()));
        }
        ProverEvent::Checked { count, took } => {
            let took_ms = took.as_millis() as u64;
            tracing::info!(count, took_ms, "checked again before they leave");
        }
    })
}

/// The orchestration overhead of each completed task, in milliseconds.
async fn overheads(mut settled: mpsc::UnboundedReceiver<Settled>, screen: Screen) -> Vec<f64> {
    let mut overheads = Vec::new();
    while let Some(settled) = settled.recv().await {
        if let Some(timing) = settled.timing {
            screen.line(&format!("recorded {}", settled.task.id));
            let overhead = timing.leased.saturating_sub(timing.ran);
            overheads.push(overhead.as_secs_f64() * 1e3);
        }
    }
    overheads.sort_by(f64::total_cmp);
    overheads
}
