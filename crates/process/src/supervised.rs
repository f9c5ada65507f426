//! Supervision of programs, so that they end with the process that runs them even if it is killed.
//!
//! A process that is killed (`SIGKILL`, out of memory) cannot end its programs itself. A helper
//! process receives the start and end of every run through a pipe. When the pipe closes, the
//! supervised process is gone, and the helper ends the unfinished runs. It is started with the
//! first run, and again if it dies.
//!
//! The kernel's parent-death signal (`PR_SET_PDEATHSIG`) is not used: it is sent when the *thread*
//! that started the program ends, reaches the leader of the group only, and would have to be
//! requested between fork and exec, which costs time in proportion to the memory of this process.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use proofmill_sandbox::CGROUP_VARIABLE;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use tokio::signal::unix::{SignalKind, signal};

use super::confined::group_prefix;
use super::scratch::{PREFIX, Scratch};
use super::sweep::end_run;

/// Every unfinished run of this process.
static RUNS: Mutex<Runs> = Mutex::new(Runs {
    command: None,
    helper: None,
    live: BTreeMap::new(),
    has_warned: false,
});

/// Time between the helper's first and second look: by then a program that was just being started
/// has its mark.
const SECOND_LOOK: Duration = Duration::from_millis(200);

/// A program that is running for a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningProgram {
    /// The task.
    pub task: String,
    /// Time since its start.
    pub elapsed: Duration,
}

struct Runs {
    /// Creates the command of the helper; without it, programs outlive this process if it is
    /// killed.
    command: Option<fn() -> Command>,
    helper: Option<Helper>,
    /// The unfinished runs, by their scratch directories.
    live: BTreeMap<PathBuf, Live>,
    has_warned: bool,
}

struct Live {
    task: String,
    began: Instant,
}

/// The helper, and the pipe to it. It is killed when this is dropped: it must not mistake the
/// closed pipe for the end of this process.
struct Helper {
    child: Child,
    pipe: ChildStdin,
}

/// Reports a run to the helper as unfinished until it is dropped.
#[derive(Debug)]
pub(super) struct Supervised {
    scratch: PathBuf,
}

/// Enables supervision of this process's programs. `command` starts a process that calls
/// [`run_supervisor`] with its standard input.
pub fn supervise_programs_with(command: fn() -> Command) {
    runs().command = Some(command);
}

/// The programs running in this process's scratch directories, the oldest first.
pub fn running_programs() -> Vec<RunningProgram> {
    let mut running: Vec<RunningProgram> = runs()
        .live
        .values()
        .map(|live| RunningProgram {
            task: live.task.clone(),
            elapsed: live.began.elapsed(),
        })
        .collect();
    running.sort_by_key(|program| std::cmp::Reverse(program.elapsed));
    running
}

/// The work of the helper: reads reports of runs from `reports` until it ends, then ends the
/// unfinished runs. Signals meant for the process that started the helper do not end it.
///
/// # Errors
/// Signal handlers cannot be installed, or `reports` cannot be read.
pub async fn run_supervisor(reports: impl Read) -> io::Result<()> {
    let _ignored = [
        signal(SignalKind::interrupt())?,
        signal(SignalKind::terminate())?,
        signal(SignalKind::hangup())?,
    ];
    let left = read_reports(reports)?;
    for _ in 0..2 {
        for scratch in &left {
            end(scratch).await;
        }
        if !left.is_empty() {
            tokio::time::sleep(SECOND_LOOK).await;
        }
    }
    for scratch in left {
        Scratch::adopt(scratch).close().await;
    }
    Ok(())
}

/// Reads reports to the end; returns the scratch directories of the unfinished runs.
fn read_reports(reports: impl Read) -> io::Result<BTreeSet<PathBuf>> {
    let mut left = BTreeSet::new();
    let mut reports = BufReader::new(reports);
    let mut message = Vec::new();
    loop {
        message.clear();
        reports.read_until(0, &mut message)?;
        // A report without a terminator was cut off, and is the last.
        if message.pop() != Some(0) {
            return Ok(left);
        }
        let path = |bytes: &[u8]| PathBuf::from(OsString::from_vec(bytes.to_vec()));
        match message.split_first() {
            // Other paths are ignored, since the directory of a run is removed.
            Some((b'+', scratch)) if is_of_a_run(&path(scratch)) => {
                left.insert(path(scratch));
            }
            Some((b'-', scratch)) => {
                left.remove(&path(scratch));
            }
            _ => {}
        }
    }
}

