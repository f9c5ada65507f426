//! One proof of a circuit in parts by a cluster: share of the workers' time that is spent on parts, and peak memory.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use proofmill_orchestrator::conversation::PAGE_MAX;
use serde_json::Value;

use crate::harness::{
    Common, Figures, Program, Report, StateDisk, Target, mib, peak, processor_time_of, round,
};

/// Longest wait for the cluster to come up, and for the proof.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Most steps of the block besides those of parts.
const OTHER_STEPS: usize = 16;

/// Time for processes to load their keys, which they do when they start.
const LOADING_TIME: Duration = Duration::from_secs(3);

/// Files of a round, in the folder of the experiment.
const WORKFLOW: &str = "parts.toml";
const PROOF: &str = "proof";

/// Processes whose peak memory is reported.
const MEASURED: [&str; 3] = ["worker", "coordinator", "trusted"];

/// Pause between two looks at whether something is done.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// Arguments of `proofmill-bench cluster parts`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    /// Parts of the circuit
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1 << 16))]
    parts: u32,
    /// Squarings of each value in each part: constraints of a part are some 8 for each, with the default portals
    #[arg(long, default_value_t = 7700)]
    squarings: u32,
    /// Values that each part hands on to the next
    #[arg(long, default_value_t = 8)]
    portals: u32,
    /// Worker processes
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    workers: u32,
    /// Threads of each worker
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    threads: u32,
    /// Proofs by the cluster, between two of which one process proves alone: figures are medians
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=99))]
    rounds: u32,
    /// The coordinator does not check commitments and proofs: what is left is the orchestrator's own overhead
    #[arg(long)]
    unchecked: bool,
    #[command(flatten)]
    program: Program,
}

/// The folder of an experiment, and how its programs are run.
struct Setting<'a> {
    program: &'a Path,
    folder: &'a Path,
    url: String,
    threads: u32,
}

/// A process that is killed when this is dropped.
struct Role {
    name: &'static str,
    child: Child,
}

/// Measurements of one proof by the cluster.
struct Round {
    /// From the source's start to the proof's file.
    wall: Duration,
    /// Processor time of all workers meanwhile.
    busy: Duration,
    /// Processor time of the coordinator meanwhile: the orchestration, and the checks of results.
    coordinator: Duration,
    /// Processor time of all workers before, in which they read their keys.
    loading: Duration,
    /// The block, with its history.
    block: Value,
    /// The most memory that a process of each of [`MEASURED`] had.
    peaks: [u64; MEASURED.len()],
}

/// All measurements.
struct Measured {
    rounds: Vec<Round>,
    /// Times of one process of one thread for the same proof, before each round and after the last; none if the
    /// cluster's workers have more threads.
    alone: Vec<Duration>,
}

/// Times of the tasks of a block, by stage.
#[derive(Debug, Default)]
struct StageTime {
    tasks: usize,
    ran: Duration,
    /// Time under a lease: of running, and of what the orchestration adds to it.
    leased: Duration,
}

/// Measures and reports.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    let disk = StateDisk::fresh(&args.common)?;
    let folder = disk.state("parts");
    let bus = disk
        .bus(&folder)
        .context("give --bus jetstream, which starts a server: workers are processes")?;
    std::fs::create_dir_all(&folder)?;
    let program = args.program.find()?;
    let setting = Setting {
        program: &program,
        folder: &folder,
        url: bus.servers.join(","),
        threads: args.threads,
    };
    setting.make_keys(args)?;
    let mut measured = Measured {
        rounds: Vec::new(),
        alone: Vec::new(),
    };
    for number in 0..args.rounds {
        measured.alone.extend(setting.prove_alone()?);
        measured
            .rounds
            .push(setting.prove_together(args, number).await?);
    }
    measured.alone.extend(setting.prove_alone()?);
    report(args, &disk, &measured)
}

/// Processor time of all processes with this name.
fn time_of(roles: &[Role], name: &str) -> Duration {
    let named = roles.iter().filter(|role| role.name == name);
    let times = named.filter_map(|role| processor_time_of(role.child.id()));
    times.sum()
}

