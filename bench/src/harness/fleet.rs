//! Roles in separate processes, each of which runs this program with the hidden command `role`.

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

use super::role::{LEADS_LINE, Role, process_name};

/// Most processes over which the dispatchers of an experiment are spread.
const DISPATCHER_PROCESSES_MAX: u32 = 4;

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
    /// A fleet without processes. Writes the workflow's file to `state`.
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
        let processes = most.unwrap_or(0).min(DISPATCHER_PROCESSES_MAX);
        for process in 0..processes {
            let workers = workflow.dispatchers.iter().map(|stage| {
                let share = stage.workers / processes;
                let remainder = u32::from(process < stage.workers % processes);
                (share + remainder).to_string()
            });
            let workers: Vec<String> = workers.collect();
            self.start_with(Role::Dispatcher, &["--workers", &workers.join(",")])?;
        }
        Ok(())
    }

    /// Starts a process, and returns its name. A process of dispatchers runs as many of each stage
    /// as the workflow says.
    pub(crate) fn start(&mut self, role: Role) -> anyhow::Result<String> {
        self.start_with(role, &[])
    }

    /// Starts a process like [`Fleet::start`], with further arguments.
    pub(crate) fn start_with(
        &mut self,
        role: Role,
        more_arguments: &[&str],
    ) -> anyhow::Result<String> {
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
            .args(more_arguments)
            .arg("--state")
            .arg(state)
            .arg(&self.file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start a {}", word.get_name()))?;
        let (sender, leads) = watch::channel(false);
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || watch_leadership(stdout, &sender));
        }
        let process = Process { role, child, leads };
        let name = process.name();
        self.processes.push(process);
        Ok(name)
    }

    /// The names of the processes of this role.
    pub(crate) fn names(&self, role: Role) -> Vec<String> {
        let of_role = self.processes.iter().filter(|process| process.role == role);
        of_role.map(Process::name).collect()
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

    /// Tells a process to hand its work over and end (SIGTERM), and waits until it has ended.
    pub(crate) async fn terminate(&mut self, name: &str) -> anyhow::Result<()> {
        self.get(name)?.signal(Signal::TERM);
        let found = self
            .processes
            .iter()
            .position(|process| process.name() == name);
        let mut process = self.processes.swap_remove(found.context("it was there")?);
        let ended = tokio::task::spawn_blocking(move || {
            // `wait` closes the standard input of the child, which would take its parent to be gone.
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
                    process.wait_for_leadership(true).await;
                    process.name()
                })
            });
        futures_util::future::select_all(leading).await.0
    }
}

/// Reads the lines that a coordinator prints on its standard output, and keeps `leads` at the state
/// that the last one reports. After the process's end, it does not lead.
fn watch_leadership(stdout: ChildStdout, leads: &watch::Sender<bool>) {
    for line in BufReader::new(stdout).lines().map_while(Result::ok) {
        leads.send_replace(line == LEADS_LINE);
    }
    leads.send_replace(false);
}

// === impl Process ===

impl Process {
    /// The name of the process on the bus.
    pub(crate) fn name(&self) -> String {
        process_name(self.child.id())
    }

    /// Stops the process where it is (SIGSTOP).
    pub(crate) fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets a stopped process go on (SIGCONT).
    pub(crate) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) {
            // Signalling fails if the process has ended by itself.
            let _ = kill_process(pid, signal);
        }
    }

    /// Waits until the coordinator leads, or, if `leads` is false, until it does not.
    pub(crate) async fn wait_for_leadership(&self, leads: bool) {
        if self
            .leads
            .clone()
            .wait_for(|now| *now == leads)
            .await
            .is_err()
        {
            // The process has ended, so its state does not change any more.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Killing fails if the process has ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
