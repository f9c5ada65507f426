//! A dispatcher is killed or stopped: measures the time until another has its task, for several T_ack.

use proofmill_orchestrator::conversation::TaskSelection;
use std::time::{Duration, Instant};

use crate::harness::{
    Common, Figures, Report, Role, RunningMill, StateDisk, Target, json_message, one_stage, parse,
    registry, round, sleep,
};

/// Longest wait for a takeover beyond T_ack.
const PATIENCE: Duration = Duration::from_secs(30);

/// Milliseconds of a proof, so long that none is finished during a run.
const PROOF_MS: f64 = 60_000.0;

/// Arguments of `proofmill-bench cluster recovery`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    /// Seconds of T_ack; several runs if several, separated by commas
    #[arg(long, value_delimiter = ',', default_values_t = [1, 5, 10, 30])]
    t_ack: Vec<u64>,
    /// Times that a dispatcher is killed (SIGKILL), for each T_ack
    #[arg(long, default_value_t = 5)]
    kills: usize,
    /// Times that a dispatcher is stopped (SIGSTOP), for each T_ack
    #[arg(long, default_value_t = 1)]
    stops: usize,
}

/// A failure of the dispatcher that has the task: SIGKILL or SIGSTOP.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Failure {
    Kill,
    Stop,
}

/// Measures and reports.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let disk = StateDisk::fresh(&args.common)?;
    let mut report = Report::new(
        "Recovery: a dispatcher killed or stopped → another has its task",
        &disk,
    );
    let (mut killed, mut rows) = (Vec::new(), Vec::new());
    for t_ack in &args.t_ack {
        let (kills, stops) = measure(args, &disk, *t_ack).await?;
        let push0 = if *t_ack == 5 { "0.5 s claimed" } else { "" };
        let (kills, stops) = (Figures::of(kills), Figures::of(stops));
        let name = format!("T_ack {t_ack} s: SIGKILL, P50");
        report.figure(&name, kills.p50(), "s", Target::None, push0);
        let name = format!("T_ack {t_ack} s: SIGSTOP, P50");
        report.figure(&name, stops.p50(), "s", Target::None, "");
        rows.push(serde_json::json!({
            "t_ack_s": t_ack,
            "killed_p50_s": round(kills.p50()),
            "killed_max_s": round(kills.max()),
            "stopped_p50_s": round(stops.p50()),
        }));
        killed.extend_from_slice(kills.all());
    }
    let figures = Figures::of(killed);
    report.figure("SIGKILL, P50 of all", figures.p50(), "s", Target::None, "");
    let p95 = figures.quantile(0.95);
    report.figure("SIGKILL, P95 of all", p95, "s", Target::AtMost(1.0), "");
    report.put("p50_s", round(figures.p50()));
    report.put("p95_s", round(p95));
    report.put("t_ack", rows);
    report.note(
        "the end of a process is noticed at once; a stopped process is noticed after T_ack or \
         after 20 s, and after T_ack the stage's backoff follows (1 ms here, 1 s by default)",
    );
    report.note(
        "a JetStream consumer alone waits for the whole ack wait (5 s in the paper's setting)",
    );
    report.finish(&args.common)
}

/// Seconds until the takeover after each kill, and after each stop.
async fn measure(
    args: &Args,
    disk: &StateDisk,
    t_ack: u64,
) -> anyhow::Result<(Vec<f64>, Vec<f64>)> {
    let state = disk.state(&format!("recovery-{t_ack}"));
    let heartbeat = (t_ack * 1000 / 5).min(5000);
    // One task for two dispatchers, each in a process. The end of a lease is a failed attempt, which
    // is followed by a backoff. It is set to 1 ms here, so that the backoff is not what is measured.
    let text = format!(
        "{}\n[defaults]\nt_ack = \"{t_ack}s\"\nheartbeat = \"{heartbeat}ms\"\nr_max = 1000\n\
         backoff = {{ initial = \"1ms\", max = \"1ms\" }}\n",
        one_stage("recovery", 2, &sleep(PROOF_MS))
    );
    let registry = registry();
    let workflow = parse(&text, &registry)?;
    let mut mill = RunningMill::start(&workflow, registry, disk, &state).await?;
    mill.fleet()?;
    let request = json_message(mill.queue("tasks")?, 0, "{}");
    mill.source.submit(request).await?;
    wait_for_holder(&mill, None, PATIENCE).await?;
    mill.settle().await;
    let (mut kills, mut stops) = (Vec::new(), Vec::new());
    let kill_failures = std::iter::repeat_n(Failure::Kill, args.kills);
    for failure in kill_failures.chain(std::iter::repeat_n(Failure::Stop, args.stops)) {
        let patience = PATIENCE + Duration::from_secs(t_ack);
        let holder = wait_for_holder(&mill, None, patience).await?;
        let name = process_of_worker(&mut mill, &holder)?;
        let fleet = mill.fleet()?;
        match failure {
            Failure::Kill => fleet.kill(&name)?,
            Failure::Stop => fleet.get(&name)?.pause(),
        }
        let began = Instant::now();
        wait_for_holder(&mill, Some(&holder), patience).await?;
        let took = began.elapsed().as_secs_f64();
        match failure {
            Failure::Kill => kills.push(took),
            Failure::Stop => stops.push(took),
        }
        // A new process replaces the failed one, so that the next failure has a successor too.
        let fleet = mill.fleet()?;
        if failure == Failure::Stop {
            fleet.kill(&name)?;
        }
        fleet.start_with(Role::Dispatcher, &["--workers", "1"])?;
        wait_for_workers(&mill, 2).await?;
    }
    eprintln!("T_ack {t_ack} s: killed {kills:.3?}, stopped {stops:.3?}");
    mill.abandon();
    Ok((kills, stops))
}

/// The name of the process in which a worker runs.
fn process_of_worker(mill: &mut RunningMill, worker: &str) -> anyhow::Result<String> {
    let names = mill.fleet()?.names(Role::Dispatcher);
    let found = names.into_iter().find(|name| worker.ends_with(&**name));
    found.ok_or_else(|| anyhow::anyhow!("no process is {worker}"))
}

/// Waits until exactly `count` workers have joined.
async fn wait_for_workers(mill: &RunningMill, count: usize) -> anyhow::Result<()> {
    let began = Instant::now();
    while mill.leader.operator().status().await?.workers != count {
        anyhow::ensure!(
            began.elapsed() < PATIENCE,
            "{count} workers do not come together"
        );
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

/// Waits until a worker other than `before` has the task; returns its name.
async fn wait_for_holder(
    mill: &RunningMill,
    before: Option<&str>,
    patience: Duration,
) -> anyhow::Result<String> {
    let began = Instant::now();
    loop {
        let operator = mill.leader.operator();
        let page = operator.tasks(TaskSelection::default(), None, 1).await?;
        let first = page.rows.into_iter().next();
        if let Some(worker) = first.and_then(|task| task.worker)
            && before != Some(&*worker)
        {
            return Ok(worker.to_string());
        }
        anyhow::ensure!(began.elapsed() < patience, "nobody takes the task");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
