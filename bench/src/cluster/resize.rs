//! Collectors come and go under a steady load: every barrier fires once.

use std::time::Duration;

use crate::harness::{
    Common, EmissionCounter, Load, Report, Role, RunningMill, StateDisk, Target, barriers,
    is_group, member, parse, registry, round,
};

/// Longest time to finish the remaining barriers after the last submission.
const PATIENCE: Duration = Duration::from_secs(30);

/// Arguments of `proofmill-bench cluster resize`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    /// Processes of collectors, one number after the other; what is too many is told to end
    #[arg(long, value_delimiter = ',', default_values_t = [1, 4, 3, 7, 2])]
    collectors: Vec<usize>,
    /// Seconds at each number
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Barriers a second
    #[arg(long, default_value_t = 50.0)]
    rate: f64,
    /// Messages of each
    #[arg(long, default_value_t = 4)]
    members: u64,
}

/// Measures and reports.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let disk = StateDisk::fresh(&args.common)?;
    let k = args.members;
    let registry = registry();
    let workflow = parse(&barriers("resize", k), &registry)?;
    let mut mill = RunningMill::start(&workflow, registry, &disk, &disk.state("resize")).await?;
    let emissions = EmissionCounter::count(mill.take_emitted(), move |emitted| {
        is_group(emitted.first, k, &emitted.bytes)
    });
    let (plan, queue) = (mill.leader.plan().clone(), mill.queue("parts")?);
    let load = Load::start(mill.source.clone(), args.rate, move |group| {
        (0..k)
            .map(|index| member(&plan, queue, group, index))
            .collect()
    });
    let mut rows = Vec::new();
    for count in &args.collectors {
        let resize = async {
            loop {
                let running = mill.fleet()?.names(Role::Collector);
                match running.first() {
                    Some(oldest) if running.len() > *count => {
                        mill.fleet()?.terminate(oldest).await?
                    }
                    _ if running.len() < *count => drop(mill.fleet()?.start(Role::Collector)?),
                    _ => break,
                }
            }
            mill.wait_for_collectors(*count).await
        };
        let time = Duration::from_secs(args.seconds);
        let (hosts, pause) = tokio::join!(resize, emissions.pause_within(time));
        let kept: Vec<usize> = hosts?.iter().map(|host| host.partitions).collect();
        eprintln!("{count} collectors: {kept:?} partitions, longest pause {pause:.3?}");
        rows.push((*count, pause.as_secs_f64()));
    }
    let submitted = load.end().await?;
    emissions.reaches(submitted, PATIENCE).await;
    mill.abandon();
    let mut report = Report::new(
        &format!(
            "Resize: collectors {:?}, {} barriers of {k} a second",
            args.collectors, args.rate
        ),
        &disk,
    );
    for (count, pause) in &rows {
        let name = format!("to {count} collectors: longest pause between barriers");
        report.figure(&name, *pause, "s", Target::None, "");
    }
    let longest = rows.iter().map(|(_, pause)| *pause).fold(0.0, f64::max);
    report.put("longest_pause_s", round(longest));
    report.put("barriers", submitted);
    report.emissions(&emissions, submitted);
    report.finish(&args.common)
}
