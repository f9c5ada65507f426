//! Processes for roles: this test program, started again.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use proofmill_bus::{Connection, NatsOptions};
use proofmill_nats_server::NatsServer;
use proofmill_orchestrator::cluster::{self, LedWorkflows, ProcessContext};
use proofmill_orchestrator::executor::{Context, Json, Prover, ProverError};
use proofmill_orchestrator::mill::Registry;
use proofmill_orchestrator::shutdown::{self, Level};
use proofmill_workflow::{LocalHost, Workflow, render, validate};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};

use crate::roles::WORKFLOW;

const ROLE: &str = "PROOFMILL_TEST_ROLE";
const BUS: &str = "PROOFMILL_TEST_BUS";
const REPLICAS: &str = "PROOFMILL_TEST_REPLICAS";
const LEASE_MS: &str = "PROOFMILL_TEST_LEASE_MS";
const DIR: &str = "PROOFMILL_TEST_DIR";

/// Time limit of every wait; no test takes as long unless it is stuck.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Lifetime of leases where no process is meant to lose one: longer than a machine stalls. A process that is killed keeps
/// its leases for as long.
pub(crate) const LONG_LEASE: Duration = Duration::from_secs(60);

/// A prover that takes a set time, and logs the beginning and end of each task.
struct Slow {
    log: PathBuf,
}

impl Prover for Slow {
    type Input = Json<Value>;
    type Output = Json<Value>;

    fn prove(&self, context: &Context, input: Json<Value>) -> Result<Json<Value>, ProverError> {
        use std::io::Write;
        let task = format!("{} {}", context.task.stage, context.task.block);
        let write = |word: &str| {
            let file = fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(&self.log);
            let line = format!("{word} {task}\n");
            file.and_then(|mut file| file.write_all(line.as_bytes()))
                .map_err(|error| ProverError::Retry(error.to_string()))
        };
        write("begin")?;
        let millis = fs::read_to_string(self.log.with_file_name("millis"));
        let millis = millis.ok().and_then(|text| text.trim().parse().ok());
        std::thread::sleep(Duration::from_millis(millis.unwrap_or(20)));
        write("end")?;
        Ok(input)
    }
}

/// The workflow in `dir`.
pub(crate) fn workflow(dir: &Path) -> Workflow {
    let path = dir.join("workflow.toml");
    let text = fs::read_to_string(&path).expect("the workflow file");
    match validate(&text, &path, &LocalHost::new(["slow"])) {
        Ok((workflow, _)) => workflow,
        Err(faults) => panic!("{}", render(&faults)),
    }
}

/// The context of this process in the workflow of `dir`, on a server whose leases last long.
pub(crate) async fn context(url: &str, dir: &Path, name: &str) -> ProcessContext {
    let options = NatsOptions {
        lease_ttl: LONG_LEASE,
        ..NatsOptions::new(url)
    };
    context_with(options, dir, name).await
}

async fn context_with(mut options: NatsOptions, dir: &Path, name: &str) -> ProcessContext {
    // A machine that stalls may take longer for an answer than one attempt lasts.
    options.connect_timeout = PATIENCE;
    let connection = Connection::open(options).await.expect("the bus");
    let mut registry = Registry::default();
    let log = dir.join("proved");
    registry.prover("slow", move |_| Ok(Slow { log: log.clone() }));
    let state = dir.join("states").join(name);
    ProcessContext::open(connection, &workflow(dir), registry, state, name)
        .await
        .expect("a site")
}

/// The body of a process of [`Roles`]; does nothing in a normal run.
#[test]
fn child_plays_a_role() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let var = |name: &str| std::env::var(name).expect("the parent sets it");
    let (bus, dir) = (var(BUS), PathBuf::from(var(DIR)));
    let options = NatsOptions {
        replicas: var(REPLICAS).parse().expect("a number"),
        lease_ttl: Duration::from_millis(var(LEASE_MS).parse().expect("a number")),
        ..NatsOptions::new(&bus)
    };
    let name = format!("{role}-{}", std::process::id());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    let ended = runtime.block_on(async {
        let context = context_with(options, &dir, &name).await;
        let (trigger, shutdown) = shutdown::channel();
        let mut term = signal(SignalKind::terminate()).expect("a signal");
        tokio::spawn(async move {
            if term.recv().await.is_some() {
                trigger.raise(Level::Drain);
            }
            // A trigger that is dropped would stop everything.
            std::future::pending::<()>().await;
        });
        let kind = role.split_once('-').map_or(&*role, |(kind, _)| kind);
        match kind {
            "coordinator" => cluster::lead(context, LedWorkflows::default(), shutdown).await,
            "dispatcher" => {
                cluster::run_dispatchers(context, Default::default(), BTreeMap::new(), shutdown)
                    .await
            }
            "collector" => cluster::run_collectors(context, Default::default(), shutdown).await,
            "sequencer" => {
                // One directory for all sequencers.
                let directory = proofmill_orchestrator::sink::Directory::open(&dir.join("emitted"))
                    .expect("a directory");
                cluster::run_sequencer(context, vec![Box::new(directory)], shutdown).await
            }
            "source" => cluster::run_sources(context, shutdown).await.map(|_| ()),
            other => panic!("no role {other}"),
        }
    });
    if let Err(error) = ended {
        panic!("{role}: {error}");
    }
}

