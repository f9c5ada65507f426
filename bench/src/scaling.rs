//! Share of their time that many dispatchers spend proving.

use std::time::{Duration, Instant};

use tokio::time::timeout;

use crate::harness::{
    Common, Progress, Report, RunningMill, StateDisk, Target, json_message, one_stage, parse,
    registry, round, sleep,
};

/// Time beyond a run's ideal duration at which its unfinished tasks count as lost.
const PATIENCE: Duration = Duration::from_secs(30);

/// Arguments of `proofmill-bench scaling`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Efficiency is the time that the proofs alone take (tasks of one dispatcher × time of one proof)
over the time from the first submission until the last completion is on disk. At 0 ms there is no
ideal time: the rate with all dispatchers is shown beside that of one.

  proofmill-bench scaling
  proofmill-bench scaling --dispatchers 128 --proof-ms 50,100
  proofmill-bench scaling --bus jetstream --dispatchers 1,2,4,8,16,32 --proof-ms 100,1000")]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    /// Dispatchers; several runs if several, separated by commas
    #[arg(long, value_delimiter = ',', default_values_t = [32])]
    dispatchers: Vec<u32>,
    /// Tasks for each of them
    #[arg(long, default_value_t = 10)]
    each: u32,
    /// Milliseconds of one proof; several runs if several, separated by commas
    #[arg(long, value_delimiter = ',', default_values_t = [0.0, 100.0, 1000.0])]
    proof_ms: Vec<f64>,
}

struct Run {
    wall: f64,
    tasks: usize,
    lost: usize,
    duplicated: usize,
}

/// Measures and reports.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    anyhow::ensure!(
        args.dispatchers.iter().all(|count| *count > 0) && args.each > 0,
        "at least one of each is needed"
    );
    let disk = StateDisk::fresh(&args.common)?;
    let title = format!(
        "Scaling: {:?} dispatchers, {} tasks each, sleeping provers, durable",
        args.dispatchers, args.each
    );
    let mut report = Report::new(&title, &disk);
    let (mut lost, mut duplicated) = (0, 0);
    let mut runs = Vec::new();
    let mut cases = Vec::new();
    for proof_ms in &args.proof_ms {
        cases.extend(args.dispatchers.iter().map(|count| (*proof_ms, *count)));
    }
    for (proof_ms, dispatchers) in cases {
        let many = measure(args, &disk, dispatchers, proof_ms).await?;
        lost += many.lost;
        duplicated += many.duplicated;
        let rate = many.tasks as f64 / many.wall;
        let mut json = serde_json::json!({
            "dispatchers": dispatchers,
            "proof_ms": proof_ms,
            "wall_s": round(many.wall),
            "tasks_per_s": round(rate),
        });
        if proof_ms > 0.0 {
            let efficiency = 1e-3 * proof_ms * f64::from(args.each) / many.wall;
            let is_push0s = dispatchers == 32 && (proof_ms - 100.0).abs() < f64::EPSILON;
            let target = if proof_ms >= 1000.0 {
                Target::AtLeast(99.0)
            } else if proof_ms >= 100.0 {
                Target::AtLeast(97.0)
            } else {
                Target::None
            };
            let name = format!("efficiency of {dispatchers} at {proof_ms} ms");
            let push0 = if is_push0s { "55 %" } else { "" };
            report.figure(&name, 100.0 * efficiency, "%", target, push0);
            let exact = (efficiency * 1e5).round() / 1e5;
            json["efficiency"] = exact.into();
            if is_push0s {
                report.put("efficiency", exact);
            }
        } else {
            let one = measure(args, &disk, 1, proof_ms).await?;
            lost += one.lost;
            duplicated += one.duplicated;
            let alone = one.tasks as f64 / one.wall;
            let name = format!("tasks a second of {dispatchers} at 0 ms");
            report.figure(&name, rate, "", Target::None, "");
            report.figure("the same, one dispatcher", alone, "", Target::None, "");
            json["tasks_per_s_of_one"] = round(alone).into();
        }
        runs.push(json);
    }
    report.note("push0's figure: table V, 100 ms, 32 dispatchers, local NATS");
    report.put("runs", runs);
    report.must_be_zero("lost", "lost", lost);
    report.must_be_zero("duplicated", "duplicated", duplicated);
    report.finish(&args.common)
}

async fn measure(
    args: &Args,
    disk: &StateDisk,
    dispatchers: u32,
    proof_ms: f64,
) -> anyhow::Result<Run> {
    let text = one_stage("scaling", dispatchers, &sleep(proof_ms));
    let registry = registry();
    let workflow = parse(&text, &registry)?;
    let state = disk.state(&format!("{dispatchers}-{proof_ms}"));
    let mut mill = RunningMill::start(&workflow, registry, disk, &state).await?;
    let queue = mill.queue("tasks")?;
    let tasks = (dispatchers * args.each) as usize;
    let progress = Progress::new(
        &format!("{dispatchers} dispatchers at {proof_ms} ms"),
        tasks,
    );

    let began = Instant::now();
    for block in 0..tasks {
        let request = json_message(queue, block as u64, format!("{{\"block\":{block}}}"));
        // The reply is not awaited, as the completions are counted below.
        drop(mill.source.submit_later(request).await?);
    }
    let mut is_completed = vec![false; tasks];
    let (mut completed, mut duplicated) = (0, 0);
    let patience = PATIENCE + Duration::from_secs_f64(proof_ms / 1e3);
    let mut last = began;
    while completed < tasks {
        let Ok(settled) = timeout(patience, mill.next_completed()).await else {
            break;
        };
        if std::mem::replace(
            &mut is_completed[usize::try_from(settled?.task.id.block)?],
            true,
        ) {
            duplicated += 1;
        } else {
            completed += 1;
            last = Instant::now();
        }
        progress.set(completed);
    }
    let wall = (last - began).as_secs_f64();
    mill.finish().await?;
    Ok(Run {
        wall,
        tasks: completed,
        lost: tasks - completed,
        duplicated,
    })
}
