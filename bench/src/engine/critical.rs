//! A critical job behind many others: measures the time until it starts.

use std::time::Duration;

use anyhow::Context;
use proofmill_engine::{Event, EventKind, JobId, KeyForm, Options, Priority};
use tokio::sync::broadcast::Receiver;

use super::{BYTES, EngineInProcess};
use crate::circom::CircuitArgs;
use crate::harness::{Common, Report, StateDisk, Target, round};

/// Number of normal jobs that are submitted before the critical one.
const NORMAL_JOBS: usize = 20;

/// Arguments of `proofmill-bench engine critical`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    circuit: CircuitArgs,
    /// Number of trials
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

/// Measures and reports.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let disk = StateDisk::fresh(&args.common)?;
    let circuit = args.circuit.prepare(BYTES)?;
    let options = Options {
        key_form: KeyForm::Prepared { percent: 300 },
        ..Options::default()
    };
    let engine = EngineInProcess::start(options, &circuit).await?;
    engine.load().await?;
    let (mut waited, mut done, mut step, mut late_starts) = (Vec::new(), Vec::new(), 0, 0);
    for number in 0..args.rounds {
        let mut jobs = Vec::new();
        for index in 0..NORMAL_JOBS {
            let request = format!("normal-{number}-{index}");
            jobs.push(engine.submit(&request, 1, Priority::Normal).await?);
        }
        engine.wait_for_proofs(jobs[0]).await?;
        let events = engine.handle.events();
        let request = format!("critical-{number}");
        let critical = engine.submit(&request, 1, Priority::Critical).await?;
        let found = watch_job(events, critical).await?;
        waited.push(found.waited as f64 / 1e3);
        done.push(found.took as f64 / 1e3);
        step = step.max(found.longest_step);
        late_starts += usize::from(found.waited > found.longest_step);
        for job in jobs {
            engine.wait_for_proofs(job).await?;
        }
    }
    engine.finish().await?;
    let longest_wait = waited.iter().copied().fold(0.0, f64::max);
    let step = Duration::from_micros(step).as_secs_f64() * 1e3;
    let mut report = Report::new("Engine: a critical job behind twenty others", &disk);
    report.figure(
        "the critical job began after, at most",
        longest_wait,
        "ms",
        Target::AtMost(step),
        "",
    );
    report.figure("the longest step meanwhile", step, "ms", Target::None, "");
    let took = done.iter().sum::<f64>() / done.len().max(1) as f64;
    report.figure(
        "its proof was ready after, mean",
        took,
        "ms",
        Target::None,
        "",
    );
    report.put("began_ms", round(longest_wait));
    report.put("step_ms", round(step));
    report.put("took_ms", round(took));
    report.must_be_zero("late", "began later than a step", late_starts);
    report.finish(&args.common)
}

/// Times of one critical job, in microseconds.
struct CriticalTimes {
    /// Time from the arrival to the first stage.
    waited: u64,
    /// Time from the arrival to the end.
    took: u64,
    /// The longest step of any job between the arrival and the end.
    longest_step: u64,
}

/// Reads the events until the critical job has ended.
async fn watch_job(mut events: Receiver<Event>, critical: JobId) -> anyhow::Result<CriticalTimes> {
    let (mut arrived, mut waited, mut longest_step) = (None, None, 0);
    loop {
        let event = events.recv().await.context("events were missed")?;
        match event.kind {
            EventKind::Job { job, state, .. } if job == critical => {
                let arrived = *arrived.get_or_insert(event.at_us);
                if state.is_final() {
                    return Ok(CriticalTimes {
                        waited: waited.context("it never began")?,
                        took: event.at_us - arrived,
                        longest_step,
                    });
                }
            }
            EventKind::Began { span, .. } if span.job == critical => {
                let arrived = arrived.context("it began before it was accepted")?;
                waited.get_or_insert(event.at_us - arrived);
            }
            EventKind::Ended { began_us, .. } => {
                longest_step = longest_step.max(event.at_us - began_us);
            }
            _ => {}
        }
    }
}
