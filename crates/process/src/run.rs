//! A program's run for one task, from its scratch directory to its [`Attempt`].

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use bytes::Bytes;
use proofmill_sandbox::{Cgroup, LaunchError};
use tokio::process::{ChildStderr, ChildStdout};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep_until, timeout};

use super::attempt::{Attempt, Outcome, TaskContext};
use super::capture::{Capture, Captured};
use super::confined::Confined;
use super::environment_mark::kill_marked;
use super::group::{Group, wait_until_gone};
use super::machine::MachineFailure;
use super::memory::MemoryWatch;
use super::outcome;
use super::program::resolve;
use super::resources::{full_disk_failure, probe};
use super::scratch::{SCRATCH_VARIABLE, Scratch};
use super::spec::{InputChannel, ProcessError, ProcessSpec};
use super::sweep::{Swept, sweep};

/// Time that a stream may stay open after the program has exited, before the processes that hold it
/// are killed.
const STREAM_GRACE: Duration = Duration::from_millis(250);

/// Longest wait for the exit of a program after `SIGKILL`.
const KILLED_LIMIT: Duration = Duration::from_secs(10);

/// Runs one program, once for each attempt at a task. The [module](super) lists its guarantees.
#[derive(Debug, Clone)]
pub struct ProcessExecutor {
    spec: ProcessSpec,
    program: PathBuf,
    scratch_root: PathBuf,
    confined: Confined,
}

/// The reason why waiting for the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Exited,
    TimedOut,
    Cancelled,
}

/// The result of a run that has ended.
struct RunResult {
    status: Option<ExitStatus>,
    outcome: Outcome,
    /// The resource that the machine lacked for the run, if any.
    disk_full: Option<MachineFailure>,
}

/// A program that was started, with its output streams.
struct Started {
    running: Running,
    stdout: ChildStdout,
    stderr: ChildStderr,
    /// Time of the start.
    at: Instant,
}

/// A running program. If it is dropped, it ends the group in the background: `SIGTERM` at once,
/// `SIGKILL` after the grace period, or at once if the runtime is shutting down.
struct Running {
    group: Option<Group>,
    grace: Duration,
    runtime: Handle,
}

// === impl End ===

impl End {
    /// The outcome of a run that was ended early; `None` if the program exited by itself.
    fn early(self) -> Option<Outcome> {
        match self {
            Self::Exited => None,
            Self::TimedOut => Some(Outcome::TimedOut),
            Self::Cancelled => Some(Outcome::Cancelled),
        }
    }
}

// === impl ProcessExecutor ===

