//! The leader is killed: measures the time until a task completes under another.

use std::time::{Duration, Instant};

use anyhow::Context;

use super::pair::{CoordinatorPair, LoadArgs, PATIENCE};
use crate::harness::{Common, Figures, Report, Role, StateDisk, Target, round};

/// Pause between a takeover and the next kill, in which the new leader and the standby settle.
const PAUSE_BEFORE_KILL: Duration = Duration::from_secs(2);

/// Arguments of `proofmill-bench cluster failover`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    /// Times that the leader is killed (SIGKILL)
    #[arg(long, default_value_t = 10)]
    kills: usize,
    #[command(flatten)]
    load: LoadArgs,
}

/// Measures and reports.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let disk = StateDisk::fresh(&args.common)?;
    let mut pair = CoordinatorPair::start("failover", &disk, &args.load).await?;
    let (mut led, mut completed) = (Vec::new(), Vec::new());
    for kill in 0..args.kills {
        tokio::time::sleep(PAUSE_BEFORE_KILL).await;
        let leader = pair.leader(None).await?;
        pair.fleet.kill(&leader)?;
        let killed = Instant::now();
        pair.leader(None).await?;
        led.push(killed.elapsed().as_secs_f64());
        let next = pair.emissions.next(PATIENCE).await;
        let next = next.context("nothing completes under the new leader")?;
        completed.push((next - killed).as_secs_f64());
        eprintln!(
            "kill {}: another leads after {:.3} s, completes after {:.3} s",
            kill + 1,
            led[kill],
            completed[kill]
        );
        pair.fleet.start(Role::Coordinator)?;
    }
    let mut report = Report::new(
        "Failover: SIGKILL of the leader → the first block proven and emitted under another",
        &disk,
    );
    let (led, completed) = (Figures::of(led), Figures::of(completed));
    report.figure("another leads, P50", led.p50(), "s", Target::None, "");
    report.figure("first block, P50", completed.p50(), "s", Target::None, "");
    report.figure(
        "first block, max",
        completed.max(),
        "s",
        Target::AtMost(3.0),
        "",
    );
    report.put("leads_p50_s", round(led.p50()));
    report.put("first_p50_s", round(completed.p50()));
    report.put("first_max_s", round(completed.max()));
    pair.finish(&mut report).await?;
    report.finish(&args.common)
}
