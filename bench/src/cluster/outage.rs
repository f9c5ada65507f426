//! The server stops for seconds: measures the time until work continues.

use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::time::timeout;

use crate::harness::{
    Common, Report, RunningMill, StateDisk, Target, json_message, one_stage, parse, registry, sleep,
};

/// Longest wait for the next completion after the server goes on.
const PATIENCE: Duration = Duration::from_secs(60);

/// Arguments of `proofmill-bench cluster outage`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    /// Seconds that the server is stopped for (SIGSTOP)
    #[arg(long, value_delimiter = ',', default_values_t = [5, 10, 20])]
    seconds: Vec<u64>,
    /// Tasks submitted before and during each outage
    #[arg(long, default_value_t = 200)]
    tasks: u64,
}

/// Measures and reports.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let disk = StateDisk::fresh(&args.common)?;
    let servers = disk.servers.as_ref();
    let servers = servers.context("a server that can be stopped needs --bus jetstream")?;
    let registry = registry();
    let workflow = parse(&one_stage("outage", 8, &sleep(20.0)), &registry)?;
    let state = disk.state("outage");
    let mut mill = RunningMill::start(&workflow, registry, &disk, &state).await?;
    let queue = mill.queue("tasks")?;
    let mut rows = Vec::new();
    let (mut next, mut lost, mut duplicated) = (0, 0, 0);
    for seconds in &args.seconds {
        let first = next;
        let mut seen = vec![0_u32; args.tasks as usize];
        let before_outage = args.tasks / 2;
        for _ in 0..before_outage {
            let request = json_message(queue, next, format!("{{\"block\":{next}}}"));
            drop(mill.source.submit_later(request).await?);
            next += 1;
        }
        servers.servers[0].pause();
        for _ in before_outage..args.tasks {
            let request = json_message(queue, next, format!("{{\"block\":{next}}}"));
            drop(mill.source.submit_later(request).await?);
            next += 1;
        }
        tokio::time::sleep(Duration::from_secs(*seconds)).await;
        servers.servers[0].resume();
        let resumed = Instant::now();
        let mut completed = 0;
        let mut first_completion = None;
        while completed < args.tasks {
            let Ok(settled) = timeout(PATIENCE, mill.next_completed()).await else {
                break;
            };
            let block = settled?.task.id.block;
            let Some(count) = block
                .checked_sub(first)
                .and_then(|at| seen.get_mut(at as usize))
            else {
                duplicated += 1;
                continue;
            };
            *count += 1;
            if *count > 1 {
                duplicated += 1;
                continue;
            }
            completed += 1;
            first_completion.get_or_insert_with(|| resumed.elapsed());
        }
        lost += (args.tasks - completed) as usize;
        rows.push((*seconds, first_completion, resumed.elapsed()));
    }
    mill.finish().await?;
    let mut report = Report::new("Outage: SIGSTOP of the server, then SIGCONT", &disk);
    for (seconds, first_completion, all) in rows {
        let first_completion = first_completion.map_or(f64::NAN, |after| after.as_secs_f64());
        report.figure(
            &format!("{seconds} s: first completion after"),
            first_completion,
            "s",
            Target::None,
            "",
        );
        report.figure(
            &format!("{seconds} s: all {} completed after", args.tasks),
            all.as_secs_f64(),
            "s",
            Target::None,
            "",
        );
    }
    report.must_be_zero("lost", "lost", lost);
    report.must_be_zero("duplicated", "duplicated", duplicated);
    report.finish(&args.common)
}
