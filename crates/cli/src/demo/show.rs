//! The demo's progress display and final summary.

use std::path::Path;
use std::time::{Duration, Instant};

use proofmill_orchestrator::core::Status;
use proofmill_orchestrator::port::OperatorPort;
use proofmill_orchestrator::sink::Emitted;
use proofmill_telemetry::console_line;
use tokio::sync::{mpsc, oneshot};

use super::prepare::Chain;
use super::range::{KEY_FILE, PROOF_FILE, PUBLIC_FILE, RANGE_FILE, RangeReport};
use super::report::Report;
use super::settle::SettleReport;
use crate::output;
use crate::progress::{Screen, counted, span};

/// Totals of the run.
#[derive(Clone, Copy)]
pub(super) struct Totals {
    pub(super) blocks: u64,
    pub(super) chunks: u64,
    /// Headers in a chunk; the last chunk may have fewer.
    pub(super) chunk: u64,
    /// Height of the first block.
    pub(super) start: u64,
}

/// Number of chunks that have completed each step.
struct Steps {
    proposed: u64,
    proven: u64,
    verified: u64,
    emitted_blocks: u64,
}

// === impl Totals ===

impl Totals {
    pub(super) fn of(chain: &Chain, chunk: u32) -> Self {
        let (blocks, chunk) = (chain.headers.len() as u64, u64::from(chunk));
        Self {
            blocks,
            chunks: blocks.div_ceil(chunk),
            chunk,
            start: chain.start,
        }
    }
}

/// Watches the emitted chunks; returns the number that came out of order.
pub(super) async fn emissions(mut emitted: mpsc::Receiver<Emitted>, screen: Screen) -> u64 {
    let mut out_of_order = 0;
    let mut next: Option<u64> = None;
    while let Some(item) = emitted.recv().await {
        if next.is_some_and(|next| item.first != next) {
            out_of_order += 1;
        }
        next = Some(item.last + 1);
        screen.line(&format!("emitted blocks {} to {}", item.first, item.last));
    }
    out_of_order
}

/// Updates the bars until everything is emitted or the mill has ended; `last` receives the mill's final status.
pub(super) async fn bars(
    port: OperatorPort,
    last: oneshot::Receiver<Status>,
    screen: Screen,
    totals: Totals,
) {
    let mut last = Some(last);
    let proposed = screen.bar("proposed", Some(totals.chunks));
    let proven = screen.bar("proven", Some(totals.chunks));
    let verified = screen.bar("verified", Some(totals.chunks));
    let emitted = screen.bar("emitted", Some(totals.blocks));
    let began = Instant::now();
    let mut proven_before = None;
    let mut eta_line = Instant::now() + Duration::from_secs(10);
    loop {
        let status = match port.status().await {
            Ok(status) => status,
            Err(_) => {
                let Some(last) = last.take() else { break };
                let Ok(status) = last.await else { break };
                status
            }
        };
        let steps = steps(&status, &totals);
        let before = *proven_before.get_or_insert(steps.proven);
        let eta = eta(
            steps.proven - before.min(steps.proven),
            totals.chunks - steps.proven,
            began,
        );
        let queue = |name: &str| {
            let stage = status.stages.iter().find(|stage| &*stage.stage == name);
            stage.map_or_else(String::new, |stage| {
                let dead = if stage.dead > 0 {
                    format!(", {} dead", stage.dead)
                } else {
                    String::new()
                };
                format!(
                    "chunks; {} waiting, {} in work{dead}",
                    stage.waiting, stage.leased
                )
            })
        };
        proposed.set(steps.proposed, "chunks");
        proven.set(steps.proven, &format!("{}{eta}", queue("prove")));
        verified.set(steps.verified, &queue("verify"));
        emitted.set(steps.emitted_blocks, "blocks");
        if Instant::now() > eta_line {
            eta_line = Instant::now() + Duration::from_secs(10);
            screen.line(&format!(
                "{} of {} chunks proven, {} of {} blocks emitted{eta}",
                steps.proven, totals.chunks, steps.emitted_blocks, totals.blocks
            ));
        }
        if last.is_none() || steps.emitted_blocks == totals.blocks {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    [proposed, proven, verified, emitted]
        .iter()
        .for_each(crate::progress::Bar::finish);
}

fn steps(status: &Status, totals: &Totals) -> Steps {
    let live = |name: &str| {
        let stage = status.stages.iter().find(|stage| &*stage.stage == name);
        stage.map_or((0, 0), |stage| {
            ((stage.waiting + stage.leased) as u64, stage.dead as u64)
        })
    };
    let emitted_blocks = status
        .next_block
        .unwrap_or(0)
        .saturating_sub(totals.start)
        .min(totals.blocks);
    let emitted = emitted_blocks.div_ceil(totals.chunk);
    let verified = emitted + live("sequencer").0;
    let proven = verified + live("verify").0 + live("verify").1;
    let proposed = proven + live("prove").0 + live("prove").1;
    let cap = |count: u64| count.min(totals.chunks);
    Steps {
        proposed: cap(proposed),
        proven: cap(proven),
        verified: cap(verified),
        emitted_blocks,
    }
}

fn eta(done: u64, left: u64, began: Instant) -> String {
    if done == 0 || left == 0 {
        return String::new();
    }
    let each = began.elapsed().as_secs_f64() / done as f64;
    format!(
        "; about {} left",
        span(Duration::from_secs_f64(each * left as f64))
    )
}

/// Prints the summary as text.
pub(super) fn report(report: &Report, proofs: &Path) {
    let chunks = counted(report.chunks as usize, "chunk");
    let verified = counted(report.proofs_verified as usize, "proof");
    let wall = span(Duration::from_secs_f64(report.wall_s));
    let proving = span(Duration::from_secs_f64(report.prove_s));
    let proven = counted(report.chunks_proved_now as usize, "chunk");
    let overhead = match (report.overhead_ms_p50, report.overhead_ms_p99) {
        (Some(p50), Some(p99)) => {
            format!("; orchestration overhead P50 {p50:.2} ms, P99 {p99:.2} ms a task")
        }
        _ => String::new(),
    };
    console_line(format!(
        "\n{} of {} blocks emitted in chain order, of {chunks}; {verified} verified",
        report.blocks_emitted, report.blocks
    ));
    console_line(format!(
        "out_of_order: {}  lost: {}  retries: {}  dead: {}",
        report.out_of_order, report.lost, report.retries, report.dead
    ));
    console_line(format!(
        "{wall} in all; {proven} proven now, in {proving}{overhead}"
    ));
    console_line(format!("proofs in {}", proofs.display()));
}

/// Prints what the light client has accepted.
pub(super) fn settled(report: &SettleReport) {
    console_line("\nsettled on Ethereum:".to_owned());
    for line in report.lines() {
        console_line(format!("  {line}"));
    }
}

/// Prints the proof of all chunks as text.
pub(super) fn range(report: &RangeReport, lines: &[String]) {
    let made = match report.made {
        true => "one proof of all chunks, made and verified",
        false => "one proof of all chunks was made before, and is valid",
    };
    console_line(format!("\n{made}:"));
    for line in lines {
        console_line(format!("  {line}"));
    }
    console_line(output::plain(&format!(
        "in {folder}; who trusts the key {digest} verifies it with the files alone:\n  \
         proofmill aggregate verify --key {folder}/{KEY_FILE} --public {folder}/{PUBLIC_FILE} \\\n    \
         --range {folder}/{RANGE_FILE} {folder}/{PROOF_FILE}",
        folder = report.folder,
        digest = report.key_digest
    )));
}
