//! A dispatcher is killed or stopped: measures the time until another has its task, for several T_ack.

use proofmill_orchestrator::conversation::TaskSelection;
use std::time::{Duration, Instant};

use crate::harness::{
    Common, Figures, Report, Role, Running, StateDisk, Target, json_message, one_stage, parse,
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

/// The failure of the dispatcher that has the task.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Blow {
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
        report.figure(&name, kills.p50(), "s", Target::Open, push0);
        let name = format!("T_ack {t_ack} s: SIGSTOP, P50");
        report.figure(&name, stops.p50(), "s", Target::Open, "");
        rows.push(serde_json::json!({
            "t_ack_s": t_ack,
            "killed_p50_s": round(kills.p50()),
            "killed_max_s": round(kills.max()),
            "stopped_p50_s": round(stops.p50()),
        }));
        killed.extend_from_slice(kills.all());
    }
    let figures = Figures::of(killed);
    report.figure("SIGKILL, P50 of all", figures.p50(), "s", Target::Open, "");
    let p95 = figures.at(0.95);
    report.figure("SIGKILL, P95 of all", p95, "s", Target::Most(1.0), "");
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

/// The seconds after each kill, and after each stop.
async fn measure(
    args: &Args,
    disk: &StateDisk,
    t_ack: u64,
) -> anyhow::Result<(Vec<f64>, Vec<f64>)> {
    let state = disk.state(&format!("recovery-{t_ack}"));
    let heartbeat = (t_ack * 1000 / 5).min(5000);
    // One task, which one of two dispatchers has, a process each. A lease that ends is a failed
    // attempt: what is measured is not to be the backoff after it.
    let text = format!(
        "{}\n[defaults]\nt_ack = \"{t_ack}s\"\nheartbeat = \"{heartbeat}ms\"\nr_max = 1000\n\
         backoff = {{ initial = \"1ms\", max = \"1ms\" }}\n",
        one_stage("recovery", 2, &sleep(PROOF_MS))
    );
    let registry = registry();
    let workflow = parse(&text, &registry)?;
    let mut mill = Running::start(&workflow, registry, disk, &state).await?;
    mill.fleet()?;
    let request = json_message(mill.queue("tasks")?, 0, "{}");
    mill.source.submit(request).await?;
    held(&mill, None, PATIENCE).await?;
    mill.settle().await;
    let (mut kills, mut stops) = (Vec::new(), Vec::new());
    let blows = std::iter::repeat_n(Blow::Kill, args.kills);
    for blow in blows.chain(std::iter::repeat_n(Blow::Stop, args.stops)) {
        let patience = PATIENCE + Duration::from_secs(t_ack);
        let holder = held(&mill, None, patience).await?;
        let name = victim(&mut mill, &holder)?;
        let fleet = mill.fleet()?;
        match blow {
            Blow::Kill => fleet.kill(&name)?,
            Blow::Stop => fleet.get(&name)?.pause(),
        }
        let began = Instant::now();
        held(&mill, Some(&holder), patience).await?;
        let took = began.elapsed().as_secs_f64();
        match blow {
            Blow::Kill => kills.push(took),
            Blow::Stop => stops.push(took),
        }
        // Another takes its place, so that there is somebody to take over again.
        let fleet = mill.fleet()?;
        if blow == Blow::Stop {
            fleet.kill(&name)?;
        }
        fleet.start_with(Role::Dispatcher, &["--workers", "1"])?;
        workers(&mill, 2).await?;
    }
    eprintln!("T_ack {t_ack} s: killed {kills:.3?}, stopped {stops:.3?}");
    mill.abandon();
    Ok((kills, stops))
}

/// The process that a worker belongs to.
fn victim(mill: &mut Running, worker: &str) -> anyhow::Result<String> {
    let names = mill.fleet()?.names(Role::Dispatcher);
    let found = names.into_iter().find(|name| worker.ends_with(&**name));
    found.ok_or_else(|| anyhow::anyhow!("no process is {worker}"))
}

/// Waits until exactly `count` workers have joined.
async fn workers(mill: &Running, count: usize) -> anyhow::Result<()> {
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
async fn held(mill: &Running, before: Option<&str>, patience: Duration) -> anyhow::Result<String> {
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
