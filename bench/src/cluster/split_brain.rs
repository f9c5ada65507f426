//! The leader stands still beyond its lease, another leads, and the first wakes up.

use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::time::timeout;

use super::pair::{CoordinatorPair, LoadArgs, PATIENCE};
use crate::harness::{Common, Figures, Report, StateDisk, Target, round};

/// Pause before each stop, and after the last one.
const PAUSE_BEFORE_STOP: Duration = Duration::from_secs(2);

/// Arguments of `proofmill-bench cluster split-brain`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    /// Times that the leader is stopped (SIGSTOP)
    #[arg(long, default_value_t = 5)]
    stops: usize,
    /// Seconds that it stands still after another leads
    #[arg(long, default_value_t = 2)]
    seconds: u64,
    #[command(flatten)]
    load: LoadArgs,
}

/// Measures and reports.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let disk = StateDisk::fresh(&args.common)?;
    let pair = CoordinatorPair::start("split-brain", &disk, &args.load).await?;
    let (mut completed, mut believed) = (Vec::new(), Vec::new());
    let mut leader = pair.leader(None).await?;
    for stop in 0..args.stops {
        tokio::time::sleep(PAUSE_BEFORE_STOP).await;
        let old = pair.fleet.get(&leader)?;
        old.pause();
        let stopped = Instant::now();
        let new = pair.leader(Some(&leader)).await?;
        let next = pair.emissions.next(PATIENCE).await;
        let next = next.context("nothing completes under the new leader")?;
        completed.push((next - stopped).as_secs_f64());
        tokio::time::sleep(Duration::from_secs(args.seconds)).await;
        old.resume();
        let woken = Instant::now();
        timeout(PATIENCE, old.wait_for_leadership(false))
            .await
            .context("the old leader does not step down")?;
        believed.push(woken.elapsed().as_secs_f64());
        eprintln!(
            "stop {}: completes after {:.3} s; believed that it leads for {:.3} s",
            stop + 1,
            completed[stop],
            believed[stop]
        );
        leader = new;
    }
    tokio::time::sleep(PAUSE_BEFORE_STOP).await;
    let mut report = Report::new(
        "Split brain: SIGSTOP of the leader, another leads, SIGCONT",
        &disk,
    );
    let (completed, believed) = (Figures::of(completed), Figures::of(believed));
    report.figure(
        "stopped → first block under another, max",
        completed.max(),
        "s",
        Target::None,
        "",
    );
    let name = "awake and believes that it leads, P50";
    report.figure(name, believed.p50(), "s", Target::None, "");
    let name = "the same, max";
    report.figure(name, believed.max(), "s", Target::None, "");
    report.put("first_max_s", round(completed.max()));
    report.put("believed_p50_s", round(believed.p50()));
    report.put("believed_max_s", round(believed.max()));
    pair.finish(&mut report).await?;
    report.finish(&args.common)
}
