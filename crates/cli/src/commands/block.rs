//! `proofmill block`

use proofmill_api::{BlockEntry, BlockEventKind, BlockStatus, BlockStep, BlocksQuery};
use proofmill_orchestrator::core::{BlockState, BlockSummary, DeadlineState};

use crate::access::MillAccess;
use crate::args::Block;
use crate::commands::inspect::{ago, print_table};
use crate::failure::Failure;
use crate::output;

pub(crate) async fn run(args: Block) -> Result<(), Failure> {
    let access = MillAccess::open_for_reading(&args.mill).await?;
    let answer = answer(&access, args.blocks, args.mill.json).await;
    access.close().await?;
    answer
}

async fn answer(access: &MillAccess, blocks: BlocksQuery, json: bool) -> Result<(), Failure> {
    if blocks.first != blocks.last {
        let summaries = access.blocks(blocks).await?;
        return match json {
            true => output::line(serde_json::to_string(&summaries)?),
            false => print_summaries(&summaries),
        };
    }
    let status = access.block(blocks.first).await?;
    if json {
        return output::line(serde_json::to_string(&status)?);
    }
    print_block(&status, access.is_running())
}

fn print_summaries(summaries: &[BlockSummary]) -> Result<(), Failure> {
    let rows = summaries.iter().map(|summary| {
        [
            summary.block.to_string(),
            state_text(summary),
            summary.live.to_string(),
            summary.dead.to_string(),
            summary.at_ms.map_or_else(|| "-".to_owned(), ago),
        ]
    });
    print_table(["BLOCK", "STATE", "LIVE", "DEAD", "LAST CHANGE"], rows)
}

fn print_block(status: &BlockStatus, is_running: bool) -> Result<(), Failure> {
    let summary = &status.summary;
    let when = summary
        .at_ms
        .map_or_else(String::new, |at_ms| format!(", {}", ago(at_ms)));
    let text = state_text(summary);
    output::line(format!("block {}: {text}{when}", summary.block))?;
    if let Some(note) = &status.note {
        output::line(output::plain(note))?;
    }
    if !(is_running || status.tasks.is_empty()) {
        output::line("the mill is stopped: no task continues until it runs")?;
    }
    print_tasks(status)?;
    print_dead(status)?;
    print_history(status)
}

fn print_tasks(status: &BlockStatus) -> Result<(), Failure> {
    if status.tasks.is_empty() {
        return Ok(());
    }
    output::line("")?;
    let rows = status.tasks.iter().map(|task| {
        [
            task.task.clone(),
            task.phase.clone(),
            task.failed_attempts.to_string(),
            ago(task.accepted_ms),
            task.waits_for.clone(),
        ]
    });
    print_table(["LIVE", "PHASE", "FAILED", "ACCEPTED", "WAITS FOR"], rows)
}

fn print_dead(status: &BlockStatus) -> Result<(), Failure> {
    if status.dead_letters.is_empty() {
        return Ok(());
    }
    output::line("")?;
    let rows = status.dead_letters.iter().map(|dead| {
        [
            dead.task.clone(),
            dead.attempts.to_string(),
            ago(dead.at_ms),
            dead.reason.clone(),
        ]
    });
    print_table(["DEAD", "ATTEMPTS", "SINCE", "REASON"], rows)
}

fn print_history(status: &BlockStatus) -> Result<(), Failure> {
    if status.history.is_empty() {
        return Ok(());
    }
    output::line("")?;
    print_table(
        [
            "HISTORY", "WHAT", "BY", "FAILED", "WAITED", "LEASED", "RAN", "WHEN",
        ],
        status.history.iter().map(history_row),
    )?;
    for entry in &status.history {
        let lines = details(entry);
        lines
            .iter()
            .try_for_each(|line| output::line(output::plain(line).replace('\n', " ")))?;
    }
    Ok(())
}