fn report(args: &Args, disk: &StateDisk, measured: &Measured) -> anyhow::Result<()> {
    let title = format!(
        "One proof of {} parts by {} workers of {} threads",
        args.parts, args.workers, args.threads
    );
    let mut report = Report::new(&title, disk);
    let parts = args.parts as usize;
    // Of longer histories a page has the end only.
    if 2 * parts + OTHER_STEPS <= PAGE_MAX {
        for round in &measured.rounds {
            report.must_be("commitments", round.stage("commit").tasks, parts);
            report.must_be("proofs", round.stage("prove").tasks, parts);
        }
    }
    report_time(args, measured, &mut report);
    report_overhead(args, measured, &mut report);
    for name in ["trace", "challenge", "aggregate"] {
        let ms = measured.median(|round| 1e3 * round.stage(name).ran.as_secs_f64());
        report.figure(name, ms, "ms", Target::None, "");
        report.put(&format!("{name}_ms"), round(ms));
    }
    for (place, name) in MEASURED.iter().enumerate() {
        let peaks = measured.rounds.iter().map(|round| round.peaks[place]);
        let most = peaks.max().unwrap_or_default();
        let label = format!("peak memory, {name}");
        report.figure(&label, mib(most), "MiB", Target::None, "");
        report.put(&format!("{name}_peak_bytes"), most);
    }
    report.note("trusted: the dispatcher of the stages trace, challenge and aggregate");
    report.finish(&args.common)
}

/// Reports the time of the proof beside that of one process.
fn report_time(args: &Args, measured: &Measured, report: &mut Report) {
    let workers = f64::from(args.workers);
    let wall_s = measured.median(|round| round.wall.as_secs_f64());
    report.figure("wall time", wall_s, "s", Target::None, "");
    report.put("wall_s", round(wall_s));
    let threads = workers * f64::from(args.threads);
    let busy = measured
        .median(|round| 100.0 * round.busy.as_secs_f64() / (threads * round.wall.as_secs_f64()));
    report.figure(
        "workers' processor time over wall time × workers × threads",
        busy,
        "%",
        Target::None,
        "",
    );
    report.put("busy_percent", round(busy));
    let loading = measured.median(|round| round.loading.as_secs_f64());
    report.figure(
        "workers' processor time before, for their keys",
        loading,
        "s",
        Target::None,
        "",
    );
    report.put("loading_s", round(loading));
    let efficiencies = measured.efficiencies(args.workers);
    if efficiencies.is_empty() {
        return;
    }
    let alone: Vec<f64> = measured.alone.iter().map(Duration::as_secs_f64).collect();
    let alone_s = Figures::of(alone).p50();
    let each: Vec<f64> = efficiencies.iter().copied().map(round).collect();
    let efficiency = Figures::of(efficiencies).p50();
    report.figure("one process of one thread", alone_s, "s", Target::None, "");
    report.figure(
        "its time over wall time × workers",
        efficiency,
        "%",
        Target::AtLeast(90.0),
        "",
    );
    report.put("alone_s", round(alone_s));
    report.put("efficiency_percent", round(efficiency));
    report.put("efficiency_percent_of_rounds", each);
}

/// Reports what the orchestration adds to the parts.
fn report_overhead(args: &Args, measured: &Measured, report: &mut Report) {
    let parts = f64::from(args.parts);
    let coordinator = measured.median(|round| 1e3 * round.coordinator.as_secs_f64() / parts);
    let (with, target) = match args.unchecked {
        true => ("", Target::AtMost(5.0)),
        false => (", with its checks of results", Target::None),
    };
    report.figure(
        &format!("coordinator's processor time{with}, each part"),
        coordinator,
        "ms",
        target,
        "",
    );
    report.put("coordinator_ms", round(coordinator));
    let overhead = measured.median(Round::overhead_ms);
    report.figure(
        "lease → result recorded, beside the prover, each task",
        overhead,
        "ms",
        Target::AtMost(5.0),
        "",
    );
    report.put("overhead_ms", round(overhead));
    for name in ["commit", "prove"] {
        let each = measured.median(|round| {
            let stage = round.stage(name);
            1e3 * stage.ran.as_secs_f64() / stage.tasks.max(1) as f64
        });
        report.figure(&format!("{name}, each part"), each, "ms", Target::None, "");
        report.put(&format!("{name}_ms"), round(each));
    }
}

