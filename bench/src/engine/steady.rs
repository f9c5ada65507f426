//! One job of many partitions: measures busy processors, and gaps in which no stage runs.

use std::time::{Duration, Instant};

use anyhow::Context;
use proofmill_engine::{
    DeviceOptions, Event, EventKind, KeyForm, Options, PipelineStage, Priority,
};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::{BYTES, EngineInProcess};
use crate::circom::CircuitArgs;
use crate::harness::{Common, Report, StateDisk, Target, processor_time, round};

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
    #[arg(long, default_value_t = 3)]
    partition_workers: usize,
    /// Products at once
    #[arg(long, default_value_t = 2)]
    products: usize,
}

/// Measures and reports.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let disk = StateDisk::fresh(&args.common)?;
    let circuit = args.circuit.prepare(BYTES)?;
    let options = Options {
        partition_workers: args.partition_workers,
        key_form: KeyForm::Prepared { percent: 300 },
        devices: DeviceOptions::processors(args.products),
        ..Options::default()
    };
    let engine = EngineInProcess::start(options, &circuit).await?;
    engine.load().await?;
    let events = tokio::spawn(collect_spans(engine.handle.events()));
    let began = Instant::now();
    let job = engine
        .submit("steady", args.partitions, Priority::Normal)
        .await?;
    engine.wait_for_proofs(job).await?;
    let wall = began.elapsed();
    engine.finish().await?;
    let spans = events.await.context("the events' reader panicked")??;

    let cores = std::thread::available_parallelism()?.get();
    let share =
        mean_busy_processors(&spans).context("the job is too short: take more --partitions")?;
    let share = 100.0 * share / cores as f64;
    let gap = longest_gap(&spans).as_secs_f64() * 1e3;
    let mut report = Report::new("Engine: one job of many partitions", &disk);
    report.figure("processors busy", share, "%", Target::AtLeast(95.0), "");
    report.figure(
        "longest time without a stage",
        gap,
        "ms",
        Target::AtMost(50.0),
        "",
    );
    let rate = 60.0 * args.partitions as f64 / wall.as_secs_f64();
    report.figure("proofs a minute", rate, "", Target::None, "");
    report.put("busy_percent", round(share));
    report.put("longest_gap_ms", round(gap));
    report.put("proofs_per_minute", round(rate));
    report.note(&format!(
        "{}: {} partitions, {} at once, products of {}, {cores} cores; busy: from the first proof's end \
         until the last partition's products begin",
        circuit.name(),
        args.partitions,
        args.partition_workers,
        args.products
    ));
    report.finish(&args.common)
}

/// The run of one stage for one partition.
#[derive(Clone, Copy, Debug)]
struct Span {
    stage: PipelineStage,
    /// Start, in microseconds of the engine's clock.
    began_us: u64,
    /// End, in microseconds of the engine's clock.
    ended_us: u64,
    /// Processor time that this process had used at the span's end.
    processor_time: Duration,
}

/// Collects the stages of all partitions until the engine has ended.
async fn collect_spans(mut events: Receiver<Event>) -> anyhow::Result<Vec<Span>> {
    let mut spans = Vec::new();
    loop {
        match events.recv().await {
            Ok(event) => {
                if let EventKind::Ended {
                    stage, began_us, ..
                } = event.kind
                {
                    spans.push(Span {
                        stage,
                        began_us,
                        ended_us: event.at_us,
                        processor_time: processor_time().context(
                            "the system does not say how long this process has computed",
                        )?,
                    });
                }
            }
            Err(RecvError::Closed) => return Ok(spans),
            Err(RecvError::Lagged(missed)) => {
                anyhow::bail!("{missed} events came faster than they were read")
            }
        }
    }
}

/// Average number of busy processors from the end of the first proof until the start of the last partition's products.
/// Outside that time there are too few partitions to fill all stages.
fn mean_busy_processors(spans: &[Span]) -> Option<f64> {
    let spans_of = |stage| spans.iter().filter(move |span| span.stage == stage);
    let first = spans_of(PipelineStage::Verify).min_by_key(|span| span.ended_us)?;
    let last = spans_of(PipelineStage::Evaluate).max_by_key(|span| span.ended_us)?;
    let wall = last
        .ended_us
        .checked_sub(first.ended_us)
        .filter(|us| *us > 0)?;
    let computed = last.processor_time.checked_sub(first.processor_time)?;
    Some(computed.as_secs_f64() / Duration::from_micros(wall).as_secs_f64())
}

/// The longest time without a running stage, between the start of the first one and the end of the last.
fn longest_gap(spans: &[Span]) -> Duration {
    let mut spans: Vec<(u64, u64)> = spans.iter().map(|it| (it.began_us, it.ended_us)).collect();
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
    use super::*;

    fn span(stage: PipelineStage, began_us: u64, ended_us: u64, computed_us: u64) -> Span {
        Span {
            stage,
            began_us,
            ended_us,
            processor_time: Duration::from_micros(computed_us),
        }
    }

    #[test]
    fn a_gap_is_where_no_stage_runs() {
        let micros = |spans: &[(u64, u64)]| {
            let spans: Vec<Span> = spans
                .iter()
                .map(|(began, ended)| span(PipelineStage::Prove, *began, *ended, 0))
                .collect();
            longest_gap(&spans).as_micros()
        };
        assert_eq!(micros(&[]), 0);
        assert_eq!(micros(&[(5, 9), (0, 5), (8, 20)]), 0);
        assert_eq!(micros(&[(0, 5), (12, 20), (1, 9), (30, 31)]), 10);
    }

    #[test]
    fn busy_processors_are_measured_while_there_is_enough_to_do() {
        let spans = [
            span(PipelineStage::Evaluate, 0, 10, 10),
            span(PipelineStage::Verify, 30, 40, 60),
            span(PipelineStage::Evaluate, 90, 140, 250),
            span(PipelineStage::Verify, 190, 200, 300),
        ];
        assert_eq!(mean_busy_processors(&spans), Some(1.9));
        assert_eq!(mean_busy_processors(&spans[..2]), None);
    }
}
