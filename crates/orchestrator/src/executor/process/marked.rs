//! The processes of a run, found by the mark in their environment: also those that left its group.
//! Linux only, for want of anything like `/proc/PID/environ` elsewhere.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::scratch::SCRATCH_VARIABLE;

/// Most of a process's environment that is looked at. The kernel's own bound on the environment and
/// arguments together is a quarter of the stack limit, 2 MiB as a rule.
const ENVIRONMENT_LIMIT: u64 = 4 << 20;

/// Every process whose environment says that it belongs to the run in `scratch`, in whatever group
/// it is by now. Reads all of `/proc`: not for the usual end of a run.
pub(super) fn find_marked(scratch: &Path) -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let own = rustix::process::getpid();
    let pids = entries.filter_map(|entry| {
        let pid = entry.ok()?.file_name().to_str()?.parse::<i32>().ok()?;
        Pid::from_raw(pid).filter(|&pid| pid != own)
    });
    pids.filter(|&pid| is_of(pid, scratch)).collect()
}

/// Kills what [`find_marked`] finds, and says which.
pub(super) fn kill_marked(scratch: &Path) -> Vec<Pid> {
    let found = find_marked(scratch).into_iter();
    found.filter(|&pid| kill_stray(pid, scratch)).collect()
}

fn kill_stray(pid: Pid, scratch: &Path) -> bool {
    // Looked at again through a descriptor in hand, which cannot come to mean another process.
    let Ok(fd) = pidfd_open(pid, PidfdFlags::empty()) else {
        return false;
    };
    is_of(pid, scratch) && pidfd_send_signal(&fd, Signal::KILL).is_ok()
}

fn is_of(pid: Pid, scratch: &Path) -> bool {
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