// === impl Measured ===

impl Measured {
    fn median(&self, figure: impl Fn(&Round) -> f64) -> f64 {
        Figures::of(self.rounds.iter().map(figure).collect()).p50()
    }

    /// Of each round, in percent: the time of one process, the mean of the one before and the one after, over that of
    /// the cluster times its workers.
    fn efficiencies(&self, workers: u32) -> Vec<f64> {
        let alone = self.alone.windows(2).map(|pair| (pair[0] + pair[1]) / 2);
        let pairs = self.rounds.iter().zip(alone);
        let ratio = |(round, alone): (&Round, Duration)| {
            100.0 * alone.as_secs_f64() / (f64::from(workers) * round.wall.as_secs_f64())
        };
        pairs.map(ratio).collect()
    }
}

// === impl Round ===

impl Round {
    fn stage(&self, name: &str) -> StageTime {
        StageTime::of(&self.block, name)
    }

    /// Time under leases beside the prover, each task.
    fn overhead_ms(&self) -> f64 {
        let (commit, prove) = (self.stage("commit"), self.stage("prove"));
        let added = (commit.leased + prove.leased).saturating_sub(commit.ran + prove.ran);
        1e3 * added.as_secs_f64() / (commit.tasks + prove.tasks).max(1) as f64
    }
}

// === impl Setting ===

