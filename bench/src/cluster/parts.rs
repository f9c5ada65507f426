//! One proof of a circuit in parts by a cluster: share of the workers' time that is spent on parts, and peak memory.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use proofmill_orchestrator::conversation::PAGE_MAX;
use serde_json::Value;

use crate::harness::{
    Common, Program, Report, StateDisk, Target, mib, peak, processor_time_of, round,
};

/// Longest wait for the cluster to come up, and for the proof.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Most steps of the block besides those of parts.
const OTHER_STEPS: usize = 16;

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

/// Times of a proof.
struct Times {
    /// From the source's start to the proof's file.
    wall: Duration,
    /// Processor time of all workers meanwhile.
    busy: Duration,
    /// Processor time of the coordinator meanwhile: the orchestration, and the checks of results.
    coordinator: Duration,
    /// Of one process of one thread for the same proof.
    alone: Option<Duration>,
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
    setting.prepare(args)?;
    let alone = setting.prove_alone()?;
    let mut roles = vec![setting.start("coordinator", &[])?];
    let trusted = ["trace", "challenge", "aggregate"];
    roles.push(setting.start("trusted", &trusted)?);
    for _ in 0..args.workers {
        roles.push(setting.start("worker", &["commit", "prove"])?);
    }
    let expected = u64::from(args.workers) + 1;
    setting
        .wait("the workers", || {
            let status = setting.ask(&["status", "--workflow", "partition"])?;
            (status["workers"].as_u64()? >= expected).then_some(())
        })
        .await?;
    let before = ["worker", "coordinator"].map(|name| time_of(&roles, name));
    let began = Instant::now();
    roles.push(setting.start("source", &[])?);
    roles.push(setting.start("sequencer", &[])?);
    let proof = folder.join("proof");
    setting
        .wait("the proof", || proof.exists().then_some(()))
        .await?;
    let wall = began.elapsed();
    let after = ["worker", "coordinator"].map(|name| time_of(&roles, name));
    let block = setting
        .wait("the block's end", || {
            let block = setting.ask(&["block", "0", "--workflow", "partition"])?;
            (block["state"] == "emitted").then_some(block)
        })
        .await?;
    setting.call(&[
        "partition",
        "verify",
        "--key",
        "keys/verifying.key",
        "--public",
        "public.json",
        "proof",
    ])?;
    let times = Times {
        wall,
        busy: after[0].saturating_sub(before[0]),
        coordinator: after[1].saturating_sub(before[1]),
        alone,
    };
    report(args, &disk, &times, &block, &roles)
}

/// Processor time of all processes with this name.
fn time_of(roles: &[Role], name: &str) -> Duration {
    let named = roles.iter().filter(|role| role.name == name);
    let times = named.filter_map(|role| processor_time_of(role.child.id()));
    times.sum()
}

fn report(
    args: &Args,
    disk: &StateDisk,
    times: &Times,
    block: &Value,
    roles: &[Role],
) -> anyhow::Result<()> {
    let title = format!(
        "One proof of {} parts by {} workers of {} threads",
        args.parts, args.workers, args.threads
    );
    let mut report = Report::new(&title, disk);
    let stage = |name: &str| StageTime::of(block, name);
    let (commit, prove) = (stage("commit"), stage("prove"));
    let parts = args.parts as usize;
    // Of longer histories a page has the end only.
    if 2 * parts + OTHER_STEPS <= PAGE_MAX {
        report.must_be("commitments", commit.tasks, parts);
        report.must_be("proofs", prove.tasks, parts);
    }
    let wall_s = times.wall.as_secs_f64();
    report.figure("wall time", wall_s, "s", Target::None, "");
    report.put("wall_s", round(wall_s));
    let workers = wall_s * f64::from(args.workers);
    let busy = 100.0 * times.busy.as_secs_f64() / (workers * f64::from(args.threads));
    report.figure(
        "workers' processor time over wall time × workers × threads",
        busy,
        "%",
        Target::None,
        "",
    );
    report.put("busy_percent", round(busy));
    if let Some(alone) = times.alone {
        let alone = alone.as_secs_f64();
        let efficiency = 100.0 * alone / workers;
        let lost = 1e3 * (workers - alone) / parts as f64;
        report.figure("one process of one thread", alone, "s", Target::None, "");
        report.figure(
            "its time over wall time × workers",
            efficiency,
            "%",
            Target::AtLeast(90.0),
            "",
        );
        report.figure("lost time, each part", lost, "ms", Target::None, "");
        report.put("alone_s", round(alone));
        report.put("efficiency_percent", round(efficiency));
        report.put("lost_ms", round(lost));
    }
    let coordinator = 1e3 * times.coordinator.as_secs_f64() / parts as f64;
    let with = if args.unchecked {
        ""
    } else {
        ", with its checks of results"
    };
    report.figure(
        &format!("coordinator's processor time{with}, each part"),
        coordinator,
        "ms",
        if args.unchecked {
            Target::AtMost(5.0)
        } else {
            Target::None
        },
        "",
    );
    report.put("coordinator_ms", round(coordinator));
    let added = (commit.leased + prove.leased).saturating_sub(commit.ran + prove.ran);
    let tasks = (commit.tasks + prove.tasks).max(1);
    let overhead = 1e3 * added.as_secs_f64() / tasks as f64;
    report.figure(
        "lease → result recorded, beside the prover, each task",
        overhead,
        "ms",
        Target::AtMost(5.0),
        "",
    );
    for (name, time) in [("commit", &commit), ("prove", &prove)] {
        let each = 1e3 * time.ran.as_secs_f64() / time.tasks.max(1) as f64;
        report.figure(&format!("{name}, each part"), each, "ms", Target::None, "");
        report.put(&format!("{name}_ms"), round(each));
    }
    for name in ["trace", "challenge", "aggregate"] {
        let ms = 1e3 * stage(name).ran.as_secs_f64();
        report.figure(name, ms, "ms", Target::None, "");
        report.put(&format!("{name}_ms"), round(ms));
    }
    for name in ["worker", "coordinator", "trusted"] {
        let of_name = roles.iter().filter(|role| role.name == name);
        let most = of_name.filter_map(|role| peak(role.child.id())).max();
        let most = most.context("the system does not say what memory a process had")?;
        let label = format!("peak memory, {name}");
        report.figure(&label, mib(most), "MiB", Target::None, "");
        report.put(&format!("{name}_peak_bytes"), most);
    }
    report.put("overhead_ms", round(overhead));
    report.note("trusted: the dispatcher of the stages trace, challenge and aggregate");
    report.finish(&args.common)
}

// === impl Setting ===

impl Setting<'_> {
    /// Makes keys, a witness and the workflow.
    fn prepare(&self, args: &Args) -> anyhow::Result<()> {
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
        self.call(&[
            "partition",
            "prove",
            "keys",
            "--witness",
            "witness",
            "--proof",
            "proof",
            "--public",
            "public.json",
            "--workflow",
            "parts.toml",
        ])?;
        if args.unchecked {
            let workflow = self.folder.join("parts.toml");
            let text = std::fs::read_to_string(&workflow)?;
            let unchecked = text.replace("check_results = true\n", "");
            anyhow::ensure!(text != unchecked, "the workflow has no checks of results");
            std::fs::write(&workflow, unchecked)?;
        }
        Ok(())
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
        let mut command = self.command(&[role, "parts.toml"]);
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
