//! Time that the orchestration adds to a task: from the start of its submission until its completion is on disk, with
//! a prover that takes no time.

mod bare;
mod native;
mod process;
mod traces;

use std::time::Duration;

use clap::ValueEnum;

use crate::harness::{Common, Figures, Report, StateDisk, Target, round};

use bare::Bare;
pub(crate) use process::echo;

/// Arguments of `proofmill-bench latency`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Every figure is from publish to completion recorded: the clock starts before the submission, and
stops when the completion's record has been fsynced. On the way are two durable records (the task,
the result), the scheduling, the lease and the prover's thread. With --bus jetstream, the bare round
trips of the same server are measured in turn.

  proofmill-bench latency
  proofmill-bench latency --rate 100 --tasks 5000 --dir /mnt/nvme
  proofmill-bench latency --traces             # what exporting every trace costs
  proofmill-bench latency --executor process   # a program for each task; its bare start is
                                               # measured in turn, and taken off")]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    /// Executor of a task
    #[arg(long, value_enum, default_value_t = ExecutorKind::Native)]
    executor: ExecutorKind,
    /// Tasks a second; several runs if several, separated by commas
    #[arg(long, value_delimiter = ',', default_values_t = [10.0, 50.0, 100.0])]
    rate: Vec<f64>,
    /// Tasks of each run [default: 1000, or 300 with --executor process]
    #[arg(long)]
    tasks: Option<usize>,
    /// Dispatchers
    #[arg(long, default_value_t = 10)]
    dispatchers: u32,
    /// Compare runs that export all traces with runs that export none, in turn
    #[arg(long, conflicts_with = "executor")]
    traces: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ExecutorKind {
    /// A prover in this process
    Native,
    /// A program that copies its input to its output
    Process,
}

/// Result of one run, in milliseconds.
struct Run {
    overhead: Figures,
    /// Round trips of a plain client of the bus's server; `None` without a bus.
    bare: Option<Bare>,
    /// Times of the parts of a task's path, for information.
    parts: Vec<(&'static str, Figures)>,
    lost: usize,
    duplicated: usize,
}

/// Measures and reports.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    anyhow::ensure!(
        args.rate.iter().all(|rate| *rate > 0.0),
        "--rate must be above 0"
    );
    anyhow::ensure!(args.dispatchers > 0, "--dispatchers must be at least 1");
    let disk = StateDisk::fresh(&args.common)?;
    let (title, tasks) = match args.executor {
        ExecutorKind::Native => (
            "Latency: publish → completion recorded, durable, instant prover",
            1000,
        ),
        ExecutorKind::Process => (
            "Latency: overhead beyond the bare start of a program, durable",
            300,
        ),
    };
    let tasks = args.tasks.unwrap_or(tasks);
    if args.traces {
        return traces::run(args, &disk, tasks).await;
    }
    let mut report = Report::new(title, &disk);
    let (mut p50, mut p99) = (0.0_f64, 0.0_f64);
    let (mut lost, mut duplicated) = (0, 0);
    let mut rates = Vec::new();
    for rate in &args.rate {
        let pause = Duration::from_secs_f64(1.0 / rate);
        let fsync = disk.fsync_after(pause)?;
        let run = match args.executor {
            ExecutorKind::Native => native::measure(args, &disk, *rate, tasks, "native").await?,
            ExecutorKind::Process => process::measure(args, &disk, *rate, tasks).await?,
        };
        let figures = &run.overhead;
        let (limits_ms, push0) = match args.executor {
            ExecutorKind::Native if args.common.is_embedded() => {
                ((1.0, 3.0), ("2.7–10 ms", "4.9–18 ms"))
            }
            ExecutorKind::Native => ((2.0, 6.0), ("2.7–10 ms", "4.9–18 ms")),
            ExecutorKind::Process => ((2.0, f64::NAN), ("", "")),
        };
        report.figure(
            &format!("P50 at {rate}/s"),
            figures.p50(),
            "ms",
            Target::AtMost(limits_ms.0),
            push0.0,
        );
        let target = if limits_ms.1.is_nan() {
            Target::None
        } else {
            Target::AtMost(limits_ms.1)
        };
        report.figure(
            &format!("P99 at {rate}/s"),
            figures.p99(),
            "ms",
            target,
            push0.1,
        );
        report.figure(
            &format!("max at {rate}/s"),
            figures.max(),
            "ms",
            Target::None,
            "",
        );
        let mut json = serde_json::json!({
            "rate": rate,
            "tasks": tasks,
            "p50_ms": round(figures.p50()),
            "p99_ms": round(figures.p99()),
            "max_ms": round(figures.max()),
            "fsync_after_rest_p50_ms": round(fsync.p50()),
        });
        if let Some(bare) = &run.bare {
            for (name, share) in [("P50", 0.5), ("P99", 0.99)] {
                let key = name.to_lowercase();
                let (plain, stored) = (
                    bare.acknowledged.quantile(share),
                    bare.stored.quantile(share),
                );
                let label = format!("bare {name} at {rate}/s");
                report.figure(&label, plain, "ms", Target::None, "");
                let ratio = figures.quantile(share) / plain;
                let label = format!("ours / bare, {name} at {rate}/s");
                report.figure(&label, ratio, "", Target::AtMost(1.5), "");
                let label = format!("bare {name} with a result that is kept");
                report.figure(&label, stored, "ms", Target::None, "");
                let ratio = figures.quantile(share) / stored;
                let label = format!("ours / that, {name} at {rate}/s");
                report.figure(&label, ratio, "", Target::None, "");
                json[format!("bare_{key}_ms")] = round(plain).into();
                json[format!("bare_kept_{key}_ms")] = round(stored).into();
            }
        }
        let parts: Vec<String> = run
            .parts
            .iter()
            .map(|(name, part)| format!("{name} {:.3}", part.p50()))
            .collect();
        report.note(&format!(
            "at {rate}/s, P50 in ms: {}; an fsync after as long a rest {:.3}",
            parts.join(", "),
            fsync.p50()
        ));
        rates.push(json);
        p50 = p50.max(figures.p50());
        p99 = p99.max(figures.p99());
        lost += run.lost;
        duplicated += run.duplicated;
    }
    report.note("push0's figures: table II, local NATS");
    if !args.common.is_embedded() {
        report.note(
            "bare: publish to a stream, synced → a pull consumer has it → ack → the ack is \
             acknowledged; in turn with our tasks, at the same rate, on the same server; then \
             with a result published, and synced, before the ack",
        );
    }
    report.put("p50_ms", round(p50));
    report.put("p99_ms", round(p99));
    report.put("rates", rates);
    report.must_be_zero("lost", "lost", lost);
    report.must_be_zero("duplicated", "duplicated", duplicated);
    report.finish(&args.common)
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