impl Setting<'_> {
    /// Makes keys and a witness.
    fn make_keys(&self, args: &Args) -> anyhow::Result<()> {
        let [parts, squarings, portals] =
            [args.parts, args.squarings, args.portals].map(|number| number.to_string());
        self.call(&[
            "partition",
            "setup",
            "squarings",
            "--parts",
            &parts,
            "--squarings",
            &squarings,
            "--portals",
            &portals,
            "-o",
            "keys",
        ])?;
        let witness = vec![7; 32 * args.portals as usize];
        std::fs::write(self.folder.join("witness"), witness)?;
        Ok(())
    }

    /// Makes the workflow of a round, under a name of its own.
    fn make_workflow(&self, args: &Args, name: &str) -> anyhow::Result<()> {
        self.call(&[
            "partition",
            "prove",
            "keys",
            "--witness",
            "witness",
            "--proof",
            PROOF,
            "--public",
            "public.json",
            "--workflow",
            WORKFLOW,
        ])?;
        let workflow = self.folder.join(WORKFLOW);
        let mut text = std::fs::read_to_string(&workflow)?;
        let mut replace = |from: &str, to: &str| {
            anyhow::ensure!(text.contains(from), "the workflow has no line {from:?}");
            text = text.replace(from, to);
            Ok(())
        };
        replace("name = \"partition\"\n", &format!("name = \"{name}\"\n"))?;
        if args.unchecked {
            replace("check_results = true\n", "")?;
        }
        std::fs::write(&workflow, text)?;
        Ok(())
    }

    /// One proof by the cluster.
    async fn prove_together(&self, args: &Args, number: u32) -> anyhow::Result<Round> {
        let name = format!("parts-{number}");
        self.make_workflow(args, &name)?;
        let mut roles = vec![self.start("coordinator", &[])?];
        roles.push(self.start("trusted", &["trace", "challenge", "aggregate"])?);
        for _ in 0..args.workers {
            roles.push(self.start("worker", &["commit", "prove"])?);
        }
        let expected = u64::from(args.workers) + 1;
        self.wait("the workers", || {
            let status = self.ask(&["status", "--workflow", &name])?;
            (status["workers"].as_u64()? >= expected).then_some(())
        })
        .await?;
        tokio::time::sleep(LOADING_TIME).await;
        let before = ["worker", "coordinator"].map(|name| time_of(&roles, name));
        let began = Instant::now();
        roles.push(self.start("source", &[])?);
        roles.push(self.start("sequencer", &[])?);
        let proof = self.folder.join(PROOF);
        self.wait("the proof", || proof.exists().then_some(()))
            .await?;
        let wall = began.elapsed();
        let after = ["worker", "coordinator"].map(|name| time_of(&roles, name));
        let block = self
            .wait("the block's end", || {
                let block = self.ask(&["block", "0", "--workflow", &name])?;
                (block["state"] == "emitted").then_some(block)
            })
            .await?;
        self.call(&[
            "partition",
            "verify",
            "--key",
            "keys/verifying.key",
            "--public",
            "public.json",
            PROOF,
        ])?;
        let mut peaks = [0; MEASURED.len()];
        for (most, name) in peaks.iter_mut().zip(MEASURED) {
            let of_name = roles.iter().filter(|role| role.name == name);
            let found = of_name.filter_map(|role| peak(role.child.id())).max();
            *most = found.context("the system does not say what memory a process had")?;
        }
        // The next round waits for a file of its own.
        std::fs::remove_file(&proof)?;
        Ok(Round {
            wall,
            busy: after[0].saturating_sub(before[0]),
            coordinator: after[1].saturating_sub(before[1]),
            loading: before[0],
            block,
            peaks,
        })
    }

    /// The time of one process of one thread for the same proof; nothing if the cluster's workers have more threads.
    fn prove_alone(&self) -> anyhow::Result<Option<Duration>> {
        if self.threads != 1 {
            return Ok(None);
        }
        let began = Instant::now();
        self.call(&[
            "partition",
            "prove",
            "keys",
            "--witness",
            "witness",
            "--proof",
            "alone",
            "--public",
            "alone.json",
            "--threads",
            "1",
        ])?;
        Ok(Some(began.elapsed()))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.program);
        command
            .args(arguments)
            .env("PROOFMILL_BUS", &self.url)
            .env("RAYON_NUM_THREADS", self.threads.to_string())
            .current_dir(self.folder)
            .stdin(Stdio::null());
        command
    }

    /// Starts a role; one of stages is a dispatcher.
    fn start(&self, name: &'static str, stages: &[&str]) -> anyhow::Result<Role> {
        let role = if stages.is_empty() {
            name
        } else {
            "dispatcher"
        };
        let mut command = self.command(&[role, WORKFLOW]);
        for stage in stages {
            command.args(["--stage", stage]);
        }
        let child = command.stdout(Stdio::null()).spawn();
        let child = child.with_context(|| format!("cannot start a {role}"))?;
        Ok(Role { name, child })
    }

    /// Runs a command to its end, which must be good.
    fn call(&self, arguments: &[&str]) -> anyhow::Result<()> {
        let output = self.command(arguments).output()?;
        let told = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(output.status.success(), "{arguments:?}: {told}");
        Ok(())
    }

    /// The answer of a command, as JSON; nothing while there is none.
    fn ask(&self, arguments: &[&str]) -> Option<Value> {
        let output = self.command(arguments).arg("--json").output().ok()?;
        let output = output.status.success().then_some(output.stdout)?;
        serde_json::from_slice(&output).ok()
    }

    async fn wait<T>(&self, what: &str, look: impl Fn() -> Option<T>) -> anyhow::Result<T> {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Some(found) = look() {
                return Ok(found);
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
        anyhow::bail!("there is no sign of {what}")
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        // Killing fails if the process has ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

// === impl StageTime ===

impl StageTime {
    /// The times of a stage's tasks in the history of a block.
    fn of(block: &Value, stage: &str) -> Self {
        let mut time = Self::default();
        let prefix = format!("{stage}/");
        let entries = block["history"].as_array().into_iter().flatten();
        for step in entries.map(|entry| &entry["step"]) {
            let task = step["task"].as_str().unwrap_or_default();
            let ran = step["ran_ms"].as_u64();
            if let (true, Some(ran)) = (task.starts_with(&prefix), ran) {
                let leased = step["leased_ms"].as_u64().unwrap_or(ran);
                time.tasks += 1;
                time.ran += Duration::from_millis(ran);
                time.leased += Duration::from_millis(leased);
            }
        }
        time
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_are_those_of_a_stages_tasks() {
        let step = |task: &str, ran: u64| json!({ "step": { "task": task, "ran_ms": ran, "leased_ms": ran + 2 } });
        let history = [
            step("prove/0/1", 5),
            step("prove/0/2", 6),
            step("prover/0/2", 9),
            json!({}),
        ];
        let time = StageTime::of(&json!({ "history": history }), "prove");
        let ms = Duration::from_millis;
        assert_eq!((time.tasks, time.ran, time.leased), (2, ms(11), ms(15)));
    }
}
