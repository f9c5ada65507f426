//! Barriers gathered by several collector processes: the share that fires with partition affinity and without.

use std::time::Duration;

use anyhow::Context;
use clap::ValueEnum;
use proofmill_orchestrator::conversation::Reply;
use proofmill_orchestrator::core::Routing;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use tokio::time::timeout;

use crate::harness::{
    Common, EmissionCounter, Report, Role, RunningMill, StateDisk, Target, barriers, is_group,
    member, parse, registry,
};

/// Longest wait for the reply to a submission.
const PATIENCE: Duration = Duration::from_secs(60);

/// Arguments of `proofmill-bench cluster affinity`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    /// Routing of messages to collectors; one run for each
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [RoutingKind::Affine, RoutingKind::RoundRobin])]
    routing: Vec<RoutingKind>,
    /// Barriers
    #[arg(long, default_value_t = 100)]
    barriers: u64,
    /// Messages of each
    #[arg(long, default_value_t = 4)]
    members: u64,
    /// Processes of collectors
    #[arg(long, default_value_t = 3)]
    collectors: usize,
    /// Seed of the order of submission
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Routing of messages to collectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RoutingKind {
    /// All of a group go to the process that keeps its partition
    Affine,
    /// One after the other to each process
    RoundRobin,
}

/// Result of one run.
struct Run {
    fired: u64,
    held: usize,
    wrong: usize,
    duplicated: usize,
}

/// Measures and reports.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let disk = StateDisk::fresh(&args.common)?;
    let title = format!(
        "Affinity: {} barriers of {} messages in random order, {} collectors",
        args.barriers, args.members, args.collectors
    );
    let mut report = Report::new(&title, &disk);
    let (mut wrong, mut duplicated) = (0, 0);
    for by in &args.routing {
        let run = measure(args, &disk, *by).await?;
        let name = match by {
            RoutingKind::Affine => "affine",
            RoutingKind::RoundRobin => "round-robin",
        };
        let label = format!("{name}: barriers that fired");
        if *by == RoutingKind::Affine {
            report.must_be(
                &label,
                usize::try_from(run.fired)?,
                usize::try_from(args.barriers)?,
            );
        } else {
            report.figure(&label, run.fired as f64, "", Target::None, "");
        }
        let label = format!("{name}: messages left in unfinished groups");
        report.figure(&label, run.held as f64, "", Target::None, "");
        report.put(&format!("fired_{name}"), run.fired);
        report.put(&format!("held_{name}"), run.held);
        wrong += run.wrong;
        duplicated += run.duplicated;
    }
    report.must_be_zero("wrong", "barriers with other members", wrong);
    report.must_be_zero("duplicated", "barriers fired twice", duplicated);
    report.note(
        "round-robin is the order of shared consumers; this mode exists for the experiment only",
    );
    report.finish(&args.common)
}

async fn measure(args: &Args, disk: &StateDisk, by: RoutingKind) -> anyhow::Result<Run> {
    let k = args.members;
    let registry = registry();
    let workflow = parse(&barriers("affinity", k), &registry)?;
    let state = disk.state(&format!("affinity-{by:?}"));
    let routing = match by {
        RoutingKind::Affine => Routing::Affine,
        RoutingKind::RoundRobin => Routing::RoundRobin,
    };
    let mut mill = RunningMill::start_routed(&workflow, registry, disk, &state, routing).await?;
    for _ in 0..args.collectors {
        mill.fleet()?.start(Role::Collector)?;
    }
    mill.wait_for_collectors(args.collectors).await?;
    let emissions = EmissionCounter::count(mill.take_emitted(), move |emitted| {
        is_group(emitted.first, k, &emitted.bytes)
    });
    let queue = mill.queue("parts")?;
    let members = (0..args.barriers).flat_map(|group| (0..k).map(move |index| (group, index)));
    let mut members: Vec<(u64, u64)> = members.collect();
    members.shuffle(&mut StdRng::seed_from_u64(args.seed));
    let mut replies = Vec::new();
    for (group, index) in members {
        let request = member(mill.leader.plan(), queue, group, index);
        replies.push(mill.source.submit_later(request).await?);
    }
    for reply in replies {
        let reply = timeout(PATIENCE, reply).await.context("no reply comes")??;
        anyhow::ensure!(reply == Reply::Accepted, "not accepted: {reply:?}");
    }
    mill.wait_until_idle().await?;
    let status = mill.leader.operator().status().await?;
    let mut stages = status.stages.iter();
    let gather = stages.find(|stage| &*stage.stage == "gather");
    let gather = gather.context("the workflow has a collector")?;
    let (fired, held) = (gather.counters.grouped / k, gather.held);
    // With round-robin routing, some groups never become complete, so the mill cannot drain.
    mill.abandon();
    let counts = emissions.so_far();
    Ok(Run {
        fired,
        held,
        wrong: counts.wrong,
        duplicated: counts.tally.duplicated(),
    })
}
