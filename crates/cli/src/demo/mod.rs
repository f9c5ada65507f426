//! `proofmill demo`: real headers, real proofs, in chain order.

mod audit;
mod prepare;
mod show;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use proofmill_orchestrator::core::Settled;
use proofmill_orchestrator::mill::Options;
use proofmill_orchestrator::shutdown::Level;
use proofmill_telemetry::console_line;
use proofmill_workflow::{Workflow, render};
use serde::Serialize;
use tokio::sync::{mpsc, oneshot};

use self::prepare::Chain;
use crate::args::Demo;
use crate::commands::run::{print_losses, serve_control};
use crate::failure::Failure;
use crate::progress::{Screen, counted, span};
use crate::provers::{ChunkEngine, KeyFiles, Keys, OnProverEvent, ProverEvent, registry_with};
use crate::{output, signals, state};

/// Headers in a chunk by default.
pub(crate) const DEFAULT_CHUNK: u32 = 2;

/// The demo's name as a workflow.
const WORKFLOW: &str = "bitcoin-demo";

/// Folder of the emitted proofs, in the state directory.
const PROOFS: &str = "proofs";

/// Folder of the engine's jobs, in the state directory.
const ENGINE: &str = "engine";

/// The last line of standard output with `--json`.
#[derive(Debug, Serialize)]
struct Report {
    blocks: u64,
    chunks: u64,
    blocks_emitted: u64,
    chunks_proved_now: u64,
    proofs_verified: u64,
    out_of_order: u64,
    lost: u64,
    dead: u64,
    retries: u64,
    wall_s: f64,
    prove_s: f64,
    overhead_ms_p50: Option<f64>,
    overhead_ms_p99: Option<f64>,
}

/// Counts and times of the proofs that this run made and verified.
#[derive(Debug, Default)]
struct ProofStats {
    proved: u64,
    proving: Duration,
}