impl ProcessExecutor {
    /// An executor of `spec` whose runs have their scratch directories in `scratch_root`.
    ///
    /// `scratch_root` is created (mode 0700) if necessary. It belongs to one process at a time,
    /// which may create any number of executors in it and calls [`sweep`](Self::sweep) before the
    /// first run. A missing program is not an error here: it may be installed later, and until then
    /// each run ends as [`Outcome::CouldNotStart`].
    pub fn new(spec: ProcessSpec, scratch_root: PathBuf) -> Result<Self, ProcessError> {
        spec.validate()?;
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&scratch_root);
        let scratch_root = match made.and_then(|()| fs::canonicalize(&scratch_root)) {
            Ok(path) => path,
            Err(source) => {
                return Err(ProcessError::ScratchRoot {
                    path: scratch_root,
                    source,
                });
            }
        };
        if spec.memory_limit.is_some() && !cfg!(target_os = "linux") {
            tracing::warn!("a memory limit is enforced on Linux only; programs run without it");
        }
        let confined = Confined::new(&spec, &scratch_root)?;
        let own_path = spec.env.get("PATH").map(OsString::from);
        let path = own_path.or_else(|| std::env::var_os("PATH"));
        let program = resolve(&spec.program, path.as_deref());
        Ok(Self {
            spec,
            program,
            scratch_root,
            confined,
        })
    }

    /// The program and its limits.
    pub fn spec(&self) -> &ProcessSpec {
        &self.spec
    }

    /// A copy with these variables added to the environment.
    #[must_use]
    pub fn with_env(&self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut other = self.clone();
        other.spec.env.extend(variables);
        other
    }

    /// Ends processes that an earlier process, killed before it could clean up, left running in
    /// `scratch_root`, and removes its scratch directories. Call it once, before the first run.
    ///
    /// A group is killed if its leader has the start time that was recorded when the run began, and
    /// any process is killed whose environment names one of the directories. Both need `/proc`: on
    /// other systems than Linux only directories are removed. A missing root is not an error.
    pub async fn sweep(scratch_root: &Path) -> Result<Swept, ProcessError> {
        sweep(scratch_root).await
    }

    /// Runs the program once, for `task`, with `input` in its input file.
    ///
    /// Ends early, with [`Outcome::Cancelled`], when `cancel` resolves. Dropping the future ends
    /// the program too, in the background. Needs a tokio runtime with I/O and time enabled.
    pub async fn run(
        &self,
        task: &TaskContext,
        input: &[u8],
        cancel: impl Future<Output = ()>,
    ) -> Attempt {
        let began = Instant::now();
        let mut cancel = pin!(cancel);
        let cancelled = std::future::poll_fn(|cx| cancel.as_mut().poll(cx).is_ready().into());
        if cancelled.await {
            return Attempt::not_started(Outcome::Cancelled, began.elapsed());
        }
        let Started {
            mut running,
            stdout,
            stderr,
            at: started,
        } = match self.start(task, input).await {
            Ok(started) => started,
            Err(outcome) => return Attempt::not_started(outcome, began.elapsed()),
        };
        let limit = self.spec.time_limit;
        let deadline = limit.and_then(|limit| started.checked_add(limit));
        let group = running.group();
        let mut memory = MemoryWatch::new(group.id(), self.spec.memory_limit);
        let mut kept_stdout = Capture::new(self.spec.capture_limit);
        let mut kept_stderr = Capture::new(self.spec.capture_limit);

        let (end, wall) = {
            let drained = async {
                tokio::join!(kept_stdout.drain(stdout), kept_stderr.drain(stderr));
            };
            let mut streams = Streams {
                drained: pin!(drained),
                done: false,
            };
            let end = loop {
                tokio::select! {
                    biased;
                    () = group.exited() => break End::Exited,
                    () = &mut cancel => break End::Cancelled,
                    () = at(deadline) => break End::TimedOut,
                    () = streams.end(), if !streams.done => {}
                    () = memory.sample() => {}
                }
            };
            let mut wall = started.elapsed();
            let closed = end == End::Exited
                && (streams.done || timeout(STREAM_GRACE, streams.end()).await.is_ok());
            if !closed {
                shut_down(group, &mut streams, self.spec.kill_grace).await;
            }
            if end != End::Exited {
                wall = started.elapsed();
            }
            (end, wall)
        };
        // If the future is dropped here, a thread takes care of a program that does not die when
        // killed.
        memory.note_killed(running.group().killed_for_memory());
        let reaped = running.reap(end == End::Exited).await;
        let (stdout, stderr) = (kept_stdout.finish(), kept_stderr.finish());
        let printed = (&stdout, &stderr);
        let RunResult {
            status,
            outcome,
            disk_full,
        } = self.evaluate(end, reaped, printed, &memory).await;
        Attempt {
            outcome,
            exit: status.and_then(|status| status.code()),
            signal: status.and_then(|status| status.signal()),
            stdout,
            stderr,
            wall,
            spawned_after: started - began,
            peak_rss: memory.peak_rss(),
            disk_full,
        }
    }

    /// Evaluates a run that has ended. Its scratch folder, if it was reaped, is removed.
    async fn evaluate(
        &self,
        end: End,
        reaped: Option<(ExitStatus, Scratch)>,
        (stdout, stderr): (&Captured, &Captured),
        memory: &MemoryWatch,
    ) -> RunResult {
        let Some((status, scratch)) = reaped else {
            let lost = || Outcome::Failed {
                reason: "its exit status was lost: something else in this process waits for, or \
                         ignores, every child"
                    .to_owned(),
            };
            return RunResult {
                status: None,
                outcome: end.early().unwrap_or_else(lost),
                disk_full: None,
            };
        };
        let disk_full = match end {
            End::Exited => full_disk_failure(&scratch, status.success()),
            End::Cancelled | End::TimedOut => None,
        };
        let outcome = match (end.early(), self.spec.input_channel) {
            (Some(outcome), _) => outcome,
            (None, InputChannel::Files) if status.success() => {
                let output = scratch.read_output(self.spec.output_limit).await;
                outcome::from_output(output, disk_full.as_ref())
            }
            (None, InputChannel::Stdin | InputChannel::LastArgument) if status.success() => {
                Outcome::Succeeded(Bytes::new())
            }
            (None, _) => outcome::from_failure(status, stdout, stderr, memory, disk_full.as_ref()),
        };
        scratch.close().await;
        RunResult {
            status: Some(status),
            outcome,
            disk_full,
        }
    }

    /// Checks whether a run could begin now: creates a scratch folder, writes 1 MiB there, opens
    /// the descriptors that a run needs and starts a thread; all of it is released when this
    /// returns.
    ///
    /// # Errors
    /// [`MachineFailure`], with the operation that failed.
    pub async fn probe(&self) -> Result<(), MachineFailure> {
        probe(self.scratch_root.clone()).await
    }

    fn not_launched(&self, error: LaunchError) -> Outcome {
        let reason = match error {
            LaunchError::Start(error) => {
                let what = format!("cannot start `{}`", self.program.display());
                if let Some(failure) = MachineFailure::of(what, &error) {
                    return Outcome::Machine(failure);
                }
                self.explain(error)
            }
            LaunchError::Confinement(why) => format!("cannot confine the program: {why}"),
        };
        Outcome::CouldNotStart { reason }
    }

    /// Prepares a scratch directory and starts the program in it; the error is the outcome of the
    /// attempt.
    async fn start(&self, task: &TaskContext, input: &[u8]) -> Result<Started, Outcome> {
        // A failure of the scratch folder is never the task's fault.
        let scratch_failed = |what: String| {
            move |error: io::Error| Outcome::Machine(MachineFailure::of_scratch(what, &error))
        };
        let root = self.scratch_root.display();
        let mut scratch = Scratch::create(&self.scratch_root).map_err(scratch_failed(format!(
            "cannot make a scratch directory in `{root}`"
        )))?;
        scratch.supervise(&task.id);
        let input_file = scratch.input();
        scratch
            .write_input(input)
            .await
            .map_err(scratch_failed(format!(
                "cannot write the input file `{}`",
                input_file.display()
            )))?;
        let mut command = self
            .command(task, &scratch)
            .map_err(scratch_failed(format!(
                "cannot open the input file `{}`",
                input_file.display()
            )))?;
        let tree = self.confined.tree(&self.spec, scratch.path(), &mut command);
        let tree: Option<Cgroup> =
            tree.map_err(|error| not_started("cannot make a control group for the run", &error))?;
        // A short program may have exited before `spawn` returns.
        let at = Instant::now();
        let confinement = self.confined.confinement(scratch.path());
        let spawned = confinement.spawn(&mut command);
        let mut child = spawned.map_err(|error| self.not_launched(error))?;
        let streams = (child.stdout.take(), child.stderr.take());
        // From here on, dropping `group` kills the program.
        let group = Group::new(child, scratch, tree)
            .map_err(|error| not_started("cannot watch the started program", &error))?;
        if let Some(limit) = self.spec.memory_limit {
            super::memory::limit(group.id(), limit)
                .map_err(|error| not_started("cannot set the memory limit", &error))?;
        }
        let path = group.scratch().path().display();
        let noted = scratch_failed(format!("cannot note the process group in `{path}`"));
        group.scratch().write_note(group.id()).map_err(noted)?;
        let (Some(stdout), Some(stderr)) = streams else {
            return Err(Outcome::CouldNotStart {
                reason: "cannot read the program's streams".to_owned(),
            });
        };
        let stream = |error| not_started("cannot read the program's streams", &error);
        let stdout = ChildStdout::from_std(stdout).map_err(stream)?;
        let stderr = ChildStderr::from_std(stderr).map_err(stream)?;
        let grace = self.spec.kill_grace;
        let running = Running {
            group: Some(group),
            grace,
            runtime: Handle::current(),
        };
        Ok(Started {
            running,
            stdout,
            stderr,
            at,
        })
    }

    fn command(&self, task: &TaskContext, scratch: &Scratch) -> io::Result<Command> {
        let mut command = Command::new(&self.program);
        // Nothing here may need a hook between fork and exec: without one the standard library uses
        // `posix_spawn`, whose cost does not grow with the memory of this process. Only strict
        // programs in control groups have such a hook.
        command.args(&self.spec.args).stdin(Stdio::null());
        match self.spec.input_channel {
            InputChannel::Files => {
                command
                    .arg(&self.spec.input_flag)
                    .arg(scratch.input())
                    .arg(&self.spec.output_flag)
                    .arg(scratch.output());
            }
            // A file instead of a pipe, so that no writer is needed while the program reads.
            InputChannel::Stdin => {
                command.stdin(fs::File::open(scratch.input())?);
            }
            InputChannel::LastArgument => {
                command.arg(scratch.input());
            }
        }
        command
            .env_clear()
            .envs(self.confined.environment(&self.spec, scratch.path()))
            .env("PROOFMILL_TASK_ID", &task.id)
            .env("PROOFMILL_ATTEMPT", task.attempt.to_string())
            .env("PROOFMILL_BLOCK", task.block.to_string())
            .env(SCRATCH_VARIABLE, scratch.path())
            .current_dir(scratch.path())
            .process_group(0)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Ok(command)
    }

    fn explain(&self, error: io::Error) -> String {
        let program = self.program.display();
        match error.kind() {
            io::ErrorKind::NotFound if !self.program.is_absolute() => {
                format!("program `{program}` is not in PATH; install it, or give its path")
            }
            io::ErrorKind::NotFound if self.program.exists() => format!(
                "the interpreter of `{program}` does not exist; look at its first line (or, for a \
                 binary, at the loader it names)"
            ),
            io::ErrorKind::NotFound => format!("program `{program}` does not exist"),
            io::ErrorKind::PermissionDenied => {
                format!("program `{program}` is not executable by this user ({error})")
            }
            _ => format!("cannot start `{program}`: {error}"),
        }
    }
}

