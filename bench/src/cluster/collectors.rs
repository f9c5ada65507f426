//! A collector is killed in the middle of its groups: measures the time until the groups are complete.

use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::time::timeout;

use crate::harness::{
    Common, EmissionCounter, Figures, Report, Role, RunningMill, StateDisk, Target, barriers,
    is_group, member, parse, registry, round,
};

/// Longest wait for a reply, and for the groups to become complete after a kill.
const PATIENCE: Duration = Duration::from_secs(30);

/// Arguments of `proofmill-bench cluster collectors`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    /// Times that a collector is killed
    #[arg(long, default_value_t = 20)]
    kills: u64,
    /// Processes of collectors
    #[arg(long, default_value_t = 3)]
    collectors: usize,
    /// Groups that are half gathered at each kill
    #[arg(long, default_value_t = 24)]
    groups: u64,
    /// Messages of each
    #[arg(long, default_value_t = 4)]
    members: u64,
}

/// Measures and reports.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    anyhow::ensure!(args.members > 1, "--members must be at least 2");
    let disk = StateDisk::fresh(&args.common)?;
    let k = args.members;
    let registry = registry();
    let workflow = parse(&barriers("collectors", k), &registry)?;
    let state = disk.state("collectors");
    let mut mill = RunningMill::start(&workflow, registry, &disk, &state).await?;
    let emissions = EmissionCounter::count(mill.take_emitted(), move |emitted| {
        is_group(emitted.first, k, &emitted.bytes)
    });
    for _ in 0..args.collectors {
        mill.fleet()?.start(Role::Collector)?;
    }
    mill.wait_for_collectors(args.collectors).await?;
    mill.settle().await;
    let mut took = Vec::new();
    for kill in 0..args.kills {
        let groups = kill * args.groups..(kill + 1) * args.groups;
        submit(&mill, groups.clone(), 0..k / 2).await?;
        mill.wait_until_idle().await?;
        // The victim is the process with the most partitions.
        let hosts = mill.wait_for_collectors(args.collectors).await?;
        let most = hosts.iter().max_by_key(|host| host.partitions);
        let victim = most.context("there are collectors")?.host.clone();
        mill.fleet()?.kill(&victim)?;
        let killed = Instant::now();
        submit(&mill, groups.clone(), k / 2..k).await?;
        if !emissions.reaches(groups.end, PATIENCE).await {
            break;
        }
        took.push(killed.elapsed().as_secs_f64());
        mill.fleet()?.start(Role::Collector)?;
        mill.wait_for_collectors(args.collectors).await?;
    }
    mill.abandon();
    let figures = Figures::of(took);
    let mut report = Report::new(
        &format!(
            "Collectors: SIGKILL of one of {} in the middle of {} groups → all of them complete",
            args.collectors, args.groups
        ),
        &disk,
    );
    report.figure("P50", figures.p50(), "s", Target::None, "");
    report.figure("P95", figures.quantile(0.95), "s", Target::AtMost(1.0), "");
    report.figure("max", figures.max(), "s", Target::None, "");
    report.put("p50_s", round(figures.p50()));
    report.put("p95_s", round(figures.quantile(0.95)));
    report.must_be("kills", figures.len(), usize::try_from(args.kills)?);
    report.emissions(&emissions, args.kills * args.groups);
    report.finish(&args.common)
}

/// Submits some members of some groups, and waits until they are durable.
async fn submit(
    mill: &RunningMill,
    groups: std::ops::Range<u64>,
    members: std::ops::Range<u64>,
) -> anyhow::Result<()> {
    let queue = mill.queue("parts")?;
    let mut replies = Vec::new();
    for group in groups {
        for index in members.clone() {
            let request = member(mill.leader.plan(), queue, group, index);
            replies.push(mill.source.submit_later(request).await?);
        }
    }
    for reply in replies {
        timeout(PATIENCE, reply).await.context("no reply comes")??;
    }
    Ok(())
}
