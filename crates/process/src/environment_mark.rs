//! The processes of a run, found by the mark in their environment, including those that left its
//! group. Linux only: other systems have no equivalent of `/proc/PID/environ`.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::scratch::SCRATCH_VARIABLE;

/// Maximum number of bytes read of a process's environment. The kernel's own limit on environment
/// and arguments together is a quarter of the stack limit, usually 2 MiB.
const ENVIRONMENT_LIMIT: u64 = 4 << 20;

/// Every process whose environment has the mark of the run in `scratch`, whatever its group. Reads
/// all of `/proc`, so it is not for the normal end of a run.
pub(super) fn find_marked(scratch: &Path) -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let own = rustix::process::getpid();
    let pids = entries.filter_map(|entry| {
        let pid = entry.ok()?.file_name().to_str()?.parse::<i32>().ok()?;
        Pid::from_raw(pid).filter(|&pid| pid != own)
    });
    pids.filter(|&pid| has_mark(pid, scratch)).collect()
}

/// Kills the processes that [`find_marked`] finds, and returns those that it killed.
pub(super) fn kill_marked(scratch: &Path) -> Vec<Pid> {
    let found = find_marked(scratch).into_iter();
    found
        .filter(|&pid| kill_marked_process(pid, scratch))
        .collect()
}

fn kill_marked_process(pid: Pid, scratch: &Path) -> bool {
    // Checked again through an open descriptor, which cannot refer to a reused process id.
    let Ok(fd) = pidfd_open(pid, PidfdFlags::empty()) else {
        return false;
    };
    has_mark(pid, scratch) && pidfd_send_signal(&fd, Signal::KILL).is_ok()
}

fn has_mark(pid: Pid, scratch: &Path) -> bool {
    let mut environment = Vec::new();
    let Ok(file) = File::open(format!("/proc/{pid}/environ")) else {
        return false;
    };
    if file
        .take(ENVIRONMENT_LIMIT)
        .read_to_end(&mut environment)
        .is_err()
    {
        return false;
    }
    let wanted = scratch.as_os_str().as_bytes();
    environment.split(|&byte| byte == 0).any(|variable| {
        variable
            .strip_prefix(SCRATCH_VARIABLE.as_bytes())
            .and_then(|rest| rest.strip_prefix(b"="))
            .is_some_and(|value| value == wanted)
    })
}