/// The outcome for a program that could not be started: a machine failure, if the error is one.
fn not_started(what: &str, error: &io::Error) -> Outcome {
    MachineFailure::of(what, error).map_or_else(
        || Outcome::CouldNotStart {
            reason: format!("{what}: {error}"),
        },
        Outcome::Machine,
    )
}

/// The draining of both streams, which continues across several waits.
struct Streams<'a, F> {
    drained: Pin<&'a mut F>,
    done: bool,
}

impl<F: Future<Output = ()>> Streams<'_, F> {
    /// Reads until both streams have ended. May be dropped and called again until done.
    async fn end(&mut self) {
        self.drained.as_mut().await;
        self.done = true;
    }

    /// As `end`, but never resolves if the streams have already ended.
    async fn end_once(&mut self) {
        if self.done {
            return std::future::pending().await;
        }
        self.end().await;
    }
}

/// Ends the group: sends `SIGTERM`, waits until leader and streams have ended or `grace` is over,
/// then kills.
async fn shut_down<F: Future<Output = ()>>(
    group: &mut Group,
    streams: &mut Streams<'_, F>,
    grace: Duration,
) {
    group.terminate();
    let mut exited = false;
    let through = async {
        while !(exited && streams.done) {
            tokio::select! {
                () = group.exited(), if !exited => exited = true,
                () = streams.end_once() => {}
            }
        }
    };
    let _ = timeout(grace, through).await;
    group.kill();
    let dead = async {
        loop {
            tokio::select! {
                () = group.exited() => break,
                () = streams.end_once() => {}
            }
        }
    };
    let _ = timeout(KILLED_LIMIT, dead).await;
    kill_escaped(group).await;
    if !streams.done {
        let _ = timeout(STREAM_GRACE, streams.end()).await;
    }
}

