//! Roles in processes of their own: this very program, started anew.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;

use anyhow::Context;
use clap::ValueEnum;
use proofmill_bus::{BlobStore, Connection, NatsOptions};
use proofmill_orchestrator::plan::Plan;
use proofmill_orchestrator::port::SourcePort;
use proofmill_orchestrator::remote::{self, Client, Seat};
use proofmill_workflow::Workflow;
use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::watch;

use super::role::{LEADS, Role, process_name};

/// Processes that the dispatchers of an experiment are spread over, at most.
const PROCESSES: u32 = 4;

/// The processes of one run of a workflow.
pub(crate) struct Fleet {
    file: PathBuf,
    bus: NatsOptions,
    state: PathBuf,
    started: usize,
    processes: Vec<Process>,
}

/// A process, killed when dropped.
pub(crate) struct Process {
    role: Role,
    child: Child,
    leads: watch::Receiver<bool>,
}

// === impl Fleet ===

impl Fleet {
    /// Nobody yet. The workflow's file is written to `state`.
    pub(crate) fn new(workflow: &Workflow, bus: NatsOptions, state: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(state).context("cannot make the state directory")?;
        let file = state.join("bench.toml");
        std::fs::write(&file, workflow.document().text()).context("cannot write the workflow")?;
        Ok(Self {
            file,
            bus,
            state: state.to_owned(),
            started: 0,
            processes: Vec::new(),
        })
    }

    /// A port for submitting messages to the current leader.
    pub(crate) async fn submitter(
        &self,
        blobs: Arc<BlobStore>,
        plan: Arc<Plan>,
    ) -> anyhow::Result<SourcePort> {
        let connection = Connection::open(self.bus.clone()).await?;
        let seat = Seat::of(remote::Role::Source);
        let opened = Client::open(connection, blobs, plan, seat, "submitter").await;
        let (client, ports) = opened?;
        tokio::spawn(client.run());
        Ok(ports.source())
    }

    /// Starts the workflow's dispatchers, spread over a few processes.
    pub(crate) fn start_dispatchers(&mut self, workflow: &Workflow) -> anyhow::Result<()> {
        let most = workflow.dispatchers.iter().map(|stage| stage.workers).max();
        let processes = most.unwrap_or(0).min(PROCESSES);
        for process in 0..processes {
            let workers = workflow.dispatchers.iter().map(|stage| {
                let share = stage.workers / processes;
                let more = u32::from(process < stage.workers % processes);
                (share + more).to_string()
            });
            let workers: Vec<String> = workers.collect();
            self.start_with(Role::Dispatcher, &["--workers", &workers.join(",")])?;
        }
        Ok(())
    }

    /// Starts a process; a dispatcher's runs as many of each stage as the workflow says. Returns its
    /// name.
    pub(crate) fn start(&mut self, role: Role) -> anyhow::Result<String> {
        self.start_with(role, &[])
    }

    /// As [`Fleet::start`], with `more` arguments.
    pub(crate) fn start_with(&mut self, role: Role, more: &[&str]) -> anyhow::Result<String> {
        let program = std::env::current_exe().context("cannot find this program's own file")?;
        let word = role.to_possible_value().context("a role has a name")?;
        let state = self.state.join(format!("role-{}", self.started));
        self.started += 1;
        let mut command = Command::new(program);
        command
            .args(["role", word.get_name()])
            .args(["--bus", &self.bus.servers.join(",")])
            .args(["--prefix", &self.bus.prefix])
            .args(["--replicas", &self.bus.replicas.to_string()])
            .args(more)
            .arg("--state")
            .arg(state)
            .arg(&self.file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start a {}", word.get_name()))?;
        let (sender, leads) = watch::channel(false);
        if let Some(said) = child.stdout.take() {
            std::thread::spawn(move || listen(said, &sender));
        }
        let process = Process { role, child, leads };
        let name = process.name();
        self.processes.push(process);
        Ok(name)
    }

    /// The names of the processes of this role.
    pub(crate) fn names(&self, role: Role) -> Vec<String> {
        let of = self.processes.iter().filter(|process| process.role == role);
        of.map(Process::name).collect()
    }

    /// The process of this name.
    pub(crate) fn get(&self, name: &str) -> anyhow::Result<&Process> {
        let mut processes = self.processes.iter();
        let found = processes.find(|process| process.name() == name);
        found.with_context(|| format!("no process is {name}"))
    }

    /// Kills a process (SIGKILL).
    pub(crate) fn kill(&mut self, name: &str) -> anyhow::Result<()> {
        self.get(name)?;
        // Dropping kills it.
        self.processes.retain(|process| process.name() != name);
        Ok(())
    }

    /// Tells a process to hand over what it has and end (SIGTERM), and waits until it has.
    pub(crate) async fn end(&mut self, name: &str) -> anyhow::Result<()> {
        self.get(name)?.signal(Signal::TERM);
        let found = self
            .processes
            .iter()
            .position(|process| process.name() == name);
        let mut process = self.processes.swap_remove(found.context("it was there")?);
        let ended = tokio::task::spawn_blocking(move || {
            // Waiting would close it, and the process would take its parent to be gone.
            let _input = process.child.stdin.take();
            process.child.wait()
        });
        ended.await?.context("a process cannot be waited for")?;
        Ok(())
    }

    /// Fails if a process has ended by itself; the reason is in that process's output.
    pub(crate) fn ensure_alive(&mut self) -> anyhow::Result<()> {
        for process in &mut self.processes {
            if let Some(status) = process.child.try_wait()? {
                anyhow::bail!("a {:?} has ended: {status}", process.role);
            }
        }
        Ok(())
    }

    /// Waits until a coordinator other than `before` leads; returns its name.
    pub(crate) async fn leader(&self, before: Option<&str>) -> String {
        let coordinators = self.processes.iter();
        let leading = coordinators
            .filter(|process| process.role == Role::Coordinator)
            .filter(|process| before != Some(&process.name()))
            .map(|process| {
                Box::pin(async move {
                    process.leads_is(true).await;
                    process.name()
                })
            });
        futures_util::future::select_all(leading).await.0
    }
}

/// Passes on what a coordinator says of itself, until it has ended.
fn listen(said: ChildStdout, leads: &watch::Sender<bool>) {
    for line in BufReader::new(said).lines().map_while(Result::ok) {
        leads.send_replace(line == LEADS);
    }
    leads.send_replace(false);
}

// === impl Process ===

impl Process {
    /// Its name on the bus.
    pub(crate) fn name(&self) -> String {
        process_name(self.child.id())
    }

    /// Stops it in its tracks (SIGSTOP).
    pub(crate) fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on (SIGCONT).
    pub(crate) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) {
            // It may have ended by itself.
            let _ = kill_process(pid, signal);
        }
    }

    /// Waits until a coordinator says that it leads, or that it does not.
    pub(crate) async fn leads_is(&self, leads: bool) {
        if self
            .leads
            .clone()
            .wait_for(|now| *now == leads)
            .await
            .is_err()
        {
            // It has ended: it does not lead, and never will.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
