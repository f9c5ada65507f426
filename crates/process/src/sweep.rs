//! Cleanup after a Proofmill process that was killed.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::time::{Instant, sleep};

use super::confined::group_prefix;
use super::environment_mark::{find_marked, kill_marked};
use super::program::{is_zombie, start_time};
use super::scratch::{Note, PREFIX, Scratch};
use super::spec::ProcessError;

/// Longest wait for killed processes to be gone.
const EXIT_WAIT_MAX: Duration = Duration::from_secs(5);

/// Number of looks for processes that killed ones started in their last moments.
const ROUNDS: usize = 16;

/// The counts of a sweep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Scratch directories removed.
    pub directories: usize,
    /// Processes killed.
    pub processes: usize,
}

/// See [`ProcessExecutor::sweep`](super::ProcessExecutor::sweep).
pub(super) async fn sweep(root: &Path) -> Result<Swept, ProcessError> {
    let given = root;
    let failed = |source| ProcessError::ScratchRoot {
        path: given.to_owned(),
        source,
    };
    let read = fs::canonicalize(root).and_then(|root| Ok((fs::read_dir(&root)?, root)));
    let (entries, root) = match read {
        Ok(read) => read,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Swept::default()),
        Err(error) => return Err(failed(error)),
    };
    let mut swept = Swept::default();
    let mut killed = Vec::new();
    let mut directories = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let ours = entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(PREFIX.as_bytes());
        // Symbolic links to directories are skipped: `file_type` does not follow them.
        if !ours || !entry.file_type().map_err(failed)?.is_dir() {
            continue;
        }
        let scratch = Scratch::adopt(entry.path());
        killed.extend(end_run(scratch.path()).await);
        directories.push(scratch);
    }
    // Processes in our control groups are ended, whatever their environment is.
    proofmill_sandbox::end_left(&group_prefix(&root).map_err(failed)?);
    swept.processes = killed.len();
    await_end(&killed).await;
    for scratch in directories {
        scratch.close().await;
        swept.directories += 1;
    }
    if swept != Swept::default() {
        tracing::info!(
            directories = swept.directories,
            processes = swept.processes,
            "ended what an earlier process left in its scratch root"
        );
    }
    Ok(swept)
}

/// Kills the remaining processes of one run, and returns those that were killed.
pub(super) async fn end_run(scratch: &Path) -> HashSet<Pid> {
    let mut killed: HashSet<Pid> = find_marked(scratch).into_iter().collect();
    // The group is killed first, in one call that no fork can escape.
    killed.extend(kill_group(scratch));
    // Processes outside it follow one by one, repeated while they start more.
    for _ in 0..ROUNDS {
        let strays = kill_marked(scratch);
        if strays.is_empty() {
            break;
        }
        killed.extend(strays);
        sleep(Duration::from_millis(1)).await;
    }
    killed
}

/// Kills the group that the directory's note names, if its leader is still the process that the
/// note describes.
fn kill_group(scratch: &Path) -> Option<Pid> {
    let note = Note::read(scratch)?;
    let same = start_time(note.leader) == Some(note.started) && !is_zombie(note.leader);
    (same && kill_process_group(note.leader, Signal::KILL).is_ok()).then_some(note.leader)
}

async fn await_end(killed: &[Pid]) {
    let give_up = Instant::now() + EXIT_WAIT_MAX;
    let running = |&pid: &Pid| start_time(pid).is_some() && !is_zombie(pid);
    while killed.iter().any(running) && Instant::now() < give_up {
        sleep(Duration::from_millis(2)).await;
    }
}
