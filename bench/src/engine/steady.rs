//! One job of many partitions: whether something always runs.

use std::time::{Duration, Instant};

use anyhow::Context;
use proofmill_engine::{Event, EventKind, KeyForm, Options, Priority};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::{BYTES, Running};
use crate::circom::CircuitArgs;
use crate::harness::{Common, Place, Report, Target, processor_time, round};

/// Arguments of `proofmill-bench engine steady`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    circuit: CircuitArgs,
    /// Partitions of the job
    #[arg(long, default_value_t = 24)]
    partitions: usize,
    /// Partitions under way at once
    #[arg(long, default_value_t = 2)]
    partition_workers: usize,
}

/// Measures and reports.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let place = Place::fresh(&args.common)?;
    let circuit = args.circuit.prepare(BYTES)?;
    let options = Options {
        partition_workers: args.partition_workers,
        key_form: KeyForm::Prepared { percent: 300 },
        ..Options::default()
    };
    let engine = Running::start(options, &circuit).await?;
    engine.load().await?;
    let events = tokio::spawn(collect(engine.handle.events()));
    let before = (Instant::now(), processor_time());
    let job = engine
        .submit("steady", args.partitions, Priority::Normal)
        .await?;
    engine.finished(job).await?;
    let (wall, busy) = (before.0.elapsed(), processor_time());
    engine.finish().await?;
    let spans = events.await.context("the events' reader panicked")??;

    let cores = std::thread::available_parallelism()?.get();
    let busy = busy.zip(before.1).map(|(after, before)| after - before);
    let busy = busy.context("the system does not say how long this process has computed")?;
    let share = 100.0 * busy.as_secs_f64() / wall.as_secs_f64() / cores as f64;
    let gap = longest_gap(spans).as_secs_f64() * 1e3;
    let mut report = Report::new("Engine: one job of many partitions", &place);
    report.figure("processors busy", share, "%", Target::Least(95.0), "");
    report.figure(
        "longest time without a stage",
        gap,
        "ms",
        Target::Most(50.0),
        "",
    );
    let rate = 60.0 * args.partitions as f64 / wall.as_secs_f64();
    report.figure("proofs a minute", rate, "", Target::Open, "");
    report.put("busy_percent", round(share));
    report.put("longest_gap_ms", round(gap));
    report.put("proofs_per_minute", round(rate));
    report.note(&format!(
        "{}: {} partitions, {} at once, {cores} cores; from the submission to the result",
        circuit.name(),
        args.partitions,
        args.partition_workers
    ));
    report.finish(&args.common)
}

/// When a stage began and ended, in microseconds.
type Span = (u64, u64);

/// Every stage of every partition, until the engine has ended.
async fn collect(mut events: Receiver<Event>) -> anyhow::Result<Vec<Span>> {
    let mut spans = Vec::new();
    loop {
        match events.recv().await {
            Ok(event) => {
                if let EventKind::Ended { began_us, .. } = event.kind {
                    spans.push((began_us, event.at_us));
                }
            }
            Err(RecvError::Closed) => return Ok(spans),
            Err(RecvError::Lagged(missed)) => {
                anyhow::bail!("{missed} events came faster than they were read")
            }
        }
    }
}

/// The longest time between the first stage's beginning and the last one's end in which none ran.
fn longest_gap(mut spans: Vec<Span>) -> Duration {
    spans.sort_unstable();
    let mut until = spans.first().map_or(0, |span| span.0);
    let mut longest = 0;
    for (began, ended) in spans {
        longest = longest.max(began.saturating_sub(until));
        until = until.max(ended);
    }
    Duration::from_micros(longest)
}

#[cfg(test)]
mod tests {
    use super::longest_gap;

    #[test]
    fn a_gap_is_where_no_stage_runs() {
        let micros = |spans: &[(u64, u64)]| longest_gap(spans.to_vec()).as_micros();
        assert_eq!(micros(&[]), 0);
        assert_eq!(micros(&[(5, 9), (0, 5), (8, 20)]), 0);
        assert_eq!(micros(&[(0, 5), (12, 20), (1, 9), (30, 31)]), 10);
    }
}