fn is_of_a_run(scratch: &Path) -> bool {
    let name = scratch.file_name().unwrap_or_default();
    scratch.is_absolute() && name.as_bytes().starts_with(PREFIX.as_bytes())
}

/// Kills the remaining processes of one run.
async fn end(scratch: &Path) {
    // Not adopted, since dropping an adopted directory removes it.
    end_run(scratch).await;
    let prefix = scratch.parent().and_then(|root| group_prefix(root).ok());
    if let (Some(prefix), Some(run)) = (prefix, scratch.file_name()) {
        proofmill_sandbox::end_left(&format!("{prefix}{}", run.to_string_lossy()));
    }
}

fn runs() -> MutexGuard<'static, Runs> {
    RUNS.lock().unwrap_or_else(PoisonError::into_inner)
}

// === impl Supervised ===

impl Supervised {
    /// Reports that a run for `task` begins in `scratch`.
    pub(super) fn begin(scratch: &Path, task: &str) -> Self {
        let mut runs = runs();
        let live = Live {
            task: task.to_owned(),
            began: Instant::now(),
        };
        runs.live.insert(scratch.to_owned(), live);
        runs.report(b'+', scratch);
        Self {
            scratch: scratch.to_owned(),
        }
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        let mut runs = runs();
        runs.live.remove(&self.scratch);
        runs.report(b'-', &self.scratch);
    }
}

// === impl Runs ===

impl Runs {
    fn report(&mut self, sign: u8, scratch: &Path) {
        let Some(command) = self.command else {
            return;
        };
        if let Some(helper) = &mut self.helper {
            if helper.report(sign, scratch).is_ok() {
                return;
            }
            // The helper was killed, or does not read.
            self.helper = None;
        }
        if self.live.is_empty() {
            return;
        }
        match Helper::start(command(), self.live.keys()) {
            Ok(helper) => self.helper = Some(helper),
            Err(error) if !self.has_warned => {
                self.has_warned = true;
                tracing::warn!(%error, "programs would outlive this process if it were killed");
            }
            Err(_) => {}
        }
    }
}

// === impl Helper ===

impl Helper {
    /// Starts a helper, and reports every unfinished run to it.
    fn start<'a>(
        mut command: Command,
        live: impl Iterator<Item = &'a PathBuf>,
    ) -> io::Result<Self> {
        command
            .env_clear()
            .envs(std::env::var_os(CGROUP_VARIABLE).map(|value| (CGROUP_VARIABLE, value)))
            .current_dir("/")
            // In a group of its own, so that Ctrl-C in a terminal does not reach it.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = command.spawn()?;
        let Some(pipe) = child.stdin.take() else {
            return Err(io::Error::other("the helper has no pipe"));
        };
        let mut helper = Self { child, pipe };
        for scratch in live {
            helper.report(b'+', scratch)?;
        }
        // From here on, writing to it never blocks.
        fcntl_setfl(&helper.pipe, fcntl_getfl(&helper.pipe)? | OFlags::NONBLOCK)?;
        Ok(helper)
    }

    fn report(&mut self, sign: u8, scratch: &Path) -> io::Result<()> {
        let path = scratch.as_os_str().as_bytes();
        let mut message = Vec::with_capacity(path.len() + 2);
        message.push(sign);
        message.extend(path);
        message.push(0);
        self.pipe.write_all(&message)
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_begun_and_not_ended_is_left() {
        let left = |reports: &[u8]| -> Vec<String> {
            let left = read_reports(reports).unwrap().into_iter();
            left.map(|path| path.display().to_string()).collect()
        };
        let reports = b"+/s/run-1-0\0+/s/run-1-1\0-/s/run-1-0\0+/s/run-1-2\0";
        assert_eq!(left(reports), ["/s/run-1-1", "/s/run-1-2"]);
        assert_eq!(left(b"+/s/run-1-0\0-/s/run-1-0\0"), [""; 0]);
        assert_eq!(left(b"+/s/run-1-0\0-/s/run-1"), ["/s/run-1-0"], "cut off");
        for nothing in [
            &b""[..],
            b"\0?/s/run-1-0\0-/b\0",
            b"+/home\0+run-1-0\0+/\0+\0",
        ] {
            assert_eq!(left(nothing), [""; 0]);
        }
    }
}