fn history_row(entry: &BlockEntry) -> [String; 8] {
    let dash = || "-".to_owned();
    let step = entry.step.as_ref();
    let step_text =
        |text: fn(&BlockStep) -> Option<String>| step.and_then(text).unwrap_or_else(dash);
    let span = match entry.first == entry.last {
        true => format!("block {}", entry.first),
        false => format!("blocks {} to {}", entry.first, entry.last),
    };
    [
        step.map_or(span, |step| step.task.clone()),
        event_text(entry.kind).to_owned(),
        step_text(|step| {
            let names = step.workers.iter().map(|by| by.worker.as_str());
            Some(names.collect::<Vec<_>>().join(", ")).filter(|names| !names.is_empty())
        }),
        step_text(|step| Some(step.failed_attempts.to_string())),
        step_text(|step| Some(seconds(step.waited_ms))),
        step_text(|step| step.leased_ms.map(seconds)),
        step_text(|step| step.ran_ms.map(seconds)),
        ago(entry.at_ms),
    ]
}

/// Lines below the table for one entry of the history: failed attempts, reason, group, places and source.
fn details(entry: &BlockEntry) -> Vec<String> {
    let name = entry.step.as_ref().map_or("", |step| step.task.as_str());
    let mut lines = Vec::new();
    for failure in entry.step.iter().flat_map(|step| &step.failures) {
        let (attempt, worker, reason) = (failure.attempt, &failure.worker, &failure.reason);
        let (ran, when) = (seconds(failure.ran_ms), ago(failure.at_ms));
        lines.push(format!(
            "{name}: attempt {attempt} by {worker} failed after {ran}, {when}: {reason}"
        ));
    }
    let event_text = event_text(entry.kind);
    lines.extend(
        entry
            .reason
            .iter()
            .map(|why| format!("{name}: {event_text}: {why}")),
    );
    lines.extend(
        entry
            .group
            .iter()
            .map(|key| format!("{name}: in group {key}")),
    );
    lines.extend(
        entry
            .places
            .iter()
            .map(|place| format!("{name}: to {place}")),
    );
    lines.extend(
        entry
            .source
            .iter()
            .map(|it| format!("{event_text} by source {it}")),
    );
    lines
}

fn seconds(millis: u64) -> String {
    format!("{}.{:03} s", millis / 1000, millis % 1000)
}

fn state_text(summary: &BlockSummary) -> String {
    let state = match summary.state {
        BlockState::NeverSeen => "never seen",
        BlockState::BeforeStart => "below the first block that the sequencer emits",
        BlockState::Forgotten => "too far back: its history is no longer kept",
        BlockState::Running => "running",
        BlockState::Waiting => "waiting",
        BlockState::Dead => "dead",
        BlockState::Dropped => "dropped",
        BlockState::Skipped => "skipped",
        BlockState::TakenBack => "taken back by its source",
        BlockState::Finished => "finished",
        BlockState::Emitted => "emitted",
    };
    let deadline = match summary.deadline {
        Some(DeadlineState::Met) => ", in time",
        Some(DeadlineState::Missed) => ", deadline missed",
        Some(DeadlineState::Running) | None => "",
    };
    let stale = if summary.stale {
        ", stale: taken back since"
    } else {
        ""
    };
    format!("{state}{deadline}{stale}")
}

fn event_text(kind: BlockEventKind) -> &'static str {
    match kind {
        BlockEventKind::Completed => "completed",
        BlockEventKind::Grouped => "grouped",
        BlockEventKind::PassedOn => "passed on alone",
        BlockEventKind::Skipped => "skipped",
        BlockEventKind::Dropped => "dropped",
        BlockEventKind::DeadLettered => "died",
        BlockEventKind::Emitted => "emitted",
        BlockEventKind::DeadlineMet => "in time",
        BlockEventKind::DeadlineMissed => "deadline missed",
        BlockEventKind::TakenBack => "taken back",
        BlockEventKind::Stale => "taken back after it was emitted",
    }
}
