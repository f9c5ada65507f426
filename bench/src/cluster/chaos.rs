//! The demo's workflow on a cluster whose processes, servers included, are killed or stopped at random.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use proofmill_nats_server::{Cluster, find_program};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{Common, Program, Report, StateDisk, Target};

/// Number of block headers in the demo, each of which becomes a block of the workflow.
const BLOCKS: u64 = 32;

/// Longest time to finish the remaining work after the last disturbance.
const PATIENCE: Duration = Duration::from_secs(120);

/// Arguments of `proofmill-bench cluster chaos`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    /// Seconds for which processes are killed and stopped, one each second
    #[arg(long, default_value_t = 180)]
    seconds: u64,
    /// Seed of the random choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    program: Program,
}

/// The processes of one round, which is one run of the workflow from the first header to the last.
struct Round<'a> {
    program: &'a Path,
    file: PathBuf,
    dir: PathBuf,
    bus: String,
    /// Prefix of all names on the bus, so that each round has its own log.
    prefix: String,
    running: BTreeMap<String, Child>,
}

// === impl Round ===

impl Round<'_> {
    fn start(&mut self, name: &str) -> anyhow::Result<()> {
        let role = name.split_once('-').map_or(name, |(role, _)| role);
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.dir.join(format!("{name}.log")))?;
        let mut command = Command::new(self.program);
        command
            .args(["--log", "info", role])
            .arg(&self.file)
            .args(["--bus", &self.bus, "--replicas", "3"])
            .args(["--bus-prefix", &self.prefix])
            .current_dir(&self.dir)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        // Dispatchers that verify need the keys, and so do sequencers, which verify again.
        if matches!(role, "dispatcher" | "sequencer") {
            command.arg("--keys").arg(self.dir.with_file_name("keys"));
        }
        let child = command.spawn().context("cannot start proofmill")?;
        self.running.insert(name.to_owned(), child);
        Ok(())
    }

    fn kill(&mut self, name: &str) {
        if let Some(mut child) = self.running.remove(name) {
            // Killing fails if the process has ended by itself, as sources do.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    fn signal(&self, name: &str, signal: Signal) {
        let child = self.running.get(name);
        if let Some(pid) = child.and_then(|child| Pid::from_raw(child.id().cast_signed())) {
            // Signalling fails if the process has ended by itself.
            let _ = kill_process(pid, signal);
        }
    }

    /// Restarts processes that have ended with a failure, as a service manager does. A source that
    /// has read all headers ends successfully and is not restarted.
    fn restart_failed(&mut self) -> anyhow::Result<()> {
        let mut ended = Vec::new();
        for (name, child) in &mut self.running {
            if child.try_wait()?.is_some_and(|status| !status.success()) {
                ended.push(name.clone());
            }
        }
        for name in ended {
            self.start(&name)?;
        }
        Ok(())
    }

    /// Number of blocks emitted, and number of files that do not continue where the one before ends.
    fn emitted(&self) -> (u64, usize) {
        let directory = self.dir.join(".proofmill/bitcoin-bundles/proofs");
        let mut found: Vec<(u64, u64)> = std::fs::read_dir(directory)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                let (stem, _) = name.split_once('.')?;
                let (first, last) = stem.split_once('-')?;
                Some((first.parse().ok()?, last.parse().ok()?))
            })
            .collect();
        found.sort_unstable();
        let (mut next, mut misplaced) = (0, 0);
        for (first, last) in found {
            misplaced += usize::from(first != next);
            next = last + 1;
        }
        (next, misplaced)
    }
}

