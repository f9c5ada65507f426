//! `proofmill status`, `queues` and `tasks`

use proofmill_api::TasksQuery;
use proofmill_orchestrator::wall_ms;

use crate::access::{self, MillAccess};
use crate::args::{MillArgs, Tasks};
use crate::failure::Failure;
use crate::output;
use crate::progress::{blocks, counted};

/// Prints the workflows that are led on the bus, with their workers and collectors.
async fn workflows(args: &MillArgs) -> Result<(), Failure> {
    let found = access::workflows(args).await?;
    if args.json {
        return output::line(serde_json::to_string(&found)?);
    }
    if found.is_empty() {
        return output::line(
            "no workflow is led on this bus; `proofmill coordinator FILE` leads one",
        );
    }
    for led in &found {
        let next = led
            .next_block
            .map_or_else(String::new, |next| format!("; next block to emit: {next}"));
        output::line(format!(
            "workflow {}: led by {}{next}; {} live, {} dead; {}",
            output::plain(&led.workflow),
            output::plain(&led.leader),
            led.live,
            led.dead,
            counted(led.worker_count, "worker"),
        ))?;
    }
    let workers = found.iter().flat_map(|led| {
        led.workers.iter().map(|worker| {
            [
                led.workflow.clone(),
                worker.worker.clone(),
                worker.group.clone(),
                worker.tasks.to_string(),
            ]
        })
    });
    let collectors = found.iter().flat_map(|led| {
        let of = |host: &String| {
            let group = "(collector)".to_owned();
            [led.workflow.clone(), host.clone(), group, "-".to_owned()]
        };
        led.collectors.iter().map(of)
    });
    let rows: Vec<[String; 4]> = workers.chain(collectors).collect();
    if rows.is_empty() {
        return Ok(());
    }
    output::line("")?;
    print_table(["WORKFLOW", "WORKER", "GROUP", "TASKS"], rows)
}

pub(crate) async fn status(args: MillArgs) -> Result<(), Failure> {
    if access::names_bus_only(&args) {
        return workflows(&args).await;
    }
    let access = MillAccess::open_for_reading(&args).await?;
    let mut status = access.status().await?;
    let running = access.is_running();
    access.close().await?;
    if args.json {
        status["running"] = running.into();
        return output::line(status.to_string());
    }
    let word = match (running, status["draining"].as_bool()) {
        (false, _) => "stopped",
        (true, Some(true)) => "draining",
        (true, _) => "running",
    };
    let next = status["next_block"]
        .as_u64()
        .map_or_else(String::new, |next| format!("; next block to emit: {next}"));
    output::line(format!(
        "workflow {}: {word}{next}; {} live, {} dead",
        text(&status["workflow"]),
        status["live"],
        status["dead"]
    ))?;
    let columns = ["waiting", "leased", "held", "dead"];
    let rows = status["stages"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|stage| {
            let [waiting, leased, held, dead] = columns.map(|column| text(&stage[column]));
            let lowest = stage["lowest"]
                .as_u64()
                .map_or_else(|| "-".to_owned(), |b| b.to_string());
            [
                text(&stage["stage"]),
                text(&stage["kind"]),
                waiting,
                leased,
                held,
                dead,
                lowest,
            ]
        });
    print_table(
        [
            "STAGE", "KIND", "WAITING", "LEASED", "HELD", "DEAD", "LOWEST",
        ],
        rows,
    )?;
    remarks(&status)?;
    paused(&status["paused"])?;
    distrusted(&status["distrusted"])
}

/// Prints the remarks below the table: messages that came late, and blocks that the sequencer waits for.
fn remarks(status: &serde_json::Value) -> Result<(), Failure> {
    let each = |value: &serde_json::Value| value.as_array().cloned().unwrap_or_default();
    let mut remarks = Vec::new();
    for stage in each(&status["stages"]) {
        if let Some(late @ 1..) = stage["counters"]["late"].as_u64() {
            let messages = counted(usize::try_from(late).unwrap_or(usize::MAX), "message");
            let name = text(&stage["stage"]);
            remarks.push(format!(
                "{messages} came late at {name}: after their group was emitted"
            ));
        }
    }
    for gap in each(&status["gaps"]) {
        if let (Some(first), Some(last)) = (gap[0].as_u64(), gap[1].as_u64()) {
            let (block, has) = blocks((first, last));
            remarks.push(format!(
                "{block} {has} not reached the sequencer, and later blocks wait"
            ));
        }
    }
    for pause in each(&status["pauses"]) {
        let [kind, name, by] = ["kind", "name", "by"].map(|field| text(&pause[field]));
        let since = pause["at_ms"].as_u64().map(ago).unwrap_or_default();
        let is = if kind == "worker" {
            "drains"
        } else {
            "is paused"
        };
        remarks.push(format!(
            "{kind} {name} {is}, by {by}, {since}: proofmill resume {kind} {name}"
        ));
    }
    if remarks.is_empty() {
        return Ok(());
    }
    output::line("")?;
    remarks.iter().try_for_each(output::line)
}

