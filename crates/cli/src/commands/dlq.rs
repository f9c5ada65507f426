//! `proofmill dlq`

use crate::access::Access;
use crate::args::{Dlq, DlqTask, DlqTasks, Look};
use crate::commands::look::{ago, print_table};
use crate::failure::Failure;

pub(crate) async fn run(command: Dlq) -> Result<(), Failure> {
    match command {
        Dlq::List(args) => list(args).await,
        Dlq::Show(args) => show(args).await,
        Dlq::Retry(args) => change(args, true).await,
        Dlq::Drop(args) => change(args, false).await,
    }
}

async fn list(args: Look) -> Result<(), Failure> {
    let access = Access::to(args.state.state).await?;
    let letters = access.dead_letters().await?;
    access.close().await?;
    if args.json {
        println!("{}", serde_json::to_string(&letters)?);
        return Ok(());
    }
    if letters.is_empty() {
        println!("the dead-letter queue is empty");
        return Ok(());
    }
    let rows = letters.into_iter().map(|letter| {
        [letter.task, letter.attempts.to_string(), ago(letter.at_ms), letter.reason]
    });
    print_table(["TASK", "ATTEMPTS", "SINCE", "REASON"], rows);
    Ok(())
}

async fn show(args: DlqTask) -> Result<(), Failure> {
    let access = Access::to(args.look.state.state).await?;
    let letter = access.dead_letter(&args.task).await;
    access.close().await?;
    let letter = letter?;
    if args.look.json {
        println!("{}", serde_json::to_string(&letter)?);
        return Ok(());
    }
    println!("task      {} (to block {})", letter.summary.task, letter.last);
    println!("queue     {}", letter.queue);
    println!("dead      {}", ago(letter.summary.at_ms));
    println!("reason    {}", letter.summary.reason);
    for attempt in &letter.attempts {
        println!(
            "\nattempt {} by {}, {}, after {} ms",
            attempt.number,
            attempt.worker,
            ago(attempt.at_ms),
            attempt.wall_ms
        );
        println!("  {}", attempt.reason);
        if let Some(exit) = attempt.exit {
            println!("  exit code {exit}");
        }
        for (name, text) in [("stdout", &attempt.stdout), ("stderr", &attempt.stderr)] {
            for line in text.lines() {
                println!("  {name} | {line}");
            }
        }
    }
    let kind = if letter.payload_is_json { "JSON" } else { "hexadecimal" };
    println!("\npayload ({} bytes, {kind})\n{}", letter.payload_bytes, letter.payload);
    Ok(())
}

async fn change(args: DlqTasks, retry: bool) -> Result<(), Failure> {
    let access = Access::to(args.look.state.state).await?;
    let result = change_all(&access, args.tasks, args.all, retry).await;
    let running = access.is_running();
    access.close().await?;
    let changed = result?;
    if args.look.json {
        println!("{}", serde_json::json!({ "tasks": changed }));
    } else if retry {
        let when = if running { "" } else { "; they run when the mill does" };
        println!("{} back in their queues{when}", changed.len());
    } else {
        println!("{} dropped", changed.len());
    }
    Ok(())
}

async fn change_all(
    access: &Access,
    named: Vec<String>,
    all: bool,
    retry: bool,
) -> Result<Vec<String>, Failure> {
    let tasks = if all {
        access.dead_letters().await?.into_iter().map(|letter| letter.task).collect()
    } else {
        named
    };
    for task in &tasks {
        if retry {
            access.retry(task).await?;
        } else {
            access.drop_dead(task).await?;
        }
    }
    Ok(tasks)
}
