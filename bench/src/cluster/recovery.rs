//! A dispatcher is killed: how long until another begins what it had.

use std::time::{Duration, Instant};

use anyhow::Context;

use crate::harness::{
    Common, Figures, Place, Report, Running, Target, json_message, one_stage, parse, registry,
    round,
};

const PATIENCE: Duration = Duration::from_secs(60);

/// Arguments of `proofmill-bench cluster recovery`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    /// Times that a dispatcher is killed
    #[arg(long, default_value_t = 20)]
    kills: usize,
}

/// Measures and reports.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let place = Place::fresh(&args.common)?;
    let executor = r#"{ kind = "native", prover = "sleep", params = { ms = 30000.0 } }"#;
    let registry = registry();
    let mut took = Vec::new();
    for kill in 0..args.kills {
        // Two dispatchers, a process each; one task, which one of them gets.
        let workflow = parse(&one_stage("recovery", 2, executor), &registry)?;
        let state = place.state(&format!("recovery-{kill}"));
        let mut mill = Running::start(&workflow, registry.clone(), &place, &state).await?;
        anyhow::ensure!(
            mill.dispatchers.len() == 2,
            "dispatchers that can be killed need --bus jetstream"
        );
        let queue = mill.queue("tasks")?;
        let request = json_message(queue, 0, "{}");
        mill.handle.submit(request).await?;
        let holder = held(&mill).await?;
        // A leader that has just connected gives everyone time to do so, too.
        tokio::time::sleep(Duration::from_millis(3200)).await;
        let victim = mill
            .dispatchers
            .iter_mut()
            .find(|process| holder.ends_with(&format!("role-{}", process.id())))
            .with_context(|| format!("no process is {holder}"))?;
        victim.kill();
        let killed = Instant::now();
        loop {
            let now = held(&mill).await?;
            if now != holder {
                break;
            }
            anyhow::ensure!(killed.elapsed() < PATIENCE, "nobody takes over");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        took.push(killed.elapsed().as_secs_f64());
        eprintln!("kill {}: {:.3} s", kill + 1, took[kill]);
        mill.abandon();
    }
    let figures = Figures::of(took);
    let mut report = Report::new(
        "Recovery: SIGKILL of a dispatcher → another has its task",
        &place,
    );
    report.figure("P50", figures.p50(), "s", Target::Open, "0.5 s claimed");
    report.figure("P95", figures.at(0.95), "s", Target::Most(1.0), "");
    report.figure("max", figures.max(), "s", Target::Open, "");
    report.put("p95_s", round(figures.at(0.95)));
    report.note(
        "a JetStream consumer alone waits for the whole ack wait (5 s in the paper's setting)",
    );
    report.finish(&args.common)
}

/// The worker that has the task.
async fn held(mill: &Running) -> anyhow::Result<String> {
    let began = Instant::now();
    loop {
        let worker = mill
            .leader
            .inspect(|core| {
                let tasks = core.tasks(|_| true);
                tasks.first().and_then(|task| task.worker.clone())
            })
            .await?;
        if let Some(worker) = worker {
            return Ok(worker.to_string());
        }
        anyhow::ensure!(began.elapsed() < PATIENCE, "nobody takes the task");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