/// Processes for roles, by name; the part of the name before a dash is the role.
pub(crate) struct Roles {
    bus: String,
    replicas: usize,
    /// Lifetime of the leases; the default unless a test sets it before the first start.
    pub(crate) lease_ttl: Duration,
    dir: PathBuf,
    pub(crate) running: BTreeMap<String, Child>,
}

impl Roles {
    pub(crate) fn new(bus: String, replicas: usize, dir: &Path) -> Self {
        Self {
            lease_ttl: NatsOptions::new(&bus).lease_ttl,
            bus,
            replicas,
            dir: dir.to_owned(),
            running: BTreeMap::new(),
        }
    }

    /// Starts a process; an earlier one of the same name must be dead.
    pub(crate) fn start(&mut self, name: &str) {
        let output = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.dir.join(format!("{name}.log")))
            .expect("a log");
        let child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "support::child_plays_a_role", "--nocapture"])
            .env(ROLE, name)
            .env(BUS, &self.bus)
            .env(REPLICAS, self.replicas.to_string())
            .env(LEASE_MS, self.lease_ttl.as_millis().to_string())
            .env(DIR, &self.dir)
            .stdin(Stdio::null())
            .stdout(output.try_clone().expect("a log"))
            .stderr(output)
            .spawn()
            .expect("it starts");
        self.running.insert(name.to_owned(), child);
    }

    pub(crate) fn start_all(&mut self, names: &[&str]) {
        for name in names {
            self.start(name);
        }
    }

    pub(crate) fn kill(&mut self, name: &str) {
        if let Some(mut child) = self.running.remove(name) {
            // The process may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    pub(crate) fn signal(&self, name: &str, signal: Signal) {
        let pid = self.running[name].id().cast_signed();
        if let Some(pid) = Pid::from_raw(pid) {
            // The process may have ended by itself.
            let _ = kill_process(pid, signal);
        }
    }

    /// Output of all processes.
    pub(crate) fn logs(&self) -> String {
        let mut all = String::new();
        for entry in fs::read_dir(&self.dir).expect("the directory").flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|extension| extension == "log") {
                let text = fs::read_to_string(&path).unwrap_or_default();
                all += &format!("--- {}\n{text}\n", path.display());
            }
        }
        all
    }
}

impl Drop for Roles {
    fn drop(&mut self) {
        for child in self.running.values_mut() {
            // The process may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A server, a directory with the workflow, and no process yet. `end` is the last block, `millis` the
/// duration of a task.
pub(crate) fn setup(end: u64, millis: u64) -> (NatsServer, tempfile::TempDir, Roles) {
    let server = NatsServer::start();
    let dir = tempfile::tempdir().expect("a directory");
    let text = WORKFLOW.replace("END", &end.to_string());
    fs::write(dir.path().join("workflow.toml"), text).expect("written");
    fs::write(dir.path().join("millis"), millis.to_string()).expect("written");
    let roles = Roles::new(server.url(), 1, dir.path());
    (server, dir, roles)
}

/// Blocks that were emitted, in the order of their files' names.
///
/// A listing of a growing folder may lack a file and contain a later one. So the folder is listed twice:
/// every file that existed before the last block of the first listing is in the second.
pub(crate) fn emitted(dir: &Path) -> Vec<(u64, u64)> {
    let last = listed(dir).last().copied();
    let mut found = listed(dir);
    found.retain(|blocks| Some(*blocks) <= last);
    found
}

fn listed(dir: &Path) -> Vec<(u64, u64)> {
    let mut found: Vec<(u64, u64)> = fs::read_dir(dir.join("emitted"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let (first, last) = name.strip_suffix(".json")?.split_once('-')?;
            Some((first.parse().ok()?, last.parse().ok()?))
        })
        .collect();
    found.sort_unstable();
    found
}

/// Waits until blocks up to `last` have been emitted; checks that each was emitted once, in order and without
/// a gap.
pub(crate) fn wait_for(dir: &Path, last: u64, patience: Duration, roles: &Roles) {
    let began = Instant::now();
    loop {
        let found = emitted(dir);
        if found.last().is_some_and(|(_, end)| *end >= last) {
            check_order(&found);
            return;
        }
        assert!(
            began.elapsed() < patience,
            "emitted up to {:?} of {last}\n{}",
            found.last(),
            roles.logs()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) fn check_order(found: &[(u64, u64)]) {
    let mut next = 0;
    for (first, last) in found {
        assert_eq!(*first, next, "a gap or an overlap: {found:?}");
        next = last + 1;
    }
}

/// Numbers of times that each task was begun and ended.
pub(crate) fn proved(dir: &Path) -> BTreeMap<String, (u32, u32)> {
    let text = fs::read_to_string(dir.join("proved")).unwrap_or_default();
    let mut counts: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    for line in text.lines() {
        let Some((word, task)) = line.split_once(' ') else {
            continue;
        };
        let count = counts.entry(task.to_owned()).or_default();
        match word {
            "begin" => count.0 += 1,
            _ => count.1 += 1,
        }
    }
    counts
}
