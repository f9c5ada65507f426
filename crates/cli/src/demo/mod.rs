//! `proofmill demo`: real headers, real proofs, in chain order.

mod audit;
mod mill;
mod prepare;
mod range;
mod report;
mod settle;
mod show;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use proofmill_api::DeadSummary;
use proofmill_orchestrator::shutdown::Level;
use proofmill_telemetry::console_line;

use self::prepare::Chain;
use self::report::Report;
use self::show::Totals;
use crate::args::Demo;
use crate::failure::Failure;
use crate::progress::{Screen, counted, span};
use crate::provers::{KeyFiles, Keys, OnProverEvent, ProverEvent};
use crate::{output, signals};

/// Headers in a chunk by default.
pub(crate) const DEFAULT_CHUNK: u32 = 2;

/// The demo's name as a workflow.
const WORKFLOW: &str = "bitcoin-demo";

/// Folder of the emitted proofs, in the state directory.
const PROOFS: &str = "proofs";

/// Folder of the engine's jobs, in the state directory.
const ENGINE: &str = "engine";

pub(crate) async fn run(args: Demo) -> Result<(), Failure> {
    let began = Instant::now();
    let screen = Screen::open();
    let chain = Chain::read(&args)?;
    audit::check_links(&chain)?;
    let totals = Totals::of(&chain, args.chunk);
    if args.aggregate {
        range::check_count(totals.chunks)?;
    }
    prepare::prepare_directory(&args, &chain).await?;
    screen.note(&format!(
        "proving {}: {} of up to {}",
        chain.what,
        counted(totals.chunks as usize, "chunk"),
        counted(args.chunk as usize, "header"),
    ));

    let mut shutdown = signals::listen(screen.clone(), args.drain)?;
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
    let proofs = args.state.join(PROOFS);
    let already = audit::audit(&proofs, &chain, &keys, slots)?;
    if already.blocks > 0 {
        screen.note(&format!(
            "resuming: {} of {} blocks were emitted before",
            already.blocks, totals.blocks
        ));
    }
    let settling = settle::prepare(&args, &chain, &keys, already.blocks, &screen).await?;
    let stop = shutdown.clone();
    let sink = settling.as_ref().map(settle::Settling::sink);
    let setting = mill::Setting {
        chain: &chain,
        keys: &keys,
        totals,
        sink: sink.unwrap_or_default(),
    };
    let ran = mill::run(&args, setting, files, &screen, stop).await?;

    let audited = audit::audit(&proofs, &chain, &keys, slots)?;
    let mut report = Report::of(&ran, &audited, &totals, began.elapsed());
    show::report(&report, &proofs);
    let mut range = Ok(());
    if let Some(settling) = settling {
        let settled = settling.report().await?;
        show::settled(&settled);
        report.settled = Some(settled);
    }
    if args.aggregate && report.blocks_emitted == report.blocks {
        match range::make(&args, &chain, &keys, audited.chunks, &mut shutdown).await {
            Ok(made) => report.range = Some(made),
            // The chunks are proven all the same: the report of them is printed first.
            Err(failure) => range = Err(failure),
        }
    }
    if args.json {
        output::line(serde_json::to_string(&report)?)?;
    }
    conclude(&ran.summary, &report, &args.state).await?;
    if let Some(settled) = &report.settled
        && !settled.is_in_order(chain.start, report.blocks_emitted)
    {
        let why = "the contract has not accepted each chunk once and in order";
        return Err(Failure::new(format!(
            "{why}: this is a defect of Proofmill"
        )));
    }
    range
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

async fn conclude(
    summary: &proofmill_orchestrator::mill::Summary,
    report: &Report,
    state: &Path,
) -> Result<(), Failure> {
    let shown = state.display();
    if report.dead > 0 {
        let letters = dead_letters(state).await?;
        let kept = report.chunks.saturating_sub(report.dead);
        for DeadSummary { task, reason, .. } in &letters {
            let block = task.split('/').nth(1).unwrap_or("?");
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
        .help(dead_advice(&letters, state)));
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

/// The chunks that are dead letters.
async fn dead_letters(state: &Path) -> Result<Vec<DeadSummary>, Failure> {
    let access = crate::access::MillAccess::read(Some(PathBuf::from(state))).await?;
    let letters = access.dead_letters().await;
    access.close().await?;
    letters
}

/// Advice about dead chunks: a wrong header fails at the first attempt; a chunk that failed at several may succeed at another.
fn dead_advice(letters: &[DeadSummary], state: &Path) -> String {
    if letters.iter().any(|letter| letter.attempts > 1) {
        let state = state.display();
        format!(
            "`proofmill dlq retry --all --state {state}` gives new attempts; then run the same command again"
        )
    } else {
        "correct the header file and run again with the same --state: only what changed is proven"
            .to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_is_for_a_wrong_header_or_for_attempts_that_are_used_up() {
        let letter = |attempts| DeadSummary {
            task: "prove/0/0".to_owned(),
            reason: String::new(),
            attempts,
            at_ms: 0,
        };
        let advice = |letters: &[DeadSummary]| dead_advice(letters, Path::new("state"));
        assert!(advice(&[letter(1)]).contains("header file"));
        let retry = "dlq retry --all --state state";
        assert!(advice(&[letter(1), letter(4)]).contains(retry));
    }
}