/// Kills descendants that left the group.
async fn kill_escaped(group: &Group) {
    let scratch = group.scratch().path().to_owned();
    let _ = tokio::task::spawn_blocking(move || kill_marked(&scratch)).await;
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

// === impl Running ===

impl Running {
    fn group(&mut self) -> &mut Group {
        self.group
            .as_mut()
            .expect("a run is reaped once, at its end")
    }

    /// Reaps the program, if it has exited. After a kill, the group is gone too when this returns.
    async fn reap(mut self, exited_by_itself: bool) -> Option<(ExitStatus, Scratch)> {
        if timeout(Duration::ZERO, self.group().exited())
            .await
            .is_err()
        {
            // Dropping the group kills again, and waits on a thread that delays no other work.
            self.group = None;
            return None;
        }
        let (status, scratch, pgid) = self.group.take()?.reap().ok()?;
        if !exited_by_itself {
            wait_until_gone(pgid).await;
        }
        Some((status, scratch))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(mut group) = self.group.take() else {
            return;
        };
        group.terminate();
        let grace = self.grace;
        // If the runtime is shutting down the task is dropped, and `group` kills when dropped.
        self.runtime.spawn(async move {
            let _ = timeout(grace, group.exited()).await;
            group.kill();
            let _ = timeout(KILLED_LIMIT, group.exited()).await;
            kill_escaped(&group).await;
            if timeout(Duration::ZERO, group.exited()).await.is_ok()
                && let Ok((_, scratch, pgid)) = group.reap()
            {
                wait_until_gone(pgid).await;
                scratch.close().await;
            }
        });
    }
}
