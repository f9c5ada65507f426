//! Lookup of programs, and data about processes from `/proc`.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use proofmill_memory::size_in;
use rustix::process::Pid;

/// The largest sizes that a process has had, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Peak {
    /// Peak of its address space (`VmPeak`).
    pub(super) mapped: u64,
    /// Peak of its resident set (`VmHWM`).
    pub(super) resident: u64,
}

/// `program` as an absolute path: relative paths are resolved from the current directory, bare
/// names are searched in `path` (in the format of `PATH`). A name that is not found is returned
/// unchanged; starting it reports the error.
pub(super) fn resolve(program: &Path, path: Option<&OsStr>) -> PathBuf {
    if program.as_os_str().as_bytes().contains(&b'/') {
        return std::path::absolute(program).unwrap_or_else(|_| program.to_owned());
    }
    let found = path
        .into_iter()
        .flat_map(std::env::split_paths)
        .find_map(|folder| {
            let candidate = std::path::absolute(folder.join(program)).ok()?;
            let metadata = fs::metadata(&candidate).ok()?;
            (metadata.is_file() && metadata.permissions().mode() & 0o111 != 0).then_some(candidate)
        });
    found.unwrap_or_else(|| program.to_owned())
}

/// The path of a program's file, as a run in this process would start it: relative paths are resolved from the current
/// directory, bare names are searched in `PATH`. A name that is not found is returned unchanged.
pub fn find_program(program: &Path) -> PathBuf {
    resolve(program, std::env::var_os("PATH").as_deref())
}

/// Start time of a process, in clock ticks since boot; `None` if it is gone or there is no `/proc`.
/// Field 22 of `/proc/PID/stat`, proc_pid_stat(5).
pub(super) fn start_time(pid: Pid) -> Option<u64> {
    stat_field(pid, 22)?.parse().ok()
}

/// Whether a process has exited and is not yet reaped.
pub(super) fn is_zombie(pid: Pid) -> bool {
    stat_field(pid, 3).is_some_and(|state| state == "Z" || state == "X")
}

/// Field `number` (3 or higher) of `/proc/PID/stat`. Counts from after the program's name, which is
/// in parentheses and may itself contain spaces and parentheses.
fn stat_field(pid: Pid, number: usize) -> Option<String> {
    let mut stat = [0; 1024];
    let read = File::open(format!("/proc/{pid}/stat"))
        .ok()?
        .read(&mut stat)
        .ok()?;
    let stat = &stat[..read];
    let after = stat.iter().rposition(|&byte| byte == b')')? + 1;
    let fields = str::from_utf8(&stat[after..]).ok()?;
    fields
        .split_ascii_whitespace()
        .nth(number - 3)
        .map(str::to_owned)
}

/// The largest sizes of a running process; `None` if it has exited or there is no `/proc`.
pub(super) fn peak(pid: Pid) -> Option<Peak> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    Some(Peak {
        mapped: size_in(&status, "VmPeak")?,
        resident: size_in(&status, "VmHWM")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_are_made_absolute_and_names_are_looked_up() {
        let root = tempfile::tempdir().unwrap();
        let plain = root.path().join("prover");
        fs::write(&plain, "").unwrap();
        let path = std::env::join_paths([root.path(), Path::new("/bin")]).unwrap();
        assert!(resolve(Path::new("./x/prover"), None).is_absolute());
        assert_eq!(resolve(Path::new("sh"), Some(&path)), Path::new("/bin/sh"));
        // A file without execute permission is skipped, as by a shell.
        assert_eq!(
            resolve(Path::new("prover"), Some(&path)),
            Path::new("prover")
        );
        fs::set_permissions(&plain, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(resolve(Path::new("prover"), Some(&path)), plain);
        assert_eq!(resolve(Path::new("prover"), None), Path::new("prover"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_is_read_from_proc() {
        let own = rustix::process::getpid();
        assert!(start_time(own).unwrap() > 0);
        assert!(!is_zombie(own));
        let peak = peak(own).unwrap();
        assert!(peak.mapped >= peak.resident && peak.resident > 64 << 10);
        let mut child = std::process::Command::new("/bin/sh")
            .args(["-c", ":"])
            .spawn()
            .unwrap();
        let pid = Pid::from_child(&child);
        while !is_zombie(pid) {
            std::thread::yield_now();
        }
        assert!(start_time(pid).is_some() && super::peak(pid).is_none());
        child.wait().unwrap();
        assert_eq!(start_time(pid), None);
    }
}