pub(crate) async fn run(args: Demo) -> Result<(), Failure> {
    let began = Instant::now();
    let screen = Screen::open();
    let chain = Chain::read(&args)?;
    audit::check_links(&chain)?;
    prepare::prepare_directory(&args, &chain).await?;
    let blocks = chain.headers.len() as u64;
    let chunks = blocks.div_ceil(u64::from(args.chunk));
    screen.note(&format!(
        "proving {}: {} of up to {}",
        chain.what,
        counted(chunks as usize, "chunk"),
        counted(args.chunk as usize, "header"),
    ));

    let mut shutdown = signals::listen(screen.clone(), args.drain)?;
    let work = Arc::new(Mutex::new(ProofStats::default()));
    let on_event = on_event(&screen, &work);
    let keys = Keys::in_directory(&args.keys.keys);
    let slots = args.chunk as usize;
    let files = tokio::select! {
        made = make_keys(&keys, slots, &screen) => made?,
        // The threads that make keys cannot be interrupted, and incomplete keys are not kept, so
        // there is nothing to finish.
        () = shutdown.reached(Level::Drain) => {
            screen.close();
            return Err(Failure::interrupted("stopped while the keys were made")
                .help("run the same command again: the keys are made from the beginning"));
        }
    };
    let already = audit::audit(&args.state.join(PROOFS), &chain, &keys, slots)?;
    if already.blocks > 0 {
        screen.note(&format!(
            "resuming: {} of {blocks} blocks were emitted before",
            already.blocks
        ));
    }

    let text = workflow_text(&args, &chain, &chain.keep(&args.state)?);
    let file = args.state.join("demo.toml");
    let workflow = Workflow::parse(&text, &file).map_err(|found| Failure::new(render(&found)))?;
    let (emitted_sender, emitted) = mpsc::channel(64);
    let options = || Options {
        stream: Some(emitted_sender.clone()),
        accept_loss: args.accept_loss,
        ..Options::in_directory(&args.state)
    };
    let mut registry = registry_with(keys.clone(), on_event.clone());
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
    let servers = serve_control(&mill, &args.state, &args.metrics, &screen).await?;
    let (settled_sender, settled) = mpsc::unbounded_channel();
    mill.handle().observe(settled_sender).await?;
    let order = tokio::spawn(show::emissions(emitted, screen.clone()));
    let overheads = tokio::spawn(overheads(settled, screen.clone()));
    let (last_status, last) = oneshot::channel();
    let view = tokio::spawn(show::bars(
        mill.handle().operator(),
        last,
        screen.clone(),
        show::Totals {
            blocks,
            chunks,
            chunk: u64::from(args.chunk),
            start: chain.start,
        },
    ));
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
    let out_of_order = order.await.unwrap_or(0);
    let overheads = overheads.await.unwrap_or_default();

    let audited = audit::audit(&args.state.join(PROOFS), &chain, &keys, slots)?;
    let work = std::mem::take(&mut *work.lock().unwrap_or_else(PoisonError::into_inner));
    let status = &summary.status;
    let accounted =
        audited.blocks.div_ceil(u64::from(args.chunk)) + (status.live + status.dead) as u64;
    let report = Report {
        blocks,
        chunks,
        blocks_emitted: audited.blocks,
        chunks_proved_now: work.proved,
        proofs_verified: audited.verified,
        out_of_order,
        lost: if summary.interrupted {
            0
        } else {
            chunks.saturating_sub(accounted)
        },
        dead: status.dead as u64,
        retries: status
            .stages
            .iter()
            .map(|stage| stage.counters.retried)
            .sum(),
        wall_s: began.elapsed().as_secs_f64(),
        prove_s: work.proving.as_secs_f64(),
        overhead_ms_p50: quantile(&overheads, 0.50),
        overhead_ms_p99: quantile(&overheads, 0.99),
    };
    show::report(&report, &args.state.join(PROOFS));
    if args.json {
        output::line(serde_json::to_string(&report)?)?;
    }
    conclude(&summary, &report, &args.state).await
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
name = "prove"
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

/// Loads or makes the keys before the mill starts, and shows the progress.
async fn make_keys(keys: &Keys, slots: usize, screen: &Screen) -> Result<KeyFiles, Failure> {
    let keys = keys.clone();
    let began = Instant::now();
    let spinner = Arc::new(screen.spinner("keys"));
    let (shown, lines) = (spinner.clone(), screen.clone());
    let on_event: OnProverEvent = Arc::new(move |event| {
        if let ProverEvent::Keys(text) = event {
            shown.say(&format!("keys: {text}"));
            lines.line(&format!("keys: {text}"));
        }
    });
    let made = tokio::task::spawn_blocking(move || keys.files(slots, &on_event)).await?;
    spinner.clear();
    let files = made?;
    screen.note(&format!("keys ready after {}", span(began.elapsed())));
    Ok(files)
}

fn on_event(screen: &Screen, work: &Arc<Mutex<ProofStats>>) -> OnProverEvent {
    let (screen, work) = (screen.clone(), work.clone());
    Arc::new(move |event| match event {
        ProverEvent::Keys(_) => {}
        ProverEvent::Proving { first, last } => {
            tracing::info!(first, last, "proving");
            screen.line(&format!("proving blocks {first} to {last}"));
        }
        ProverEvent::Proved { first, last, took } => {
            let mut work = work.lock().unwrap_or_else(PoisonError::into_inner);
            work.proved += 1;
            work.proving += took;
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
            screen.line(&format!("recorded {}", settled.task));
            let overhead = timing.leased.saturating_sub(timing.ran);
            overheads.push(overhead.as_secs_f64() * 1e3);
        }
    }
    overheads.sort_by(f64::total_cmp);
    overheads
}

/// The nearest-rank quantile of sorted values.
fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted
        .get(rank.saturating_sub(1).min(sorted.len().saturating_sub(1)))
        .copied()
}

async fn conclude(
    summary: &proofmill_orchestrator::mill::Summary,
    report: &Report,
    state: &Path,
) -> Result<(), Failure> {
    let shown = state.display();
    if report.dead > 0 {
        let letters = dead_reasons(state).await?;
        let kept = report.chunks.saturating_sub(report.dead);
        for (block, reason) in &letters {
            console_line(output::plain(&format!(
                "chunk from block {block} on: {reason}"
            )));
        }
        let others = match kept {
            0 => String::new(),
            kept => format!("; the proofs of the other {kept} are kept in {shown}"),
        };
        return Err(Failure::new(format!(
            "{} of {} cannot be proven{others}",
            report.dead,
            counted(report.chunks as usize, "chunk")
        ))
        .help(
            "correct the header file and run again with the same --state: only what changed is \
             proven",
        ));
    }
    if report.out_of_order > 0 || report.lost > 0 {
        return Err(Failure::new(format!(
            "{} emissions out of order, {} chunks lost: this is a defect of Proofmill",
            report.out_of_order, report.lost
        )));
    }
    if report.blocks_emitted < report.blocks {
        if summary.interrupted {
            return Err(
                Failure::interrupted("stopped before the end; nothing is lost")
                    .help("run the same command again to go on"),
            );
        }
        return crate::commands::run::run_result(summary, state);
    }
    Ok(())
}

/// The reason of each dead letter, by its block.
async fn dead_reasons(state: &Path) -> Result<Vec<(String, String)>, Failure> {
    let access = crate::access::MillAccess::read(Some(PathBuf::from(state))).await?;
    let letters = access.dead_letters().await;
    access.close().await?;
    Ok(letters?
        .into_iter()
        .map(|letter| {
            let block = letter.task.split('/').nth(1).unwrap_or("?").to_owned();
            (block, letter.reason)
        })
        .collect())
}
