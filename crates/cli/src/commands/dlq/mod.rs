//! `proofmill dlq`

mod bundle;
mod replay;

use std::collections::BTreeSet;

use proofmill_api::{DeadLetter, Gap};
use proofmill_telemetry::console_line;

use crate::access::MillAccess;
use crate::args::dlq::Dlq;
use crate::args::{DlqTask, DlqTasks, MillArgs};
use crate::commands::inspect::{ago, print_table};
use crate::failure::Failure;
use crate::output;
use crate::progress::{blocks, counted};

pub(crate) async fn run(command: Dlq) -> Result<(), Failure> {
    match command {
        Dlq::List(args) => list(args).await,
        Dlq::Show(args) => show(args).await,
        Dlq::Retry(args) => change(args, true).await,
        Dlq::Drop(args) => change(args, false).await,
        Dlq::Bundle(args) => bundle::run(args).await,
        Dlq::Replay(args) => replay::run(args).await,
    }
}

async fn list(args: MillArgs) -> Result<(), Failure> {
    let access = MillAccess::open_for_reading(&args).await?;
    let letters = access.dead_letters().await?;
    access.close().await?;
    if args.json {
        return output::line(serde_json::to_string(&letters)?);
    }
    if letters.is_empty() {
        return output::line("the dead-letter queue is empty");
    }
    let rows = letters.into_iter().map(|letter| {
        [
            letter.task,
            letter.attempts.to_string(),
            ago(letter.at_ms),
            letter.reason,
        ]
    });
    print_table(["TASK", "ATTEMPTS", "SINCE", "REASON"], rows)
}

async fn show(args: DlqTask) -> Result<(), Failure> {
    let access = MillAccess::open_for_reading(&args.mill).await?;
    let letter = access.dead_letter(&args.task).await;
    access.close().await?;
    let letter = letter?;
    if args.mill.json {
        return output::line(serde_json::to_string(&letter)?);
    }
    output::raw(output::plain(&description(&letter)).as_bytes())
}

fn description(letter: &DeadLetter) -> String {
    let summary = &letter.summary;
    let span = if summary.task.split('/').nth(1) == Some(letter.last.to_string().as_str()) {
        String::new()
    } else {
        format!(" (to block {})", letter.last)
    };
    let mut lines = vec![
        format!("task      {}{span}", summary.task),
        format!("queue     {}", letter.queue),
        format!("dead      {}", ago(summary.at_ms)),
        format!("reason    {}", summary.reason),
    ];
    for attempt in &letter.attempts {
        let (number, worker) = (attempt.number, &attempt.worker);
        let (when, took) = (ago(attempt.at_ms), attempt.wall_ms);
        lines.push(format!(
            "\nattempt {number} by {worker}, {when}, after {took} ms"
        ));
        lines.push(format!("  {}", attempt.reason));
        lines.extend(attempt.exit.map(|exit| format!("  exit code {exit}")));
        for (name, text) in [("stdout", &attempt.stdout), ("stderr", &attempt.stderr)] {
            lines.extend(text.lines().map(|line| format!("  {name} | {line}")));
        }
    }
    let kind = if letter.payload_is_json {
        "JSON"
    } else {
        "hexadecimal"
    };
    lines.push(format!(
        "\npayload ({} bytes, {kind})\n{}\n",
        letter.payload_bytes, letter.payload
    ));
    lines.join("\n")
}

/// Most gaps named in warnings.
const SHOWN_GAPS_MAX: usize = 5;

/// Outcome of retrying or dropping several dead letters.
#[derive(Default)]
struct ChangeOutcome {
    tasks: Vec<String>,
    /// Blocks that the sequencer waits for because a task of theirs was dropped.
    gaps: Vec<Gap>,
    /// The first failure; `failures` counts all of them.
    failed: Option<Failure>,
    failures: usize,
}

async fn change(args: DlqTasks, retry: bool) -> Result<(), Failure> {
    if args.tasks.is_empty() && !args.all {
        return Err(Failure::usage("no dead letter is named")
            .help("name the tasks as STAGE/BLOCK/PART, or give --all"));
    }
    let access = MillAccess::open_for_change(&args.mill).await?;
    let result = change_all(&access, args.tasks, args.all, retry).await;
    let running = access.is_running();
    access.close().await?;
    let outcome = result?;
    let count = outcome.tasks.len();
    if args.mill.json {
        let mut answer = serde_json::json!({ "tasks": outcome.tasks });
        if !retry {
            answer["gaps"] = serde_json::to_value(&outcome.gaps)?;
        }
        output::line(answer.to_string())?;
    } else if count > 0 || outcome.failed.is_none() {
        let tasks = counted(count, "task");
        output::line(match (retry, running) {
            (true, true) => format!("{tasks} back in their queues"),
            (true, false) => format!("{tasks} back in their queues; they run when the mill runs"),
            (false, _) => format!("{tasks} dropped"),
        })?;
        warn_of_gaps(&outcome.gaps);
    }
    let others = outcome.failures.saturating_sub(1);
    match outcome.failed {
        None => Ok(()),
        Some(failure) if others == 0 => Err(failure),
        Some(failure) => Err(failure.help(format!("{} failed too", counted(others, "other task")))),
    }
}

/// Warns of the blocks that the sequencer waits for, and shows the commands that fill the gap or skip it.
fn warn_of_gaps(gaps: &[Gap]) {
    for gap in gaps.iter().take(SHOWN_GAPS_MAX) {
        let Gap {
            first,
            last,
            queue,
            sequencer_queue,
        } = gap;
        let (block, are) = blocks((*first, *last));
        let span = match first == last {
            true => format!("--block {first}"),
            false => format!("--block {first} --last {last}"),
        };
        let mut text = format!(
            "warning: {block} {are} not been emitted, and the sequencer emits no later block until \
             then\n  to fill the gap: proofmill submit --queue {queue} {span} PAYLOAD"
        );
        if queue != sequencer_queue {
            text.push_str(&format!(
                "\n  to skip it: proofmill submit --queue {sequencer_queue} {span} PLACEHOLDER, which is \
                 emitted in its place"
            ));
        }
        console_line(output::plain(&text));
    }
    if let Some(more) = gaps
        .len()
        .checked_sub(SHOWN_GAPS_MAX)
        .filter(|more| *more > 0)
    {
        console_line(format!("warning: and {} more", counted(more, "such gap")));
    }
}

async fn change_all(
    access: &MillAccess,
    named: Vec<String>,
    all: bool,
    retry: bool,
) -> Result<ChangeOutcome, Failure> {
    let mut tasks = if all {
        access
            .dead_letters()
            .await?
            .into_iter()
            .map(|letter| letter.task)
            .collect()
    } else {
        named
    };
    let mut seen = BTreeSet::new();
    tasks.retain(|task| seen.insert(task.clone()));
    let mut outcome = ChangeOutcome::default();
    for task in tasks {
        let done = if retry {
            access.retry(&task).await.map(|()| None)
        } else {
            access.drop_dead(&task).await.map(|dropped| dropped.gap)
        };
        match done {
            Ok(gap) => {
                outcome.tasks.push(task);
                outcome.gaps.extend(gap);
            }
            Err(failure) => {
                outcome.failures += 1;
                outcome.failed.get_or_insert(failure);
                // With --all, one task that cannot be changed does not stop the others.
                if !all {
                    break;
                }
            }
        }
    }
    // Several tasks may be about the same block.
    outcome.gaps.dedup();
    Ok(outcome)
}
