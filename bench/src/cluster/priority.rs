//! Priority of older blocks: counts tasks that start before an older one.

use std::time::Duration;

use anyhow::Context;
use proofmill_orchestrator::conversation::Reply;
use tokio::time::timeout;

use crate::harness::{
    Common, Progress, Report, Running, StateDisk, json_message, one_stage, parse, registry, sleep,
};

const PATIENCE: Duration = Duration::from_secs(60);

/// Arguments of `proofmill-bench cluster priority`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    /// Tasks, submitted newest block first
    #[arg(long, default_value_t = 512)]
    tasks: u64,
    /// Dispatchers
    #[arg(long, default_value_t = 32)]
    workers: u32,
    /// Milliseconds of a proof
    #[arg(long, default_value_t = 50)]
    ms: u32,
}

/// Measures and reports.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let disk = StateDisk::fresh(&args.common)?;
    let text = one_stage("priority", args.workers, &sleep(f64::from(args.ms)));
    let registry = registry();
    let workflow = parse(&text, &registry)?;
    let state = disk.state("priority");
    let mut mill = Running::start(&workflow, registry, &disk, &state).await?;
    let queue = mill.queue("tasks")?;
    // All must wait before any is begun: the first tasks keep every worker busy meanwhile.
    let mut replies = Vec::new();
    for block in (0..args.tasks).rev() {
        let payload = format!("{{\"block\":{block}}}");
        let request = json_message(queue, block, payload);
        replies.push(mill.source.submit_later(request).await?);
    }
    let mut accepted = 0;
    for reply in replies {
        accepted += usize::from(reply.await? == Reply::Accepted);
    }
    // When each was begun, by its completion and how long it was leased.
    let progress = Progress::new("priority", args.tasks as usize);
    let mut begun = Vec::new();
    while begun.len() < args.tasks as usize {
        let Ok(settled) = timeout(PATIENCE, mill.next_completed()).await else {
            break;
        };
        let settled = settled?;
        let timing = settled.timing.context("a completed task has its times")?;
        let leased = u64::try_from(timing.leased.as_micros())?;
        begun.push((timing.at.0.saturating_sub(leased), settled.task.block));
        progress.set(begun.len());
    }
    drop(progress);
    mill.finish().await?;
    begun.sort_unstable();
    // What was begun before everything had come could not be compared with what had not.
    let waiting = begun.len().saturating_sub(2 * args.workers as usize);
    let counted = &begun[begun.len() - waiting..];
    let inversions = counted
        .windows(2)
        .filter(|pair| pair[1].1 < pair[0].1 && pair[1].0 > pair[0].0)
        .count();
    let mut report = Report::new(
        &format!(
            "Priority: {} tasks newest first, {} workers, {} ms",
            args.tasks, args.workers, args.ms
        ),
        &disk,
    );
    report.must_be("accepted", accepted, args.tasks as usize);
    report.must_be_zero("lost", "lost", args.tasks as usize - begun.len());
    report.must_be_zero("inversions", "inversions", inversions);
    report.note("a FIFO consumer gives 480 inversions of 512 (shared design)");
    report.finish(&args.common)
}
