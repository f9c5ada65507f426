//! `proofmill status`, `queues` and `tasks`

use std::time::{SystemTime, UNIX_EPOCH};

use proofmill_api::TasksQuery;

use crate::access::Access;
use crate::args::{Look, Tasks};
use crate::failure::Failure;

pub(crate) async fn status(args: Look) -> Result<(), Failure> {
    let access = Access::to(args.state.state).await?;
    let mut status = access.status().await?;
    let running = access.is_running();
    access.close().await?;
    if args.json {
        status["running"] = running.into();
        println!("{status}");
        return Ok(());
    }
    let word = match (running, status["draining"].as_bool()) {
        (false, _) => "stopped",
        (true, Some(true)) => "draining",
        (true, _) => "running",
    };
    print!("workflow {}: {word}", text(&status["workflow"]));
    if let Some(next) = status["next_block"].as_u64() {
        print!("; next block to emit: {next}");
    }
    println!("; {} live, {} dead", status["live"], status["dead"]);
    let columns = ["waiting", "leased", "held", "dead"];
    let rows = status["stages"].as_array().into_iter().flatten().map(|stage| {
        let [waiting, leased, held, dead] = columns.map(|column| text(&stage[column]));
        let lowest = stage["lowest"].as_u64().map_or_else(|| "-".to_owned(), |b| b.to_string());
        [text(&stage["stage"]), text(&stage["kind"]), waiting, leased, held, dead, lowest]
    });
    print_table(["STAGE", "KIND", "WAITING", "LEASED", "HELD", "DEAD", "LOWEST"], rows);
    Ok(())
}

pub(crate) async fn queues(args: Look) -> Result<(), Failure> {
    let access = Access::to(args.state.state).await?;
    let queues = access.queues().await?;
    access.close().await?;
    if args.json {
        println!("{}", serde_json::to_string(&queues)?);
        return Ok(());
    }
    let rows = queues.into_iter().map(|queue| {
        [
            queue.queue,
            queue.readers.join(", "),
            format!("{}/{}", queue.waiting, queue.q_max),
            queue.leased.to_string(),
            queue.held.to_string(),
            queue.dead.to_string(),
            queue.lowest.map_or_else(|| "-".to_owned(), |block| block.to_string()),
        ]
    });
    print_table(["QUEUE", "READERS", "WAITING/MAX", "LEASED", "HELD", "DEAD", "LOWEST"], rows);
    Ok(())
}

pub(crate) async fn tasks(args: Tasks) -> Result<(), Failure> {
    let access = Access::to(args.look.state.state).await?;
    let query = TasksQuery { stage: args.stage, block: args.block, limit: Some(args.limit) };
    let tasks = access.tasks(query).await?;
    access.close().await?;
    if args.look.json {
        println!("{}", serde_json::to_string(&tasks)?);
        return Ok(());
    }
    if tasks.is_empty() {
        println!("no live task");
        return Ok(());
    }
    let rows = tasks.into_iter().map(|task| {
        [
            task.task,
            task.phase,
            task.worker.unwrap_or_else(|| "-".to_owned()),
            task.failed_attempts.to_string(),
            task.payload_bytes.to_string(),
            ago(task.at_ms),
        ]
    });
    print_table(["TASK", "PHASE", "WORKER", "FAILED", "BYTES", "ACCEPTED"], rows);
    Ok(())
}

fn text(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// How long ago a moment was, in words.
pub(crate) fn ago(at_ms: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = u64::try_from(now.as_millis()).unwrap_or(u64::MAX).saturating_sub(at_ms) / 1000;
    match seconds {
        0..60 => format!("{seconds} s ago"),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86_400 => format!("{} h ago", seconds / 3600),
        _ => format!("{} d ago", seconds / 86_400),
    }
}

/// Prints a table with aligned columns.
pub(crate) fn print_table<const N: usize>(
    head: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) {
    let rows: Vec<[String; N]> =
        std::iter::once(head.map(str::to_owned)).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..N).map(|column| width(column).unwrap_or(0)).collect();
    for row in &rows {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        println!("{}", cells.join("  ").trim_end());
    }
}
