//! Tasks a second, sustained, with every task durable.

use std::time::{Duration, Instant};

use anyhow::Context;
use proofmill_orchestrator::conversation::Reply;
use tokio::time::timeout;

use crate::harness::{
    Common, Progress, Report, RunningMill, StateDisk, Target, json_message, one_stage, parse,
    registry, round,
};

/// Most unacknowledged submissions of one producer.
const WINDOW: usize = 256;

/// Longest wait for the next completion, after which the rest counts as lost.
const PATIENCE: Duration = Duration::from_secs(30);

/// Arguments of `proofmill-bench throughput`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A task counts when the record of its completion has been fsynced. The clock runs from the first
submission to the last such record; producers are held back by the queue's limit (q_max).

  proofmill-bench throughput
  proofmill-bench throughput --tasks 500000 --producers 16 --dir /mnt/nvme")]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    /// Tasks
    #[arg(long, default_value_t = 50_000)]
    tasks: usize,
    /// Dispatchers
    #[arg(long, default_value_t = 32)]
    dispatchers: u32,
    /// Producers that submit at once
    #[arg(long, default_value_t = 8)]
    producers: usize,
    /// Bytes of each task's payload, at least 32
    #[arg(long, default_value_t = 128)]
    payload: usize,
}

/// Measures and reports.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    anyhow::ensure!(
        args.producers > 0 && args.dispatchers > 0,
        "at least one of each is needed"
    );
    let disk = StateDisk::fresh(&args.common)?;
    let instant = r#"{ kind = "native", prover = "instant" }"#;
    let text = one_stage("throughput", args.dispatchers, instant);
    let registry = registry();
    let workflow = parse(&text, &registry)?;
    let mut mill =
        RunningMill::start(&workflow, registry, &disk, &disk.state("throughput")).await?;
    let queue = mill.queue("tasks")?;

    let began = Instant::now();
    let producers: Vec<_> = (0..args.producers)
        .map(|producer| {
            let handle = mill.source.clone();
            let blocks = (producer..args.tasks).step_by(args.producers);
            let pad = args.payload.saturating_sub(32);
            tokio::spawn(async move {
                let mut waiting = std::collections::VecDeque::with_capacity(WINDOW);
                let mut refused = 0_usize;
                for block in blocks {
                    let payload = format!("{{\"block\":{block:010},\"pad\":\"{:pad$}\"}}", "");
                    let request = json_message(queue, block as u64, payload);
                    waiting.push_back(handle.submit_later(request).await?);
                    if waiting.len() == WINDOW
                        && let Some(reply) = waiting.pop_front()
                    {
                        refused += usize::from(reply.await? != Reply::Accepted);
                    }
                }
                for reply in waiting {
                    refused += usize::from(reply.await? != Reply::Accepted);
                }
                anyhow::Ok(refused)
            })
        })
        .collect();

    let progress = Progress::new("throughput", args.tasks);
    let mut is_completed = vec![false; args.tasks];
    let (mut completed, mut duplicated) = (0, 0);
    let mut last = Instant::now();
    while completed < args.tasks {
        let Ok(settled) = timeout(PATIENCE, mill.next_completed()).await else {
            break;
        };
        let block = usize::try_from(settled?.task.id.block)?;
        if std::mem::replace(&mut is_completed[block], true) {
            duplicated += 1;
        } else {
            completed += 1;
            last = Instant::now();
        }
        if completed % 1024 == 0 {
            progress.set(completed);
        }
    }
    let wall = (last - began).as_secs_f64();
    drop(progress);
    let mut refused = 0;
    for producer in producers {
        refused += producer.await.context("a producer panicked")??;
    }
    let summary = mill.finish().await?;

    let mut report = Report::new(
        "Throughput: sustained, instant prover, every task durable",
        &disk,
    );
    let rate = completed as f64 / wall;
    let rate_min = if args.common.is_embedded() {
        5000.0
    } else {
        3000.0
    };
    report.figure("tasks a second", rate, "", Target::AtLeast(rate_min), "");
    report.figure("tasks", completed as f64, "", Target::None, "");
    report.figure("wall", wall, "s", Target::None, "");
    report.put("tasks_per_s", round(rate));
    report.put("tasks", completed);
    report.put("wall_s", round(wall));
    report.must_be_zero("lost", "lost", args.tasks - completed);
    report.must_be_zero("duplicated", "duplicated", duplicated);
    report.must_be("refused", refused, 0);
    report.must_be(
        "left unfinished",
        summary.status.live + summary.status.dead,
        0,
    );
    report.finish(&args.common)
}