impl Drop for Round<'_> {
    fn drop(&mut self) {
        for child in self.running.values_mut() {
            // Killing fails if the process has ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Measures and reports.
pub(crate) async fn run(args: &Args) -> anyhow::Result<()> {
    anyhow::ensure!(
        args.common.is_embedded(),
        "this experiment starts a cluster of its own: leave --bus away"
    );
    find_program()?;
    let disk = StateDisk::fresh(&args.common)?;
    let program = args.program.find()?;
    let mut cluster = Cluster::start(3, "");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/bitcoin-bundles");
    let file = examples.join("workflow.toml").canonicalize()?;
    let mut random = StdRng::seed_from_u64(args.seed);
    let roles = [
        ("coordinator", 2),
        ("dispatcher", 4),
        ("collector", 3),
        ("sequencer", 2),
    ];
    let names: Vec<String> = roles
        .into_iter()
        .flat_map(|(role, count)| (1..=count).map(move |n| format!("{role}-{n}")))
        .chain(["source-1".to_owned()])
        .collect();
    let began = Instant::now();
    let chaos = Duration::from_secs(args.seconds);
    let (mut rounds, mut emitted, mut misplaced, mut missing) = (0_u64, 0, 0, 0);
    let mut disturbances: BTreeMap<String, u32> = BTreeMap::new();
    while began.elapsed() < chaos || rounds == 0 {
        let dir = disk.state(&format!("round-{rounds}"));
        std::fs::create_dir_all(&dir)?;
        let mut round = Round {
            program: &program,
            file: file.clone(),
            dir,
            bus: cluster.url(),
            prefix: format!("round-{rounds}"),
            running: BTreeMap::new(),
        };
        for name in &names {
            round.start(name)?;
        }
        let mut calm_since = None;
        loop {
            let (blocks, _) = round.emitted();
            if blocks >= BLOCKS {
                break;
            }
            if began.elapsed() < chaos {
                let disturbance = disturb(&mut round, &mut cluster, &names, &mut random).await?;
                *disturbances.entry(disturbance).or_default() += 1;
                round.restart_failed()?;
            } else {
                round.restart_failed()?;
                let since = *calm_since.get_or_insert_with(Instant::now);
                if since.elapsed() > PATIENCE {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
        let (blocks, gaps) = round.emitted();
        emitted += blocks;
        misplaced += gaps;
        missing += (BLOCKS - blocks.min(BLOCKS)) as usize;
        rounds += 1;
        eprintln!("round {rounds}: {blocks} of {BLOCKS} blocks");
    }
    let mut report = Report::new(
        "Chaos: 3 servers, 2 coordinators, 4 dispatchers, 3 collectors, 2 sequencers, 1 source; \
         SIGKILL or SIGSTOP of one each second",
        &disk,
    );
    report.figure(
        "seconds",
        began.elapsed().as_secs_f64(),
        "s",
        Target::None,
        "",
    );
    report.figure(
        "runs of the demo's workflow",
        rounds as f64,
        "",
        Target::None,
        "",
    );
    report.figure(
        "blocks proven and emitted",
        emitted as f64,
        "",
        Target::None,
        "",
    );
    let disturbance_counts: Vec<String> = disturbances
        .iter()
        .map(|(what, n)| format!("{what} {n}"))
        .collect();
    report.note(&disturbance_counts.join(", "));
    report.must_be_zero("missing", "blocks not emitted", missing);
    report.must_be_zero("out_of_order", "out of order, or twice", misplaced);
    report.finish(&args.common)
}

/// Kills or stops a random process for less than a second, and returns a description such as
/// `kill dispatcher`. Takes one second.
async fn disturb(
    round: &mut Round<'_>,
    cluster: &mut Cluster,
    names: &[String],
    random: &mut StdRng,
) -> anyhow::Result<String> {
    let stop = random.random_bool(0.5);
    let victim = random.random_range(0..names.len() + cluster.servers.len());
    let word = if stop { "stop" } else { "kill" };
    let pause = Duration::from_millis(random.random_range(100..900));
    let Some(name) = names.get(victim) else {
        let server = victim - names.len();
        if stop {
            cluster.servers[server].pause();
            tokio::time::sleep(pause).await;
            cluster.servers[server].resume();
        } else {
            cluster.servers[server].kill();
            tokio::time::sleep(pause).await;
            cluster.servers[server].restart();
        }
        tokio::time::sleep(Duration::from_secs(1).saturating_sub(pause)).await;
        return Ok(format!("{word} server"));
    };
    if stop {
        round.signal(name, Signal::STOP);
        tokio::time::sleep(pause).await;
        round.signal(name, Signal::CONT);
    } else {
        round.kill(name);
        tokio::time::sleep(pause).await;
        round.start(name)?;
    }
    tokio::time::sleep(Duration::from_secs(1).saturating_sub(pause)).await;
    let role = name.split_once('-').map_or(&**name, |(role, _)| role);
    Ok(format!("{word} {role}"))
}