/// Prints the paused workers, which take no tasks for now, with the reason.
fn paused(workers: &serde_json::Value) -> Result<(), Failure> {
    let workers = workers.as_array().map_or(&[][..], Vec::as_slice);
    if workers.is_empty() {
        return Ok(());
    }
    output::line("")?;
    let rows = workers.iter().map(|worker| {
        let [name, group, reason] = ["worker", "group", "reason"].map(|key| text(&worker[key]));
        [name, group, reason]
    });
    print_table(["PAUSED", "GROUP", "REASON"], rows)
}

/// Prints the users whose workers get no tasks, with the fault of their result.
fn distrusted(users: &serde_json::Value) -> Result<(), Failure> {
    let users = users.as_array().map_or(&[][..], Vec::as_slice);
    if users.is_empty() {
        return Ok(());
    }
    output::line("")?;
    let rows = users
        .iter()
        .map(|user| ["user", "reason"].map(|key| text(&user[key])));
    print_table(["DISTRUSTED", "FALSE RESULT"], rows)
}

pub(crate) async fn queues(args: MillArgs) -> Result<(), Failure> {
    let access = MillAccess::open_for_reading(&args).await?;
    let queues = access.queues().await?;
    access.close().await?;
    if args.json {
        return output::line(serde_json::to_string(&queues)?);
    }
    let rows = queues.into_iter().map(|queue| {
        [
            queue.queue,
            queue.readers.join(", "),
            format!("{}/{}", queue.waiting, queue.q_max),
            queue.leased.to_string(),
            queue.held.to_string(),
            queue.dead.to_string(),
            queue
                .lowest
                .map_or_else(|| "-".to_owned(), |block| block.to_string()),
        ]
    });
    print_table(
        [
            "QUEUE",
            "READERS",
            "WAITING/MAX",
            "LEASED",
            "HELD",
            "DEAD",
            "LOWEST",
        ],
        rows,
    )
}

pub(crate) async fn tasks(args: Tasks) -> Result<(), Failure> {
    let access = MillAccess::open_for_reading(&args.mill).await?;
    if let Some(stage) = &args.stage {
        let status = access.status().await?;
        let names: Vec<String> = status["stages"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|it| text(&it["stage"]))
            .collect();
        if !names.contains(stage) {
            access.close().await?;
            return Err(Failure::usage(format!(
                "no stage {stage:?}; there are {}",
                names.join(", ")
            )));
        }
    }
    // Ask for one more task than is shown, to know whether there are more.
    let limit = args.limit.saturating_add(1);
    let query = TasksQuery {
        stage: args.stage,
        block: args.block,
        limit: Some(limit),
    };
    let mut tasks = access.tasks(query).await?;
    access.close().await?;
    let more = tasks.len() > args.limit;
    tasks.truncate(args.limit);
    if args.mill.json {
        return output::line(serde_json::to_string(&tasks)?);
    }
    if tasks.is_empty() && !more {
        return output::line("no live task");
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
    print_table(
        ["TASK", "PHASE", "WORKER", "FAILED", "BYTES", "ACCEPTED"],
        rows,
    )?;
    if more {
        output::line(format!(
            "(the first {} only: --limit shows more)",
            args.limit
        ))?;
    }
    Ok(())
}

fn text(value: &serde_json::Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Time since `at_ms`, milliseconds since the Unix epoch, in words: `5 min ago`.
pub(crate) fn ago(at_ms: u64) -> String {
    let seconds = wall_ms().saturating_sub(at_ms) / 1000;
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
) -> Result<(), Failure> {
    let one_line = |cell: String| output::plain(&cell).replace('\n', " ");
    let rows: Vec<[String; N]> = std::iter::once(head.map(str::to_owned))
        .chain(rows.into_iter().map(|row| row.map(one_line)))
        .collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..N).map(|column| width(column).unwrap_or(0)).collect();
    for row in &rows {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        output::line(cells.join("  ").trim_end())?;
    }
    Ok(())
}
